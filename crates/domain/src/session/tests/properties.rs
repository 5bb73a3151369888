//! What holds for every log: folds of prefixes, snapshots in the middle, half lists, refused events.

use proptest::prelude::*;

use super::log::{events, legal_logs};
use super::*;
use crate::line::Line;

/// Returns the lines of a log with the byte after each one's newline.
fn lines(log: &Log) -> Vec<(Line<'_>, u64)> {
    let mut end = 0;
    let texts = log.bytes.split_inclusive(|byte| *byte == b'\n');
    texts
        .map(|text| {
            end += text.len() as u64;
            (Line::parse(&text[..text.len() - 1]).expect("a record"), end)
        })
        .collect()
}

/// Writes a cache as a file would hold it, and reads it back.
fn reloaded<T: Serialize + serde::de::DeserializeOwned>(cache: &T) -> T {
    let text = serde_json::to_string(cache).expect("it can be written");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn end_of_run(kind: &str) -> bool {
    matches!(kind, "run.completed" | "run.failed" | "run.cancelled" | "run.interrupted")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // I2: snapshot and token index are caches: from any of them the rest of the log leads to the same state.
    #[test]
    fn a_snapshot_anywhere_and_the_rest_is_the_fold_of_the_whole(log in legal_logs()) {
        let all = lines(&log);
        let mut prefix = Replay::new(session());
        for at in 0..=all.len() {
            let state: SessionState = reloaded(&prefix.state);
            let tokens = prefix.tokens.as_ref().map(reloaded);
            prop_assert_eq!((&state, &tokens), (&prefix.state, &prefix.tokens), "after {} records", at);
            let mut rest = Replay::from(state, tokens);
            for (line, end) in &all[at..] {
                rest.push(line, *end).expect("it follows");
            }
            prop_assert_eq!((&rest.state, &rest.tokens), (&log.replay.state, &log.replay.tokens), "from {}", at);
            prop_assert_eq!(rest.oddities.len(), 0);
            if let Some((line, end)) = all.get(at) {
                prefix.push(line, *end).expect("it follows");
            }
        }
    }

    #[test]
    fn a_writer_that_applies_what_it_writes_has_the_state_a_reader_finds(log in legal_logs()) {
        let (mut state, mut tokens) = (SessionState::empty(session()), TokenIndex::empty(session()));
        for ((ts, draft), (line, end)) in log.records.iter().zip(lines(&log)) {
            prop_assert_eq!(state.apply(line.seq, *ts, &draft.event), Ok(()));
            prop_assert_eq!(tokens.apply(line.seq, *ts, &draft.event), Ok(()));
            state.note(*ts, None, draft.source);
            let position = Position { last_seq: line.seq, log_offset: end, last_hash: line.hash };
            state.set_position(position);
            tokens.set_position(position);
        }
        prop_assert_eq!(&state, &log.replay.state);
        prop_assert_eq!(Some(&tokens), log.replay.tokens.as_ref());
    }

    #[test]
    fn putting_tool_records_off_changes_nothing(log in legal_logs()) {
        let mut putting_off = Replay::new(session()).deferring_tools();
        for (line, end) in lines(&log) {
            putting_off.push(&line, end).expect("it follows");
        }
        putting_off.settle();
        prop_assert_eq!(&putting_off.state, &log.replay.state);
        prop_assert_eq!(&putting_off.tokens, &log.replay.tokens);
    }

    #[test]
    fn a_log_may_be_cut_only_between_whole_lists(log in legal_logs()) {
        let mut replay = Replay::new(session());
        let mut whole = Position::default();
        for (line, end) in lines(&log) {
            replay.push(&line, end).expect("it follows");
            prop_assert_eq!(replay.position(), Position { last_seq: line.seq, log_offset: end, last_hash: line.hash });
            if !line.more {
                whole = replay.position();
            }
            prop_assert_eq!(replay.whole, whole, "after record {}", line.seq);
        }
    }

    // I3: no record can be taken out, doubled or moved without being noticed.
    #[test]
    fn a_missing_doubled_or_moved_line_breaks_the_chain(log in legal_logs(), pick in any::<prop::sample::Index>()) {
        let all = lines(&log);
        let at = pick.index(all.len());
        let (mut dropped, mut doubled, mut moved) = (all.clone(), all.clone(), all.clone());
        dropped.remove(at);
        doubled.insert(at, all[at]);
        moved.rotate_left(at);
        for (tampered, is_harmless) in [(dropped, at + 1 == all.len()), (doubled, false), (moved, at == 0)] {
            let mut replay = Replay::new(session());
            let whole = tampered.iter().all(|(line, end)| replay.push(line, *end).is_ok());
            prop_assert_eq!(whole, is_harmless, "line {} of {}", at, all.len());
        }
    }

    #[test]
    fn a_refused_event_leaves_state_and_tokens_as_they_were(log in legal_logs(), draft in events()) {
        let (mut state, mut tokens) = (log.replay.state.clone(), log.tokens().clone());
        let seq = state.last_seq + 1;
        if state.apply(seq, at(99), &draft.event).is_err() {
            prop_assert_eq!(&state, &log.replay.state);
        }
        if tokens.apply(seq, at(99), &draft.event).is_err() {
            prop_assert_eq!(&tokens, log.tokens());
        }
    }

    // I6: of whatever a log says, one end of a run is believed, the first.
    #[test]
    fn whatever_a_log_holds_a_run_ends_at_most_once(drafts in prop::collection::vec(events(), 0..60)) {
        let mut log = Log::of(&["session.created", "run.started"]);
        let (mut ends, mut odd) = (0, 0);
        for draft in drafts {
            let kind = draft.event.name().to_owned();
            log.record(draft, at(9), false);
            let accepted = log.replay.oddities.len() == odd;
            odd = log.replay.oddities.len();
            match kind.as_str() {
                "run.started" if accepted => ends = 0,
                kind if accepted && end_of_run(kind) => ends += 1,
                _ => {}
            }
            let ended = log.replay.state.run.as_ref().is_some_and(|run| run.end.is_some());
            prop_assert_eq!(ends, usize::from(ended), "{:?}", log);
        }
    }
}

#[test]
fn what_a_newer_version_keeps_in_a_snapshot_survives_this_one() {
    let mut log = Log::of(&[STARTED, AGENT, WAIT]);
    let mut file = serde_json::to_value(&log.replay.state).expect("JSON");
    file["galaxy"] = serde_json::json!({"stars": [1, 2.5, null], "name": "x"});
    file["options"]["weather"] = serde_json::json!("fair");
    let state: SessionState = serde_json::from_str(&file.to_string()).expect("readable");
    assert_eq!(serde_json::to_value(&state).expect("JSON"), file);
    // Also after the session went on.
    log.replay = Replay::from(state, log.replay.tokens);
    log.append("run.completed; session.closed");
    let later = serde_json::to_value(&log.replay.state).expect("JSON");
    assert_eq!((&later["galaxy"], &later["options"]), (&file["galaxy"], &file["options"]));
    assert_eq!(later["closed"], true);
}

#[test]
fn a_snapshot_begins_with_its_version() {
    let text = serde_json::to_string(&SessionState::empty(session())).expect("JSON");
    assert!(text.starts_with(r#"{"version":1,"id":"sess_1""#), "{text}");
    let text = serde_json::to_string(&TokenIndex::empty(session())).expect("JSON");
    assert!(text.starts_with(r#"{"version":1,"id":"sess_1""#), "{text}");
}
