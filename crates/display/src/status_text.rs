//! A session's status in words and colours, the same wherever it is shown. The status itself is derived by the domain.

use anstyle::Style;
use rekindle_domain::event::tool_label;
use rekindle_domain::projector::{HolderProof, SessionStatus};
use rekindle_terminal::output::{BAD, COURSE, DIM, GOOD, WARN};
use rekindle_wire::view::{
    Connection, HealthState, LEFT_ALONE, RunState, RunView, SessionView, WaitKind, WaitState,
};

use crate::hints::ours;
use crate::record_text::successor;
use crate::worktree_text::{WorktreeNext, next_of_worktree};

/// Tool calls that are named one by one.
const SHOWN_CALLS: usize = 5;

/// How the latest run stands, as far as the status does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Failed,
    Cancelled,
    Cancelling,
    /// Its directory is captured, and its prompt waits for that.
    Checkpointing,
    /// Nobody works on it: its agent cannot be launched without variables that the daemon does not have.
    Held,
    /// It takes no more messages.
    Closed,
    Usual,
}

fn course(session: &SessionView) -> Course {
    let state = session.run.as_ref().map(|run| run.state);
    match (session.status, state) {
        // Its agent may still be on its way out.
        (status, _)
            if session.closed && !matches!(status, SessionStatus::Running | SessionStatus::Waiting) =>
        {
            Course::Closed
        }
        (SessionStatus::Idle, Some(RunState::Failed)) => Course::Failed,
        (SessionStatus::Idle, Some(RunState::Cancelled)) => Course::Cancelled,
        (SessionStatus::Running | SessionStatus::Waiting, Some(RunState::Cancelling)) => Course::Cancelling,
        (SessionStatus::Running, Some(RunState::Checkpointing)) => Course::Checkpointing,
        (SessionStatus::Running, _) if !session.missing_env.is_empty() => Course::Held,
        _ => Course::Usual,
    }
}

/// Tells whether a session's log is damaged: nothing can be added to it.
pub(crate) fn is_damaged(session: &SessionView) -> bool {
    session.health.state == HealthState::Damaged
}

/// Returns why nothing happens in a session. Damage is told by its health, and not twice.
pub fn held(session: &SessionView) -> Option<&str> {
    session.held.as_deref().filter(|_| !is_damaged(session))
}

/// Tells why a session is left alone although its log is not damaged: it cannot be loaded.
pub fn trouble(session: &SessionView) -> Option<&str> {
    let unusable = matches!(session.health.state, HealthState::Degraded | HealthState::Quarantined);
    let detail = session.health.detail.as_deref().filter(|_| unusable);
    detail.filter(|detail| detail.ends_with(LEFT_ALONE))
}

/// Tells whether not even the first record of a session can be read, or nothing else was read yet: its status and its times are
/// then those of a session in which nothing ever happened, and say nothing.
pub fn is_unknown(session: &SessionView) -> bool {
    is_being_read(session) || session.last_seq == 0 && (is_damaged(session) || trouble(session).is_some())
}

/// Tells whether a session's log is so long that the daemon, which has just begun, is still reading it.
fn is_being_read(session: &SessionView) -> bool {
    session.health.state == HealthState::Reading
}

/// Returns the status in a word or two, for lists.
pub fn label(session: &SessionView) -> String {
    if is_being_read(session) {
        return "reading".into();
    }
    if is_unknown(session) {
        return if is_damaged(session) { "damaged" } else { "unreadable" }.into();
    }
    match course(session) {
        Course::Failed => "idle, failed".into(),
        Course::Cancelled => "idle, cancelled".into(),
        Course::Cancelling => "cancelling".into(),
        Course::Checkpointing => "checkpointing".into(),
        Course::Held => "held".into(),
        Course::Closed => "closed".into(),
        Course::Usual => session.status.to_string(),
    }
}

/// The words of [`label`] that are no status of their own: what is known of a session beside it.
pub const SHOWN_WORDS: &[&str] = &[
    "failed",
    "cancelled",
    "cancelling",
    "checkpointing",
    "held",
    "closed",
    "damaged",
    "unreadable",
    "reading",
];

/// Returns every word for the status of a session: its own, and those that it is shown with.
pub fn status_words(session: &SessionView) -> Vec<String> {
    let mut words: Vec<String> = label(session).split(", ").map(str::to_owned).collect();
    // What nothing is known of has the status of a session in which nothing happened.
    if !is_unknown(session) {
        words.push(session.status.to_string());
    }
    words
}

/// Returns how a status looks.
pub fn style(session: &SessionView) -> Style {
    if is_being_read(session) {
        return WARN;
    }
    if is_unknown(session) {
        return BAD;
    }
    match (course(session), session.status) {
        (Course::Failed, _) => BAD,
        (Course::Closed, _) => DIM,
        (Course::Cancelled | Course::Cancelling | Course::Held, _) => WARN,
        (
            Course::Usual,
            SessionStatus::InterruptedStartup
            | SessionStatus::InterruptedWaiting
            | SessionStatus::InterruptedAgent,
        ) => BAD,
        (Course::Usual, SessionStatus::Waiting) => WARN,
        (Course::Checkpointing, _) | (Course::Usual, SessionStatus::Running) => COURSE,
        (Course::Usual, SessionStatus::Idle) => GOOD,
    }
}

/// Returns what went wrong in the last run of a session that does nothing now.
pub fn last_run(session: &SessionView) -> Option<String> {
    let (how, colon) = match course(session) {
        Course::Failed => ("failed", ":"),
        Course::Cancelled => ("was cancelled", ""),
        Course::Cancelling | Course::Checkpointing | Course::Held | Course::Closed | Course::Usual => {
            return None;
        }
    };
    let detail = session.run.as_ref().and_then(|run| run.detail.as_deref());
    let detail = detail.map(|detail| if detail == "by local" { "by you" } else { detail });
    Some(format!("last run {how}{}", detail.map(|detail| format!("{colon} {detail}")).unwrap_or_default()))
}

/// Returns what a session was forked from.
pub fn forked_from(session: &SessionView) -> Option<String> {
    let from = session.forked_from?;
    Some(format!("from {} after record {}", from.session_id, from.seq))
}

/// Tells whether a session's holder is known to live.
pub fn agent_lives(session: &SessionView) -> bool {
    session.evidence.holder.is_some_and(|holder| holder.alive == Some(true))
}

/// Says what a status means for this session; `unheard` tells why no daemon said so, if none did.
pub fn meaning(session: &SessionView, unheard: Option<&str>) -> String {
    if is_unknown(session) {
        let word = if is_damaged(session) { "damaged" } else { "unreadable" };
        return format!("{word}, not even its first record can be read");
    }
    let wait = session.waits.first().map_or("an answer", |wait| waited_for(wait.kind));
    let detail = session.run.as_ref().and_then(|run| run.detail.as_deref());
    let alone = unheard.filter(|_| agent_lives(session));
    let unseen = alone.map(|why| format!("; its agent keeps running; {why}")).unwrap_or_default();
    let told = match session.status {
        SessionStatus::InterruptedStartup | SessionStatus::InterruptedAgent => match detail {
            Some(detail) => format!("its run was interrupted: {detail}"),
            // Nobody goes on with it.
            None if is_damaged(session) => "its agent is gone".into(),
            None if session.held.is_some() => {
                "its agent is gone; the next daemon reads its remaining output".into()
            }
            None => "its agent is gone; the next daemon reads its remaining output and continues from there"
                .into(),
        },
        SessionStatus::InterruptedWaiting => {
            let gone = !is_damaged(session) && session.waits.iter().any(|wait| wait.state == WaitState::Void);
            let why = if gone { "; its agent is gone: an answer starts a new run" } else { "" };
            format!("it was waiting for {wait}, which can no longer be given to the agent that asked{why}")
        }
        SessionStatus::Waiting if course(session) == Course::Cancelling => {
            format!("its run waited for {wait}, and is being cancelled{unseen}")
        }
        SessionStatus::Waiting => return format!("waiting for {wait}{unseen}"),
        SessionStatus::Running if course(session) == Course::Cancelling => {
            format!("its run is being cancelled{unseen}")
        }
        SessionStatus::Running if course(session) == Course::Held => {
            let names = session.missing_env.join(", ");
            return format!(
                "held, no agent is working on its run: it needs {names}, which the daemon does not have"
            );
        }
        SessionStatus::Running if course(session) == Course::Checkpointing => {
            "a checkpoint of its directory is taken before its agent gets the prompt".into()
        }
        SessionStatus::Running => match alone {
            Some(why) => format!("its agent keeps working; {why}"),
            None => running(session).into(),
        },
        SessionStatus::Idle => match (last_run(session), &session.run) {
            (Some(last), _) => last,
            (None, None) => "it has not been given a prompt yet".into(),
            (None, Some(RunView { detail: Some(detail), .. })) => {
                format!("its last run ended with: {detail}")
            }
            (None, Some(_)) => "its last run completed".into(),
        },
    };
    match course(session) {
        Course::Closed => format!("closed{}, {told}", successor(session.replaced_by)),
        _ => format!("{}, {told}", session.status),
    }
}

/// Returns what a wait is for.
fn waited_for(kind: WaitKind) -> &'static str {
    match kind {
        WaitKind::Permission => "permission",
        WaitKind::ToolResult => "a tool result",
        WaitKind::External => "a program's question",
        WaitKind::Question | WaitKind::Unknown => "an answer",
    }
}

fn running(session: &SessionView) -> &'static str {
    if session.connection == Connection::Loading {
        return "its agent is loading the conversation";
    }
    match session.evidence.holder.map(|holder| holder.proof) {
        Some(HolderProof::Pending) => "its run is in progress, according to the log",
        Some(HolderProof::Unresponsive) => {
            "its run is in progress, according to the log; its agent does not answer"
        }
        _ => "its run is in progress",
    }
}

/// Tells what a command that has written nothing may be: an agent that waits to be spoken to in its protocol.
pub fn silent_command(session: &SessionView) -> Option<&'static str> {
    let silent = session.profile == "exec" && session.last_words.as_deref().is_none_or(str::is_empty);
    match session.run.as_ref()?.state {
        _ if !silent => None,
        RunState::Running => Some(
            "the command has written nothing so far; if it is an agent that speaks ACP, cancel and run it with --profile acp",
        ),
        RunState::Completed => {
            Some("the command wrote nothing; if it is an agent that speaks ACP, run it with --profile acp")
        }
        _ => None,
    }
}

/// Says what may or may not have happened when the last run was cut.
pub fn uncertain(session: &SessionView) -> Vec<String> {
    let Some(open) = session.run.as_ref().and_then(|run| run.uncertain.as_ref()) else { return Vec::new() };
    let mut lines: Vec<String> =
        open.tool_calls.iter().map(|call| tool_label(&call.title, call.input.as_deref())).collect();
    if lines.len() > SHOWN_CALLS {
        let more = lines.split_off(SHOWN_CALLS).len();
        lines.push(format!("and {more} more; {} shows them", ours(format_args!("log {}", session.id))));
    }
    // Whoever knows which calls it may have been needs no more than them.
    if open.turn && lines.is_empty() {
        lines.push("the agent's last action may or may not have happened".into());
    }
    lines
}

/// Says what can be done now. What needs a daemon starts one. Whatever would add to a damaged log is refused, so that there
/// only the damage is spoken of.
pub fn next(session: &SessionView) -> String {
    let next = next_of_session(session);
    match next_of_worktree(session) {
        Some(WorktreeNext::Instead(text)) => text,
        Some(WorktreeNext::First(text)) => format!("{text}; {next}"),
        None => next,
    }
}

fn next_of_session(session: &SessionView) -> String {
    let told = |command: &str| ours(format_args!("{command} {}", session.id));
    match session.status {
        _ if session.health.state == HealthState::Quarantined => {
            format!("{} frees it; rekindle doctor says more", told("doctor --release"))
        }
        _ if is_being_read(session) => format!("{} waits until it is read", told("status")),
        _ if is_unknown(session) => {
            "restore its log from a backup; rekindle doctor says what else can be done".into()
        }
        _ if trouble(session).is_some() => {
            format!("rekindle doctor says what can be done; {} shows what was recorded", told("log"))
        }
        _ if is_damaged(session) => format!(
            "restore its log from a backup; rekindle doctor says what else can be done; {} shows the undamaged part",
            told("log")
        ),
        _ if course(session) == Course::Cancelling => format!("{} watches it end", told("attach")),
        _ if course(session) == Course::Closed => {
            let goes_on = match session.replaced_by {
                Some(successor) => {
                    format!("{} shows how it continues", ours(format_args!("status {successor}")))
                }
                None => format!("{} continues from it in a new session", told("fork")),
            };
            format!("{goes_on}; {} shows what happened", told("log"))
        }
        _ if !session.missing_env.is_empty() && session.status != SessionStatus::Idle => {
            let names: String = session.missing_env.iter().map(|name| format!(" --env {name}")).collect();
            format!("{}{names}, in a shell where these are set, passes what its agent needs", told("resume"))
        }
        // What was left of it was cancelled; a run that the log does not end yet is cut by the next daemon.
        SessionStatus::InterruptedStartup | SessionStatus::InterruptedAgent
            if session
                .run
                .as_ref()
                .is_some_and(|run| run.state == RunState::Interrupted && !run.resumable) =>
        {
            format!("{} TEXT continues it; the rest of its run was cancelled", told("send"))
        }
        SessionStatus::InterruptedStartup | SessionStatus::InterruptedAgent if session.profile == "exec" => {
            format!("{} runs its command again, from the beginning", told("resume"))
        }
        // What holds a session is told as soon as its cut is recorded.
        SessionStatus::InterruptedStartup | SessionStatus::InterruptedAgent
            if session.held.is_none()
                && session.run.as_ref().is_some_and(|run| run.state == RunState::Interrupted) =>
        {
            format!("nothing: it continues automatically; {} watches it", told("attach"))
        }
        // What nobody answered in time is over; what an agent asked that is gone is listed.
        SessionStatus::InterruptedWaiting if session.waits.is_empty() => {
            format!("{} TEXT continues it", told("send"))
        }
        SessionStatus::InterruptedStartup
        | SessionStatus::InterruptedWaiting
        | SessionStatus::InterruptedAgent => format!("{} continues it", told("resume")),
        SessionStatus::Waiting => match session.waits.iter().find(|wait| wait.state != WaitState::Void) {
            Some(wait) => {
                let answer = ours(format_args!("answer {} OPTION", wait.wait_id));
                format!("{answer}; {} shows the options", ours("waits"))
            }
            None => format!("{} shows what is asked", ours("waits")),
        },
        SessionStatus::Running => format!("{} watches it", told("attach")),
        SessionStatus::Idle if course(session) == Course::Failed => {
            format!("{} TEXT tries again; {} shows what it did", told("send"), told("log"))
        }
        SessionStatus::Idle => {
            format!("{} opens a conversation; {} TEXT continues it", told("attach"), told("send"))
        }
    }
}

#[cfg(test)]
mod tests {
    use rekindle_testkit::session_view::session;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_closed_session_says_that_it_is_and_what_goes_on_from_it() {
        let run = json!({"run_id": "run_1", "state": "completed"});
        let closed = |status| SessionView { closed: true, ..session(status, run.clone(), Value::Null) };
        assert_eq!(label(&closed("idle")), "closed");
        assert_eq!(label(&closed("interrupted_startup")), "closed");
        assert_eq!(label(&closed("running")), "running", "its agent is on its way out");
        assert_eq!(meaning(&closed("idle"), None), "closed, its last run completed");
        assert!(next(&closed("idle")).contains("fork sess_1"), "{}", next(&closed("idle")));
        let replaced = SessionView { replaced_by: "sess_2".parse().ok(), ..closed("idle") };
        assert_eq!(meaning(&replaced, None), "closed, sess_2 replaced it, its last run completed");
        assert!(next(&replaced).contains("status sess_2"), "{}", next(&replaced));
    }

    #[test]
    fn a_status_says_how_the_last_run_went_and_whether_its_agent_lives() {
        let run =
            |state: &str, detail: Option<&str>| json!({"run_id": "run_1", "state": state, "detail": detail});
        let lives = json!({"id": "h_1", "alive": true, "proof": "lock"});
        let gone = json!({"id": "h_1", "alive": false, "proof": "gone"});
        let cut = "its agent is gone; the next daemon reads its remaining output and continues from there";
        for (status, run, holder, daemon, list, whole) in [
            (
                "idle",
                Value::Null,
                Value::Null,
                true,
                "idle",
                "idle, it has not been given a prompt yet".to_owned(),
            ),
            (
                "idle",
                run("completed", None),
                Value::Null,
                true,
                "idle",
                "idle, its last run completed".into(),
            ),
            (
                "idle",
                run("completed", Some("max_tokens")),
                Value::Null,
                true,
                "idle",
                "idle, its last run ended with: max_tokens".into(),
            ),
            (
                "idle",
                run("failed", Some("no room")),
                lives.clone(),
                true,
                "idle, failed",
                "idle, last run failed: no room".into(),
            ),
            ("idle", run("failed", None), Value::Null, true, "idle, failed", "idle, last run failed".into()),
            (
                "idle",
                run("cancelled", Some("by local")),
                Value::Null,
                false,
                "idle, cancelled",
                "idle, last run was cancelled by you".into(),
            ),
            (
                "running",
                run("cancelling", None),
                lives.clone(),
                true,
                "cancelling",
                "running, its run is being cancelled".into(),
            ),
            (
                "running",
                run("running", None),
                lives.clone(),
                true,
                "running",
                "running, its run is in progress".into(),
            ),
            (
                "running",
                run("running", None),
                lives,
                false,
                "running",
                "running, its agent keeps working; no daemon".into(),
            ),
            (
                "interrupted_startup",
                run("running", None),
                gone,
                false,
                "interrupted_startup",
                format!("interrupted_startup, {cut}"),
            ),
            (
                "interrupted_agent",
                run("interrupted", Some("the agent's process ended (signal 9)")),
                Value::Null,
                true,
                "interrupted_agent",
                "interrupted_agent, its run was interrupted: the agent's process ended (signal 9)".into(),
            ),
        ] {
            let session = session(status, run, holder);
            assert_eq!(
                (label(&session).as_str(), meaning(&session, (!daemon).then_some("no daemon"))),
                (list, whole)
            );
        }
    }

    #[test]
    fn what_continues_automatically_is_not_said_to_need_anybody() {
        let cut = json!({"run_id": "run_1", "state": "interrupted"});
        let mut shown = session("interrupted_agent", cut, Value::Null);
        shown.run.as_mut().expect("a run").resumable = true;
        assert_eq!(next(&shown), "nothing: it continues automatically; rekindle attach sess_1 watches it");
        shown.held = Some("it was told to ask".into());
        assert_eq!(next(&shown), "rekindle resume sess_1 continues it");
        // Nobody has recorded the cut yet; under `never` no daemon goes on with it.
        let open = json!({"run_id": "run_1", "state": "running"});
        let mut shown = session("interrupted_startup", open, Value::Null);
        assert!(meaning(&shown, None).contains("continues from there"));
        shown.held = Some("it was told not to".into());
        assert!(!meaning(&shown, None).contains("continues from there"));
    }

    #[test]
    fn every_word_for_a_status_can_be_asked_for() {
        let known = |word: &String| {
            let statuses = SessionStatus::ALL.map(SessionStatus::as_str);
            statuses.iter().chain(SHOWN_WORDS).any(|one| one == word)
        };
        for (status, state) in [
            ("idle", "failed"),
            ("idle", "cancelled"),
            ("idle", "completed"),
            ("running", "cancelling"),
            ("running", "checkpointing"),
            ("waiting", "waiting"),
            ("interrupted_agent", "interrupted"),
        ] {
            let mut shown = session(status, json!({"run_id": "run_1", "state": state}), Value::Null);
            let words = status_words(&shown);
            assert!(words.iter().all(known) && words.contains(&status.to_owned()), "{words:?}");
            shown.closed = true;
            assert!(status_words(&shown).iter().all(known));
            shown.health = serde_json::from_value(json!({"state": "reading"})).expect("a health");
            assert_eq!(status_words(&shown), ["reading"]);
        }
    }

    #[test]
    fn a_silent_command_may_be_an_agent_that_waits_to_be_spoken_to() {
        for (profile, state, words, hints) in [
            ("exec", "running", None, true),
            ("exec", "completed", None, true),
            ("exec", "completed", Some("done"), false),
            ("exec", "failed", None, false),
            ("acp", "running", None, false),
        ] {
            let mut session = session("running", json!({"run_id": "run_1", "state": state}), Value::Null);
            (session.profile, session.last_words) = (profile.into(), words.map(Into::into));
            let hint = silent_command(&session);
            assert_eq!(hint.is_some_and(|hint| hint.contains("--profile acp")), hints, "{profile} {state}");
        }
    }

    #[test]
    fn a_run_that_waits_for_variables_is_not_said_to_go_on() {
        let run = json!({"run_id": "run_1", "state": "running"});
        let mut session = session("running", run, Value::Null);
        session.missing_env = vec!["A_KEY".into(), "B_KEY".into()];
        assert_eq!(label(&session), "held");
        assert!(meaning(&session, None).contains("needs A_KEY, B_KEY"), "{}", meaning(&session, None));
        assert!(next(&session).starts_with("rekindle resume sess_1 --env A_KEY --env B_KEY"));
    }

    #[test]
    fn of_a_session_that_is_still_being_read_no_status_is_told() {
        let mut session = session("idle", Value::Null, Value::Null);
        session.health = serde_json::from_value(json!({"state": "reading"})).expect("a health");
        session.last_seq = 1;
        assert_eq!((label(&session).as_str(), is_unknown(&session)), ("reading", true));
        assert_eq!(next(&session), "rekindle status sess_1 waits until it is read");
    }

    #[test]
    fn what_would_add_to_a_damaged_log_is_not_offered() {
        let damaged = json!({"state": "damaged", "detail": "at byte 7: it has no end"});
        for (status, last_seq) in
            [("idle", 4), ("interrupted_startup", 4), ("waiting", 4), ("running", 4), ("idle", 0)]
        {
            let mut session = session(status, Value::Null, Value::Null);
            session.health = serde_json::from_value(damaged.clone()).expect("a health");
            session.last_seq = last_seq;
            let next = next(&session);
            assert!(next.contains("backup") && next.contains("rekindle doctor"), "{status}: {next}");
            assert_eq!(next.contains("rekindle log sess_1"), last_seq > 0, "{next}");
            for word in ["resume", "send", "answer", "attach"] {
                assert!(!next.contains(word), "{status}: {next}");
            }
            assert_eq!(label(&session), if last_seq == 0 { "damaged" } else { status });
            assert!(!meaning(&session, None).contains("continues from there"));
        }
    }
}
