//! Requests: what can be asked of the daemon, as callers say it. What narrows a list is in `filter`.

mod fork;
mod gc;
mod import;
mod message;
mod notify;
mod pipeline;
mod rules;
mod session;
mod task;
mod umask;
mod wait;
mod worktree;

pub use fork::{ForkAt, NewFilesRestore, NewFork, NewRewind, NewSnapshotRestore};
pub use gc::Collect;
pub use import::ImportStaged;
pub use message::{Content, NewMessage};
pub use notify::TestSink;
pub use pipeline::{
    AbortPipeline, MAX_PIPELINE_TASKS, MAX_PROJECT_CONFIG, NewPipelines, ProjectFile, ResumePipeline,
};
pub use rules::whole_json;
pub use session::{AgentChoice, Change, NewSession, Resume};
pub use task::{CancelTask, MAX_BATCH, NewDependency, NewTask, NewTasks, RetryTask, TaskPriority, TasksBody};
pub use umask::Umask;
pub use wait::{NewAnswer, NewWait, NewWaitKind, ShownToken};
pub use worktree::{MergeWorktree, NewWorktree};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_has_what_was_said_and_is_read_as_it_was_meant() {
        let answer = NewAnswer { text: Some("no".into()), ..NewAnswer::default() };
        assert_eq!(serde_json::to_value(&answer).expect("a body"), json!({"text": "no"}));
        let message =
            NewMessage { content: Content::text("a \"b\""), env: BTreeMap::new(), umask: Some(Umask(0o22)) };
        let written = serde_json::to_string(&message).expect("a body");
        assert_eq!(written, r#"{"content":"a \"b\"","env":{},"umask":"0022"}"#);
        assert!(serde_json::from_str::<NewMessage>(&written).is_ok());
        let agent = AgentChoice::Command { profile: "acp".into(), command: vec!["x".into()] };
        assert_eq!(
            serde_json::to_value(agent).expect("an agent"),
            json!({"profile": "acp", "command": ["x"]})
        );
        assert_eq!(serde_json::to_value(AgentChoice::Known("claude".into())).expect("a name"), "claude");
    }

    #[test]
    fn a_place_to_fork_at_is_a_number_or_a_name() {
        let at = |text: &str| serde_json::from_str::<NewFork>(text).map(|fork| fork.at).ok();
        assert_eq!(at(r#"{"at":148}"#), Some(Some(ForkAt::Seq(148))));
        assert_eq!(at(r#"{"at":148.0}"#), Some(Some(ForkAt::Seq(148))));
        assert_eq!(at(r#"{"at":"148-1"}"#), Some(Some(ForkAt::Name("148-1".into()))));
        assert_eq!(at(r#"{"at":null}"#), Some(None));
        for bad in ["0", "-1", "0.5", "[148]", "true"] {
            assert_eq!(at(&format!(r#"{{"at":{bad}}}"#)), None, "{bad}");
        }
    }

    #[test]
    fn an_object_within_a_body_is_no_list() {
        let change = |text| serde_json::from_str::<Change>(text).map(|change| change.persistence.is_some());
        assert!(matches!(change(r#"{"persistence":{"keep":3}}"#), Ok(true)));
        assert!(matches!(change(r#"{"persistence":null}"#), Ok(false)));
        for bad in [r#"{"persistence":[null,null]}"#, r#"{"persistence":{"keep":0}}"#] {
            assert!(change(bad).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<Resume>(r#"{"token":"t","answer":["yes",null,null,null]}"#).is_err());
    }

    #[test]
    fn a_whole_number_is_read_however_it_is_written() {
        let timeout = |number: &str| {
            let text = format!(r#"{{"working_dir":"/","agent":"claude","wait_timeout_s":{number}}}"#);
            serde_json::from_str(&text)
                .map(|new: NewSession| new.wait_timeout_s)
                .map_err(|error| error.to_string())
        };
        assert_eq!(timeout("600"), Ok(Some(600)));
        assert_eq!(timeout("600.0"), Ok(Some(600)));
        assert_eq!(timeout("6e2"), Ok(Some(600)));
        assert_eq!(timeout("18446744073709551615"), Ok(Some(u64::MAX)));
        assert_eq!(timeout("null"), Ok(None));
        for bad in ["0.5", "-1", "1e30", "\"600\"", "18446744073709551616"] {
            assert!(timeout(bad).is_err(), "{bad}");
        }
    }
}
