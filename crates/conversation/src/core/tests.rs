//! Conversations, step by step: what a person does and what is heard, and what comes of it.

use rekindle_display::live::{Ask, RunEnd};
use rekindle_domain::event::Drift;
use rekindle_terminal::output::PLAIN;
use serde_json::json;

use super::*;

/// A conversation and its clock.
struct Talk {
    core: Core,
    now: Duration,
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn permission(wait: &str) -> Piece {
    let request = json!({"params": {"toolCall": {"title": "rm"}, "options": [
        {"optionId": "a", "name": "Allow", "kind": "allow_once"},
        {"optionId": "r", "name": "Reject", "kind": "reject_once"}]}});
    Piece::Asked(Ask::read(wait, "permission", &request))
}

fn send(number: u64, text: &str) -> Effect {
    Effect::Ask(Request::Send { number, text: text.into() })
}

fn answer(wait: &str, id: &str, told: &str) -> Effect {
    Effect::Ask(Request::Answer { wait: wait.into(), answer: NewAnswer::option_id(id), told: told.into() })
}

impl Talk {
    fn new() -> Talk {
        let mut talk = Talk { core: Core::new(Some("sess_1".into()), Standing::default()), now: ms(1000) };
        talk.hear(News::Fact(Fact::Begun { run: "run_1".into(), message: None, age: ms(0) }));
        talk.wait(5000);
        talk
    }

    fn handle(&mut self, event: Event) -> Vec<Effect> {
        let look = Effect::Ask(Request::Look);
        self.core.handle(event, self.now).into_iter().filter(|effect| *effect != look).collect()
    }

    fn wait(&mut self, millis: u64) -> Vec<Effect> {
        self.now += ms(millis);
        self.handle(Event::Tick)
    }

    fn hear(&mut self, news: News) -> Vec<Effect> {
        self.handle(Event::Heard(news))
    }

    fn piece(&mut self, piece: Piece) -> Vec<Effect> {
        self.hear(News::Piece(piece))
    }

    fn key(&mut self, key: Key) -> Vec<Effect> {
        self.handle(Event::Key(key))
    }

    /// Types text, a key each; returns what came of the last.
    fn types(&mut self, text: &str) -> Vec<Effect> {
        text.chars().map(|c| self.key(Key::Char(c))).last().unwrap_or_default()
    }

    /// Is asked, and has read the question.
    fn is_asked(&mut self, wait: &str) {
        self.piece(permission(wait));
        assert!(!self.wait(60).is_empty(), "the question is put");
        self.wait(400);
    }

    fn typed(&self) -> &str {
        self.core.editor.text()
    }

    fn panel(&self) -> String {
        let panel = self.core.panel(200, 24, self.now);
        let row = |row: &Vec<(Style, String)>| row.iter().map(|(_, text)| text.as_str()).collect::<String>();
        panel.rows.iter().map(row).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the lines that are shown.
fn lines(effects: &[Effect]) -> Vec<String> {
    let line = |effect: &Effect| match effect {
        Effect::Show(Piece::Line((_, text))) => Some(text.clone()),
        _ => None,
    };
    effects.iter().filter_map(line).collect()
}

#[test]
fn a_line_is_sent_and_comes_back_with_the_arrow_keys() {
    let mut talk = Talk::new();
    talk.types("hello");
    assert_eq!(talk.key(Key::Enter), [send(1, "hello")]);
    assert!(talk.typed().is_empty() && talk.panel().contains("sending: hello"), "{}", talk.panel());
    assert_eq!(talk.handle(Event::Reply(Reply::Sent { number: 1, began: None })), []);
    assert!(!talk.panel().contains("hello"), "{}", talk.panel());
    talk.key(Key::Up);
    assert_eq!(talk.typed(), "hello");
    assert_eq!(talk.key(Key::Enter), [send(2, "hello")]);
    assert_eq!(talk.key(Key::Enter), [], "there is nothing to send");
}

#[test]
fn lines_of_one_message_are_typed_or_pasted() {
    let mut talk = Talk::new();
    talk.types("a\\");
    assert_eq!(talk.key(Key::Enter), []);
    talk.types("b");
    talk.key(Key::NewLine);
    talk.handle(Event::Paste("c\r\nd\r\x1b[2J".into()));
    assert_eq!(talk.key(Key::Enter), [send(1, "a\nb\nc\nd\n")]);
}

#[test]
fn what_was_not_sent_is_there_again_and_does_not_take_the_place_of_what_is_typed() {
    let mut talk = Talk::new();
    for (number, typed, expected) in [(1, "", "hello"), (2, "new", "new")] {
        talk.core.editor.take();
        talk.types("hello");
        talk.key(Key::Enter);
        talk.types(typed);
        let effects = talk.handle(Event::Reply(Reply::NotSent { number, why: "no daemon".into() }));
        assert_eq!(lines(&effects), ["not sent (hello): no daemon"]);
        assert_eq!(talk.typed(), expected);
    }
}

#[test]
fn queued_messages_are_shown_and_told_when_they_begin_or_are_dropped() {
    let mut talk = Talk::new();
    for number in 1..=5 {
        let (id, text) = (format!("msg_{number}"), format!("text {number}\nmore"));
        // A stream that is taken up again may tell of one twice.
        talk.hear(News::Fact(Fact::Queued { id: id.clone(), text: text.clone() }));
        talk.hear(News::Fact(Fact::Queued { id, text }));
    }
    let panel = talk.panel();
    assert!(panel.contains("queued: text 1 …\n") && panel.contains("… 2 more queued"), "{panel}");
    assert!(panel.contains("5 queued ·") || panel.contains("· 5 queued"), "{panel}");
    let begun = Fact::Begun { run: "run_2".into(), message: Some("msg_1".into()), age: ms(0) };
    assert_eq!(lines(&talk.hear(News::Fact(begun))), ["> text 1", "> more"]);
    assert_eq!(lines(&talk.piece(Piece::Dropped("msg_2".into()))), ["taken out of the queue: text 2 …"]);
    assert_eq!(lines(&talk.hear(News::Fact(Fact::QueueCleared))).len(), 3);
    assert!(!talk.panel().contains("queued"), "{}", talk.panel());
    talk.key(Key::Up);
    assert_eq!(talk.typed(), "text 5\nmore", "what was dropped can be sent again");
}

#[test]
fn what_waited_in_a_session_that_was_rewound_does_not_wait_in_its_successor() {
    let mut talk = Talk::new();
    talk.hear(News::Fact(Fact::Queued { id: "msg_1".into(), text: "text 1".into() }));
    assert_eq!(
        lines(&talk.hear(News::Fact(Fact::QueueLeft))),
        [] as [&str; 0],
        "nothing was taken out of it here"
    );
    assert!(!talk.panel().contains("queued"), "{}", talk.panel());
}

#[test]
fn a_question_is_answered_by_a_key_alone_on_an_empty_line() {
    let mut talk = Talk::new();
    let put = talk.piece(permission("wait_1"));
    assert_eq!(put, [], "it may have been answered in the next record");
    let put = talk.wait(60);
    assert_eq!(lines(&put), ["The agent asks for permission: rm", "  1  Allow", "  2  Reject"]);
    talk.wait(400);
    assert!(talk.panel().contains("press 1-2, y or n"), "{}", talk.panel());
    assert_eq!(talk.types("1"), []);
    assert!(talk.panel().contains("answering: Allow"), "{}", talk.panel());
    assert_eq!(talk.wait(299), []);
    assert_eq!(talk.wait(1), [answer("wait_1", "a", "Allow")]);
    assert!(talk.typed().is_empty());
    let taken = Reply::Answered { wait: "wait_1".into(), told: "Allow".into() };
    assert_eq!(lines(&talk.handle(Event::Reply(taken))), ["answered: Allow"]);
    talk.types("1");
    assert_eq!(talk.wait(9000), [], "nothing is asked any more");
    assert_eq!(talk.typed(), "1");
}

#[test]
fn no_key_answers_by_accident() {
    // What is done, a question before it or after it, and what then stands in the line.
    type Step = fn(&mut Talk);
    let cases: &[(&str, Step, &str)] = &[
        (
            "too soon",
            |talk| {
                talk.piece(permission("wait_1"));
                talk.wait(60);
                talk.wait(399);
                talk.types("1");
            },
            "1",
        ),
        (
            "before it is put",
            |talk| {
                talk.piece(permission("wait_1"));
                talk.types("y");
            },
            "y",
        ),
        (
            "the beginning of a word",
            |talk| {
                talk.is_asked("wait_1");
                talk.types("n");
                talk.wait(200);
                talk.types("ow");
            },
            "now",
        ),
        (
            "behind text",
            |talk| {
                talk.is_asked("wait_1");
                talk.types("do ");
                talk.wait(1000);
                talk.types("1");
            },
            "do 1",
        ),
        (
            "pasted",
            |talk| {
                talk.is_asked("wait_1");
                talk.handle(Event::Paste("1".into()));
            },
            "1",
        ),
        (
            "taken back",
            |talk| {
                talk.is_asked("wait_1");
                talk.types("1");
                talk.key(Key::Backspace);
            },
            "",
        ),
        (
            "no option",
            |talk| {
                talk.is_asked("wait_1");
                talk.types("7");
            },
            "7",
        ),
        (
            "the question ends meanwhile",
            |talk| {
                talk.is_asked("wait_1");
                talk.types("1");
                talk.hear(News::Fact(Fact::Begun { run: "run_2".into(), message: None, age: ms(0) }));
            },
            "1",
        ),
    ];
    for (name, step, typed) in cases {
        let mut talk = Talk::new();
        step(&mut talk);
        let after = talk.wait(10_000);
        assert!(!after.iter().any(|effect| matches!(effect, Effect::Ask(_))), "{name}: {after:?}");
        assert_eq!(talk.typed(), *typed, "{name}");
    }
}

#[test]
fn a_question_is_answered_by_a_word_and_enter() {
    for (word, id, told) in
        [("yes", "a", "Allow"), ("reject", "r", "Reject"), ("2", "r", "Reject"), (" no ", "r", "Reject")]
    {
        let mut talk = Talk::new();
        talk.is_asked("wait_1");
        talk.types(word);
        assert_eq!(talk.key(Key::Enter), [answer("wait_1", id, told)], "{word}");
    }
}

#[test]
fn a_line_that_is_no_option_is_a_message_only_if_it_is_insisted_on() {
    let mut talk = Talk::new();
    talk.is_asked("wait_1");
    talk.types("do it differently");
    assert_eq!(talk.key(Key::Enter), []);
    assert!(talk.panel().contains("no such option"), "{}", talk.panel());
    talk.types("!");
    assert_eq!(talk.key(Key::Enter), [], "it is another line");
    assert_eq!(talk.key(Key::Enter), [send(1, "do it differently!")]);
}

#[test]
fn a_line_that_was_begun_before_the_question_is_not_taken_for_its_answer() {
    let mut talk = Talk::new();
    talk.types("yes");
    talk.is_asked("wait_1");
    assert_eq!(talk.key(Key::Enter), []);
    assert!(talk.panel().contains("came up while you typed"), "{}", talk.panel());
    assert_eq!(talk.key(Key::Enter), [answer("wait_1", "a", "Allow")], "now it was seen");
    // Sent in the moment in which it comes up.
    let mut talk = Talk::new();
    talk.types("and the tests");
    talk.piece(permission("wait_1"));
    assert_eq!(talk.key(Key::Enter), []);
    assert_eq!(talk.typed(), "and the tests");
    talk.wait(60);
    talk.wait(400);
    assert_eq!(talk.key(Key::Enter), [], "it was no answer, and now it is seen that it is none");
    assert!(talk.panel().contains("no such option"), "{}", talk.panel());
    assert_eq!(talk.key(Key::Enter), [send(1, "and the tests")]);
}

#[test]
fn a_question_is_put_although_the_agent_goes_on_talking() {
    let mut talk = Talk::new();
    talk.piece(permission("wait_1"));
    let mut shown = Vec::new();
    for _ in 0..40 {
        talk.now += ms(50);
        shown.extend(lines(&talk.piece(Piece::Answer("word ".into()))));
    }
    assert_eq!(shown.len(), 3, "{shown:?}");
}

#[test]
fn words_answer_a_question_that_wants_words() {
    let mut talk = Talk::new();
    talk.piece(Piece::Asked(Ask::read("wait_1", "question", &json!({"params": {"message": "colour?"}}))));
    talk.wait(60);
    talk.wait(400);
    talk.types("yes, red");
    let expected = Request::Answer {
        wait: "wait_1".into(),
        answer: NewAnswer::text("yes, red"),
        told: "yes, red".into(),
    };
    assert_eq!(talk.key(Key::Enter), [Effect::Ask(expected)]);
}

#[test]
fn an_answer_that_is_not_taken_leaves_the_question() {
    let mut talk = Talk::new();
    talk.is_asked("wait_1");
    talk.types("1");
    talk.wait(300);
    let refused = |too_late| Reply::NotAnswered {
        wait: "wait_1".into(),
        told: "Allow".into(),
        too_late,
        why: "no daemon".into(),
    };
    assert_eq!(lines(&talk.handle(Event::Reply(refused(false)))), ["not answered: no daemon"]);
    talk.types("2");
    assert_eq!(talk.wait(300), [answer("wait_1", "r", "Reject")]);
    assert_eq!(
        lines(&talk.handle(Event::Reply(refused(true)))),
        ["too late: your answer (Allow) was not used"]
    );
}

#[test]
fn ctrl_c_clears_the_line_and_then_says_how_to_leave() {
    let mut talk = Talk::new();
    talk.types("text");
    assert_eq!(talk.key(Key::Interrupt), []);
    assert!(talk.typed().is_empty() && !talk.panel().contains("/detach"));
    assert_eq!(talk.key(Key::Interrupt), []);
    assert!(talk.panel().contains("/cancel") && talk.panel().contains("/detach"), "{}", talk.panel());
    talk.key(Key::Up);
    assert_eq!(talk.typed(), "text", "what was cleared is not lost");
}

#[test]
fn leaving_says_how_to_come_back_and_waits_for_what_was_sent() {
    for leave in ["/detach", ""] {
        let mut talk = Talk::new();
        talk.types("text");
        talk.key(Key::EndOfInput);
        assert_eq!(talk.typed(), "text", "only on an empty line");
        talk.key(Key::Enter);
        talk.types(leave);
        let key = if leave.is_empty() { Key::EndOfInput } else { Key::Enter };
        assert_eq!(talk.key(key), [], "the message is on its way");
        let left = talk.handle(Event::Reply(Reply::Sent { number: 1, began: None }));
        assert_eq!(lines(&left), ["left; the agent keeps working. Come back with:", "rekindle attach 1"]);
        assert_eq!(left.last(), Some(&Effect::Leave(Exit::Ok)));
    }
    let mut talk = Talk::new();
    talk.piece(Piece::Ended("run_1".into(), RunEnd::Completed { stop_reason: None }));
    let left = talk.handle(Event::Signal);
    assert_eq!(lines(&left), ["left. Come back with:", "rekindle attach 1"]);
    assert_eq!(left.last(), Some(&Effect::Leave(Exit::Detached)));
}

#[test]
fn the_first_message_begins_a_session() {
    let mut core = Core::new(None, Standing::default());
    let keys = |core: &mut Core, text: &str| {
        text.chars().for_each(|c| drop(core.handle(Event::Key(Key::Char(c)), ms(0))));
        core.handle(Event::Key(Key::Enter), ms(0))
    };
    assert_eq!(keys(&mut core, "/diff"), []);
    assert_eq!(keys(&mut core, "hello"), [send(1, "hello")]);
    let began = core.handle(Event::Reply(Reply::Sent { number: 1, began: Some("sess_2".into()) }), ms(1));
    assert_eq!(began[0], Effect::Follow { session: "sess_2".into(), after: 0 });
}

#[test]
fn commands_are_asked_of_the_daemon() {
    let mut talk = Talk::new();
    let offer = |id: &str, name: &str| Offer { id: id.into(), name: name.into(), current: false };
    talk.hear(News::Fact(Fact::Offers { modes: vec![offer("m1", "Careful")], models: Vec::new() }));
    talk.hear(News::Fact(Fact::Commands(vec![AgentCommand {
        name: "review".into(),
        description: String::new(),
    }])));
    for (line, expected) in [
        ("/cancel", Request::Cancel),
        ("/resume", Request::Resume),
        ("/diff", Request::Diff),
        ("/tasks", Request::Tasks),
        ("/fork", Request::Fork),
        ("/mode careful", Request::Set(ChangeOf::Mode("m1".into()))),
        ("/model opus", Request::Set(ChangeOf::Model("opus".into()))),
        ("/rewind", Request::PlanRewind),
        ("/rewind yes", Request::PlanRewind),
        ("/review this", Request::Send { number: 1, text: "/review this".into() }),
    ] {
        talk.types(line);
        let effects = talk.key(Key::Enter);
        assert_eq!(effects.last(), Some(&Effect::Ask(expected)), "{line}");
        // One of ours is shown again, because what it answers comes later; one of the agent's when it is taken.
        let is_ours = !line.starts_with("/review");
        assert_eq!(lines(&effects), if is_ours { vec![format!("> {line}")] } else { Vec::new() });
    }
    talk.handle(Event::Reply(Reply::Planned { run: "run_1".into(), lines: vec![(PLAIN, "plan".into())] }));
    talk.types("/rewind yes");
    assert_eq!(talk.key(Key::Enter).last(), Some(&Effect::Ask(Request::Rewind { run: "run_1".into() })));
    talk.types("/nosuch");
    assert_eq!(talk.key(Key::Enter), []);
    assert!(
        talk.panel().contains("there is no command /nosuch") && talk.typed() == "/nosuch",
        "{}",
        talk.panel()
    );
    talk.core.editor.take();
    talk.types("/mo");
    talk.key(Key::Complete);
    talk.types(" ");
    talk.key(Key::Complete);
    assert_eq!(talk.typed(), "/mode m1 ");
}

#[test]
fn a_mode_or_model_that_is_not_offered_is_not_asked_for() {
    let mut talk = Talk::new();
    let offer = |id: &str, name: &str| Offer { id: id.into(), name: name.into(), current: false };
    let offers = |modes| News::Fact(Fact::Offers { modes, models: Vec::new() });
    let types = |talk: &mut Talk, line: &str| {
        talk.types(line);
        talk.key(Key::Enter)
    };
    // It is not known yet what there is.
    let asked = Effect::Ask(Request::Set(ChangeOf::Mode("nope".into())));
    assert_eq!(types(&mut talk, "/mode nope").last(), Some(&asked));
    talk.hear(offers(vec![offer("m1", "Careful"), offer("m2", "Fast")]));
    let refused = types(&mut talk, "/mode nope");
    assert!(!refused.iter().any(|effect| matches!(effect, Effect::Ask(_))), "{refused:?}");
    let said = r#"not changed: the agent has no mode "nope"; it offers: m1, m2"#;
    assert_eq!(lines(&refused), ["> /mode nope", said]);
    let asked = Effect::Ask(Request::Set(ChangeOf::Model("opus".into())));
    assert_eq!(types(&mut talk, "/model opus").last(), Some(&asked), "nothing is known of models");
    talk.hear(offers((0..50).map(|number| offer(&format!("n{number}"), "")).collect()));
    let many = lines(&types(&mut talk, "/mode nope")).pop().expect("a line");
    assert!(many.ends_with(", n18, n19 and 30 more"), "{many}");
}

#[test]
fn a_rewind_or_fork_goes_on_in_the_other_session() {
    let mut talk = Talk::new();
    talk.is_asked("wait_1");
    talk.types("typed");
    let moved = Reply::Moved { session: "sess_2".into(), after: 7, lines: vec![(PLAIN, "moved".into())] };
    let effects = talk.handle(Event::Reply(moved));
    assert_eq!(effects[1], Effect::Follow { session: "sess_2".into(), after: 7 });
    assert_eq!(talk.typed(), "typed");
    assert!(!talk.panel().contains("answers") && talk.panel().contains("ready"), "{}", talk.panel());
}

#[test]
fn a_daemon_that_goes_away_is_told_of_and_takes_nothing_along() {
    let mut talk = Talk::new();
    talk.types("half a sen");
    assert_eq!(talk.hear(News::Away), []);
    assert!(talk.panel().contains("the daemon is gone: restarting it"), "{}", talk.panel());
    talk.types("tence");
    talk.hear(News::Stopped { why: "the daemon was stopped".into() });
    assert!(talk.panel().contains("your next message starts it again"), "{}", talk.panel());
    assert_eq!(lines(&talk.hear(News::Back { away: true })), ["a daemon is running again"]);
    assert_eq!(talk.hear(News::Back { away: false }), []);
    assert!(talk.panel().contains("working") && talk.typed() == "half a sentence", "{}", talk.panel());
}

#[test]
fn a_run_that_was_cut_is_waited_for_until_it_is_known_what_becomes_of_it() {
    let mut talk = Talk::new();
    talk.piece(Piece::Ended("run_1".into(), RunEnd::Interrupted));
    assert!(talk.panel().contains("it may continue automatically"), "{}", talk.panel());
    let stands = |held: Option<&str>| {
        let held = held.map(Into::into);
        Event::Reply(Reply::Stands(Box::new(Standing {
            is_cut: true,
            held,
            next: "next".into(),
            ..Standing::default()
        })))
    };
    assert_eq!(talk.handle(stands(None)), []);
    assert_eq!(lines(&talk.handle(stands(Some("held")))), ["held", "next"]);
    assert_eq!(talk.handle(stands(Some("held"))), [], "it is said once");
    assert!(talk.panel().contains("interrupted"), "{}", talk.panel());
}

#[test]
fn the_panel_fits_and_shows_where_is_typed() {
    let mut talk = Talk::new();
    talk.handle(Event::Paste("line\n".repeat(50)));
    for (width, height) in [(80, 24), (20, 5), (4, 1), (1, 1)] {
        let panel = talk.core.panel(width, height, talk.now);
        assert!(panel.rows.len() <= height.saturating_sub(2).max(1), "{width}x{height}");
        assert!(panel.cursor.0 < panel.rows.len(), "{width}x{height}");
    }
    let panel = talk.core.panel(80, 24, talk.now);
    assert_eq!(panel.cursor, (21, 2), "the end is seen");
}

#[test]
fn what_was_just_set_here_is_not_told_as_a_drift() {
    let drift = |text: &str| Piece::Drifted(Box::new(serde_json::from_str::<Drift>(text).expect("a drift")));
    let mode = r#"{"settings":[{"name":"mode","from":null,"to":"plan"}],"files_unknown":"no checkpoint"}"#;
    let told = [
        "since the last turn: which files changed is not known: no checkpoint",
        "since the last turn: mode was not set and is plan now",
    ];
    let mut talk = Talk::new();
    assert_eq!(lines(&talk.piece(drift(mode))), told, "somebody else set it");
    talk.types("/mode plan");
    talk.key(Key::Enter);
    assert_eq!(lines(&talk.piece(drift(mode))), [""; 0]);
    assert_eq!(lines(&talk.piece(drift(mode))), told, "that was one turn");
    talk.types("/model opus");
    talk.key(Key::Enter);
    let both = mode.replace("[{", r#"[{"name":"model","from":null,"to":"opus"},{"#);
    assert_eq!(lines(&talk.piece(drift(&both))), told, "the mode was set elsewhere");
}
