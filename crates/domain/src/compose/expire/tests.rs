//! What is recorded when time runs out, from state and tokens alone.

use super::*;
use crate::id::SessionId;
use crate::session::tests::script::now;
use crate::time::Timestamp;

const SESSION: &str = "sess_1";

fn at(second: i64) -> Timestamp {
    Timestamp::from_millis(second * 1000)
}

/// Folds records that were written at second 1 each.
fn folded(records: &[(&str, &str)]) -> (SessionState, TokenIndex) {
    let session: SessionId = SESSION.parse().expect("an id");
    let (mut state, mut tokens) = (SessionState::empty(session), TokenIndex::empty(session));
    for (seq, (kind, text)) in (1..).zip(records) {
        let event = Event::read(kind, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        tokens.apply(seq, at(1), &event).expect("legal");
        state.apply(seq, at(1), &event).expect("legal");
    }
    state.updated_at = at(1);
    (state, tokens)
}

fn waiting(kind: &str) -> Vec<(&'static str, String)> {
    let scope = r#"{"session_id":"sess_1","run_id":"run_1","wait_id":"wait_1"}"#;
    let minted = |token: &str, expires: &str| {
        format!(
            r#"{{"resume_token_id":"{token}","wait_id":"wait_1","secret_hash":"00","scope":{scope},"expires_at":"{expires}"}}"#
        )
    };
    let (early, late) = ("1970-01-01T00:01:00.000Z", "1970-01-01T00:10:00.000Z");
    vec![
        ("session.created", r#"{"title":"t","working_dir":"/","provider":{"type":"acp"}}"#.into()),
        ("run.started", r#"{"run_id":"run_1","boot_id":"boot_1"}"#.into()),
        (
            "run.waiting",
            format!(
                r#"{{"run_id":"run_1","wait_id":"wait_1","wait_kind":"{kind}","resume_token_id":"rt_1","deadline_at":"{early}"}}"#
            ),
        ),
        ("token.minted", minted("rt_1", early)),
        ("token.minted", minted("rt_2", early)),
        ("token.minted", minted("rt_3", late)),
    ]
}

/// Returns what is recorded at that second, by kind and token or wait.
fn recorded(kind: &str, second: i64) -> Vec<String> {
    let records = waiting(kind);
    let records: Vec<(&str, &str)> = records.iter().map(|(kind, text)| (*kind, text.as_str())).collect();
    let (mut state, mut tokens) = folded(&records);
    let drafts = expire(&state, &tokens, now(at(second)));
    let shown = drafts.iter().map(|draft| match &draft.event {
        Event::TokenExpired(expired) => format!("expired {}", expired.resume_token_id),
        Event::TokenRevoked(revoked) => format!("revoked {}", revoked.resume_token_id),
        Event::RunResumed(resumed) => format!("resumed {} {:?}", resumed.wait_id, resumed.how),
        other => other.name().to_owned(),
    });
    let shown = shown.collect();
    for (seq, draft) in (100..).zip(&drafts) {
        tokens.apply(seq, at(second), &draft.event).expect("legal");
        state.apply(seq, at(second), &draft.event).expect("legal");
    }
    assert!(expire(&state, &tokens, now(at(second))).is_empty(), "once is enough");
    assert!(state.open_run().is_some(), "the run goes on");
    shown
}

#[test]
fn what_a_program_waits_for_ends_at_its_time_with_all_its_tokens() {
    assert!(recorded("external", 59).is_empty());
    let all = ["expired rt_1", "expired rt_2", "revoked rt_3", "resumed wait_1 Timeout"];
    assert_eq!(recorded("external", 60), all);
    assert_eq!(recorded("tool_result", 60), all);
}

#[test]
fn a_token_of_an_agents_wait_expires_alone_and_the_waits_own_with_the_wait() {
    assert_eq!(recorded("permission", 60), ["expired rt_2"]);
    assert_eq!(recorded("permission", 600), ["expired rt_2", "expired rt_3"]);
}

#[test]
fn nothing_expires_while_the_clock_is_behind_the_log() {
    assert!(recorded("external", 0).is_empty());
}
