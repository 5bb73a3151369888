//! Drift in the words that an agent is told: in brief, what it works on first.

use crate::event::{ChangedFiles, DirectoryChange, DirectoryDrift, Drift, FileChange, GitState};

/// Files that are named: an agent that has to know more looks for itself.
const NAMED: usize = 10;

/// Tells what drifted, if anything did.
pub(super) fn write_drift(text: &mut String, drift: Option<&Drift>) {
    let Some(drift) = drift else { return };
    text.push_str("\nSince the last turn, and not by you:\n");
    let mut tell = |line: String| text.push_str(&format!("- {line}\n"));
    drift.directory.iter().for_each(|directory| tell(directory_line(directory)));
    if let Some(files) = &drift.files {
        tell(files_line(files));
    }
    if let Some(why) = &drift.files_unknown {
        tell(format!(
            "Files may have changed; which is not known: {why}. Look before you rely on what you know of them."
        ));
    }
    if let Some(git) = &drift.git {
        tell(format!("The HEAD of git was {} and is {}.", head(git.from.as_ref()), head(git.to.as_ref())));
    }
    if let Some(agent) = &drift.agent {
        tell(format!("You were {} and are {}.", agent.from, agent.to));
    }
    if !drift.settings.is_empty() {
        let names: Vec<&str> = drift.settings.iter().map(|setting| setting.name.as_str()).collect();
        tell(format!("Settings were changed: {}.", names.join(", ")));
    }
}

fn directory_line(directory: &DirectoryDrift) -> String {
    let DirectoryDrift { change, from, to } = directory;
    match change {
        DirectoryChange::Moved => format!("The working directory was {from} and is {to}."),
        DirectoryChange::Replaced => format!("{to} is a different directory than before."),
        DirectoryChange::OtherFileSystem => format!("{to} is on a different file system than before."),
        DirectoryChange::Unknown => format!("{to} has changed."),
    }
}

fn files_line(files: &ChangedFiles) -> String {
    let named: Vec<String> = files
        .first
        .iter()
        .take(NAMED)
        .map(|file| {
            let name = match &file.path.path {
                Some(path) => path.clone(),
                None => String::from_utf8_lossy(&file.path.bytes().unwrap_or_default()).into_owned(),
            };
            match file.change {
                FileChange::Added => format!("{name} (new)"),
                FileChange::Deleted => format!("{name} (deleted)"),
                FileChange::Modified | FileChange::Unknown => name,
            }
        })
        .collect();
    let more = files.total.saturating_sub(named.len() as u64);
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    format!("Changed files, to be read again before you rely on them: {}{more}.", named.join(", "))
}

fn head(git: Option<&GitState>) -> String {
    git.map_or_else(|| "in no repository".into(), GitState::label)
}
