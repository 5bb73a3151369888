//! When something happened stands in the log where that is not when it was written.

use rekindle_domain::id::HolderId;
use rekindle_domain::line::{Draft, Line, Source};
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_store::Want;
use rekindle_store::commit::Append;

use crate::common::{Home, marked};

#[test]
fn a_record_has_the_time_of_its_journal_where_it_is_another_and_can_be() {
    let home = Home::with_sessions(1, 0);
    let session = home.sessions[0];
    home.clock.advance(3_600_000);
    let now = home.clock.now();
    let source = Some(Source(HolderId::mint(1, 1), 1, 0, 2));
    let ago = |millis: i64| Some(now.plus_millis(-millis));
    let created = home.store.open_session(session).expect("opens").state.created_at;
    for (marker, at, source, expected) in [
        (1, ago(60_000), source, ago(60_000)),
        (2, ago(100), source, None),
        (3, ago(101), source, ago(101)),
        (4, ago(-60_000), source, None),
        (5, Some(created.plus_millis(-1)), source, None),
        (6, ago(60_000), None, None),
        (7, None, source, None),
    ] {
        let draft = Draft { source, at, ..marked(marker, 5, None) };
        home.store.append(Append::durable(session, vec![draft])).expect("recorded");
        let log = home.disk.read_file(format!("/home/sessions/{session}.messages.jsonl")).expect("a log");
        let last = log.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).expect("a line");
        let line = Line::parse(last).expect("a record");
        assert_eq!((line.at, line.time()), (expected, now), "{marker}: {}", line.text);
        let text = String::from_utf8_lossy(last);
        assert_eq!(text.contains(r#","at":""#), expected.is_some(), "{text}");
    }
    let written: Timestamp = home.store.open_session(session).expect("opens").state.updated_at;
    let home = home.reopen_same();
    assert_eq!(home.store.load(session, Want::Status).expect("loads").state.updated_at, written);
}
