//! Where histories are cut, and what forks begin with, in tables.

use super::*;
use crate::chain::{ChainHash, Link};
use crate::event::{Event, SessionUpdated, Worktree};
use crate::id::SessionId;
use crate::line::{self, Draft, Envelope, Line};
use crate::session::{Position, Problem, Replay};
use crate::time::Timestamp;

/// Reads a history written as words: a `+` says that the next record belongs to the same append.
fn history(words: &str) -> Vec<Mark> {
    let kind = |word: &str| match word {
        "created" => "session.created",
        "user" => "message.user",
        "start" => "run.started",
        "said" => "message.agent",
        "done" => "run.completed",
        "failed" => "run.failed",
        "cancelled" => "run.cancelled",
        "cut" => "run.interrupted",
        "revoked" => "token.revoked",
        "exit" => "agent.exited",
        other => panic!("{other}"),
    };
    let mark = |word: &str| match word.strip_suffix('+') {
        Some(word) => Mark::new(kind(word), true),
        None => Mark::new(kind(word), false),
    };
    words.split(' ').map(mark).collect()
}

#[test]
fn a_record_rounds_down_to_the_end_of_the_run_before_it() {
    let turn = "created+ user+ start said said+ done exit user+ start said cut+ revoked user+ start said";
    for (words, through, expected) in [
        (turn, 1, Some(1)),
        // Within the first run: nothing but its session had begun.
        (turn, 3, Some(1)),
        (turn, 5, Some(1)),
        (turn, 6, Some(6)),
        (turn, 7, Some(6)),
        (turn, 10, Some(6)),
        // The end of a run brings the rest of its append along.
        (turn, 11, Some(12)),
        (turn, 12, Some(12)),
        (turn, 15, Some(12)),
        ("created", 1, Some(1)),
        ("created user+ start failed", 4, Some(4)),
        ("created user+ start cancelled user", 5, Some(4)),
        // A fork that nothing was asked of, behind what it goes on from.
        ("created user+ start done created", 5, Some(5)),
        // A log of the earlier layout.
        ("user start said", 3, Some(1)),
        // Half an append at the end of what can be read.
        ("created user+ start cut+", 4, Some(4)),
        (turn, 0, None),
    ] {
        let marks = history(words);
        let mark = |seq: u64| Ok::<_, ()>(marks.get(seq as usize - 1).copied());
        assert_eq!(cut_at(through, mark), Ok(expected), "{words} through {through}");
    }
}

#[test]
fn a_history_that_cannot_be_read_is_not_cut() {
    assert_eq!(cut_at(3, |_| Err::<Option<Mark>, _>("no disk")), Err("no disk"));
    assert_eq!(cut_at(3, |_| Ok::<_, ()>(None)), Ok(None));
}

fn id(text: &str) -> SessionId {
    text.parse().expect("an id")
}

fn parent() -> SessionState {
    let mut state = SessionState::empty(id("sess_parent"));
    state.title = "Fix it".into();
    state.working_dir = "/repo".into();
    state.provider = Provider { profile: "acp".into(), agent: Some("claude".into()), ..Provider::default() };
    state.env_names = vec!["KEY".into()];
    state
}

fn at(seq: u64, h: Option<ChainHash>) -> ForkedFrom {
    ForkedFrom { session_id: id("sess_parent"), seq, h, bytes: Some(600), root: None, snapshot: None }
}

#[test]
fn a_fork_takes_over_settings_and_nothing_that_goes_on() {
    let mut parent = parent();
    parent.queue = vec!["msg_1".parse().expect("an id")];
    let same = fork(&parent, at(6, None), Wishes::default());
    assert_eq!((same.title.as_ref(), same.working_dir.as_ref()), ("Fix it", "/repo"));
    assert_eq!((same.provider, same.env_names), (parent.provider.clone(), parent.env_names.clone()));
    assert_eq!(same.forked_from.as_deref(), Some(&at(6, None)));
    let other = Provider { profile: "exec".into(), ..Provider::default() };
    let wishes = Wishes {
        title: Some("Again".into()),
        working_dir: Some("/copy".into()),
        provider: Some(other.clone()),
        env_names: Some(Vec::new()),
        ..Wishes::default()
    };
    let wished = fork(&parent, at(6, None), wishes);
    assert_eq!((wished.title.as_ref(), wished.working_dir.as_ref()), ("Again", "/copy"));
    assert_eq!((wished.provider, wished.env_names), (other, Vec::new()));
    let state = SessionState::forked(id("sess_child"), &at(6, None));
    assert_eq!((state.last_seq, state.log_offset, state.queue.len()), (6, 0, 0));
}

#[test]
fn a_successor_takes_a_worktree_over_and_a_fork_leaves_it_alone() {
    let mut parent = parent();
    let commit = Some("c0ffee".to_owned());
    let made = Worktree { commit, ..Worktree::wanted(crate::session::tests::script::worktree()) };
    parent.worktree = Some(Box::new(made.clone()));
    let shared = Worktree { shared: true, ..made.clone() };
    let elsewhere = |place: &str| Some(place.to_owned());
    for (takes_place, working_dir, expected) in [
        (true, None, Some(&made)),
        (false, None, Some(&shared)),
        (false, elsewhere("/repo"), Some(&shared)),
        (false, elsewhere("/copy"), None),
    ] {
        let wishes = Wishes { takes_place, working_dir: working_dir.clone(), ..Wishes::default() };
        let created = fork(&parent, at(6, None), wishes);
        assert_eq!(created.worktree.as_deref(), expected, "{takes_place} {working_dir:?}");
    }
}

#[test]
fn a_fork_of_a_fork_knows_whose_history_it_is() {
    let mut middle = parent();
    middle.forked_from = Some(ForkedFrom { session_id: id("sess_first"), ..at(3, None) });
    let root = |parent: &SessionState| {
        fork(parent, at(6, None), Wishes::default()).forked_from.map(|from| from.root())
    };
    assert_eq!(root(&parent()), Some(id("sess_parent")));
    assert_eq!(root(&middle), Some(id("sess_first")));
    middle.forked_from = fork(&middle, at(6, None), Wishes::default()).forked_from.as_deref().copied();
    assert_eq!(root(&middle), Some(id("sess_first")));
}

/// Writes a log, from a record on that builds upon a hash.
fn log(
    session: SessionId,
    mut seq: u64,
    mut last: Option<ChainHash>,
    drafts: Vec<Draft>,
) -> (Vec<String>, Option<ChainHash>) {
    let mut lines = Vec::new();
    for draft in drafts {
        let mut bytes = Vec::new();
        let place = Envelope { seq, ts: "2026-02-21T10:00:00.000Z", at: None, more: false };
        last = Some(line::write(&draft, place, Link::new(session, last), &mut bytes).expect("a record"));
        lines.push(String::from_utf8(bytes).expect("text").trim_end().to_owned());
        seq += 1;
    }
    (lines, last)
}

/// Folds a log from its beginning.
fn replay(session: SessionId, lines: &[String]) -> Result<Replay, Problem> {
    let (mut replay, mut end) = (Replay::new(session), 0);
    for text in lines {
        end += text.len() as u64 + 1;
        replay.push(&Line::parse(text.as_bytes())?, end)?;
    }
    Ok(replay)
}

// I3: the numbers of a fork go on where it was forked, without a gap, and its chain from the hash there.
#[test]
fn the_log_of_a_fork_says_itself_what_it_goes_on_from() {
    let (parent_id, child) = (id("sess_parent"), id("sess_child"));
    let created = fork(&parent(), at(2, None), Wishes::default());
    let first = SessionCreated { forked_from: None, ..created.clone() };
    let title =
        |text: &'static str| SessionUpdated { title: Some(text.into()), ..SessionUpdated::default() }.into();
    let (_, h) = log(parent_id, 1, None, vec![first.into(), title("one")]);
    let created = SessionCreated { forked_from: Some(Box::new(at(2, h))), ..created };
    let (lines, _) = log(child, 3, h, vec![created.clone().into(), title("two")]);
    let folded = replay(child, &lines).expect("a good log");
    assert_eq!((folded.state.last_seq, folded.state.title.as_str()), (4, "two"));
    assert_eq!(folded.state.forked_from, Some(at(2, h)));
    assert_eq!(folded.oddities, []);
    // The whole history is one chain, through both logs.
    let begin = Position { last_seq: 2, log_offset: 700, last_hash: h };
    let line = Line::parse(lines[0].as_bytes()).expect("a record");
    assert_eq!(begin.after(parent_id, &line, 800).map(|next| next.last_seq), Ok(3));
    // It is chained from that hash, and from no other.
    let (bad, _) = log(child, 3, None, vec![created.clone().into()]);
    assert_eq!(replay(child, &bad).map(drop), Err(Problem::Hash { seq: 3 }));
    let (bad, _) = log(child, 4, h, vec![created.clone().into()]);
    assert_eq!(replay(child, &bad).map(drop), Err(Problem::Sequence { expected: 3, found: 4 }));
    // Only the first record may say so.
    let mut again = lines.clone();
    again.push(lines[0].clone());
    assert_eq!(replay(child, &again).map(drop), Err(Problem::Sequence { expected: 5, found: 3 }));
    let mut state = SessionState::empty(child);
    let event = Event::from(created);
    assert!(
        state.apply(1, Timestamp::from_millis(1), &event).is_err(),
        "a fork begins behind its parent's record"
    );
    assert!(state.apply(3, Timestamp::from_millis(1), &event).is_ok());
}
