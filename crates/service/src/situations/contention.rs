//! Contention for a session: whoever comes too late looks again, and gives up when that has no end.

use rekindle_wire::code::Code;

use super::home::Home;

// I3: a message that was told to be taken is there once, however often somebody else came before it.
#[test]
fn a_message_that_comes_too_late_is_given_again() {
    for others in [1, 2, 15] {
        let mut home = Home::new(&["text end"]);
        home.others.come_first(others);
        home.send();
        assert_eq!((home.count("message.user"), home.count("run.completed")), (1, 1), "{others}");
    }
}

// I3: one that was not taken is not there.
#[test]
fn a_message_that_always_comes_too_late_is_refused() {
    let mut home = Home::new(&["text end"]);
    home.others.come_first(16);
    assert_eq!(home.message().expect_err("too late").code, Code::Busy);
    home.settle();
    assert_eq!((home.course().as_str(), home.scripted.launches()), ("", 0));
    home.send();
    assert_eq!((home.count("message.user"), home.count("run.completed")), (1, 1));
}
