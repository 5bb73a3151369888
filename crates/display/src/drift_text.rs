//! Drift in words for people: what was not as the turn before had left it, in the log, while one watches, and in a session's status.

use rekindle_domain::event::{ChangedFiles, DirectoryChange, Drift, FileChange, GitState};
use rekindle_terminal::output::{grouped, plural};

/// Files that are named.
const NAMED: usize = 5;

/// Says what drifted, a sentence for each.
pub fn sentences(drift: &Drift) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(directory) = &drift.directory {
        let (from, to) = (&directory.from, &directory.to);
        said.push(match directory.change {
            DirectoryChange::Moved => format!("it now works in {to}; before, it worked in {from}"),
            DirectoryChange::Replaced => format!("there is a different directory at {to}"),
            DirectoryChange::OtherFileSystem => {
                format!(
                    "{to} is on a different file system: something may have been mounted or unmounted there"
                )
            }
            DirectoryChange::Unknown => format!("{to} has changed"),
        });
    }
    said.extend(drift.files.as_ref().map(files));
    said.extend(drift.files_unknown.as_ref().map(|why| format!("which files changed is not known: {why}")));
    if let Some(git) = &drift.git {
        said.push(format!("git HEAD was {} and is {} now", head(git.from.as_ref()), head(git.to.as_ref())));
    }
    said.extend(
        drift.agent.as_ref().map(|agent| format!("the agent was {} and is {} now", agent.from, agent.to)),
    );
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".into());
    said.extend(drift.settings.iter().map(|setting| {
        format!("{} was {} and is {} now", setting.name, value(&setting.from), value(&setting.to))
    }));
    said
}

fn files(changed: &ChangedFiles) -> String {
    let named: Vec<String> = changed
        .first
        .iter()
        .take(NAMED)
        .map(|file| {
            let name = String::from_utf8_lossy(&file.path.bytes().unwrap_or_default()).into_owned();
            match file.change {
                FileChange::Added => format!("{name} (new)"),
                FileChange::Deleted => format!("{name} (deleted)"),
                FileChange::Modified | FileChange::Unknown => name,
            }
        })
        .collect();
    let more = changed.total.saturating_sub(named.len() as u64);
    let more = if more == 0 { String::new() } else { format!(" and {} more", grouped(more)) };
    let rules = if changed.rules_differ { ", with different rules for which files count" } else { "" };
    format!("{} changed{rules}: {}{more}", plural(changed.total, "file"), named.join(", "))
}

fn head(git: Option<&GitState>) -> String {
    git.map_or_else(|| "in no repository".into(), GitState::label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_drift_is_a_sentence() {
        let said = |text: &str| sentences(&serde_json::from_str(text).expect("a drift")).join("; ");
        for (drift, words) in [
            ("{}", ""),
            (
                r#"{"directory":{"change":"moved","from":"/a","to":"/b"}}"#,
                "it now works in /b; before, it worked in /a",
            ),
            (
                r#"{"directory":{"change":"replaced","from":"/a","to":"/a"}}"#,
                "there is a different directory at /a",
            ),
            (
                r#"{"directory":{"change":"other_file_system","from":"/a","to":"/a"}}"#,
                "/a is on a different file system: something may have been mounted or unmounted there",
            ),
            (
                r#"{"files":{"total":1200,"rules_differ":true,"first":[{"path":"a","change":"added"},{"path":"b","change":"deleted"}]}}"#,
                "1,200 files changed, with different rules for which files count: a (new), b (deleted) and 1,198 more",
            ),
            (r#"{"files_unknown":"slow"}"#, "which files changed is not known: slow"),
            (
                r#"{"git":{"from":{"ref":"refs/heads/main","commit":"0123456789abcdef"},"to":null}}"#,
                "git HEAD was main at 0123456789ab and is in no repository now",
            ),
            (
                r#"{"agent":{"from":"c 1","to":"c 2"},"settings":[{"name":"mode","from":null,"to":"plan"}]}"#,
                "the agent was c 1 and is c 2 now; mode was not set and is plan now",
            ),
        ] {
            assert_eq!(said(drift), words);
        }
    }
}
