//! Drift: what a session's last turn was left with beside what the next one begins with, from the log alone. It is told when an agent
//! gets its first prompt, because one that was there has seen its turns; people change files beside a living agent all the time.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::blob_id::BlobId;
use crate::event::{
    AgentDrift, ChangedFiles, CheckpointAt, DirectoryChange, DirectoryDrift, DirectoryIdentity, Drift, Event,
    GitDrift, GitState, InputKind, NotTakenReason, Options, Provider, Raw, RunCheckpoint, SettingDrift,
};
use crate::id::RunId;

/// Characters of a setting's value that are told: a command may be long.
const VALUE: usize = 200;

/// What is said of files where nobody captures them, or could not.
const NOT_COMPARED: &str = "one of the turns has no checkpoint, so files were not compared";

/// What a prompt is given under, beside its files.
#[derive(Debug, Clone, Default, PartialEq)]
struct Surroundings {
    working_dir: String,
    /// The agent's name and version, as it says itself.
    agent: Option<String>,
    settings: BTreeMap<String, String>,
}

/// What a checkpoint says of a directory as a whole.
#[derive(Debug, Clone, PartialEq)]
struct Look {
    run_id: RunId,
    root: String,
    tree: Option<BlobId>,
    not_taken: Option<NotTakenReason>,
    git: Option<GitState>,
    directory: Option<DirectoryIdentity>,
    files_changed: Option<ChangedFiles>,
}

impl Look {
    /// Tells whether somebody saw the directory, be it at a glance: without that no HEAD is not the same as none.
    fn is_seen(&self) -> bool {
        self.tree.is_some() || self.directory.is_some()
    }
}

impl From<&RunCheckpoint> for Look {
    fn from(record: &RunCheckpoint) -> Look {
        Look {
            run_id: record.run_id,
            root: record.root.clone(),
            tree: record.tree,
            not_taken: record.not_taken.as_ref().map(|not_taken| not_taken.reason),
            git: record.git.as_deref().cloned(),
            directory: record.directory,
            files_changed: record.files_changed.as_deref().cloned(),
        }
    }
}

/// The surroundings of a session's turns, folded from its log: then and now.
#[derive(Debug, Clone, Default)]
pub struct DriftWatch {
    now: Surroundings,
    is_command: bool,
    /// Those of the last prompt.
    then: Option<Surroundings>,
    /// The checkpoint at the end of the last turn, if there is one.
    end: Option<Look>,
    /// The newest at the start of a run.
    start: Option<Look>,
}

impl DriftWatch {
    /// Takes in a record.
    pub fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::SessionCreated(created) => {
                // A fork begins anew, whatever its parent had.
                *self = DriftWatch::default();
                self.now.working_dir = created.working_dir.to_string();
                self.set_provider(&created.provider);
                self.set_options(&created.options);
                self.set_environment(&created.env_names);
            }
            Event::SessionUpdated(updated) => {
                if let Some(working_dir) = &updated.working_dir {
                    self.now.working_dir = working_dir.to_string();
                }
                updated.provider.iter().for_each(|provider| self.set_provider(provider));
                updated.options.iter().for_each(|options| self.set_options(options));
                updated.env_names.iter().for_each(|names| self.set_environment(names));
            }
            Event::AgentReady(ready) => self.now.agent = ready.info.as_ref().and_then(agent_version),
            Event::AgentLaunching(_) if self.is_command => self.begin_turn(),
            Event::InputQueued(input) if input.what == InputKind::Prompt => self.begin_turn(),
            Event::RunCheckpoint(checkpoint) => {
                let look = Some(checkpoint.into());
                match checkpoint.at {
                    CheckpointAt::Start => self.start = look,
                    CheckpointAt::End => self.end = look,
                }
            }
            _ => {}
        }
    }

    /// From here on the agent changes what there is: what was found before it says nothing of what it leaves.
    fn begin_turn(&mut self) {
        (self.then, self.end) = (Some(self.now.clone()), None);
    }

    /// Returns what drifted since the last prompt, for a run that is to be prompted next.
    pub fn report(&self, run: RunId) -> Option<Drift> {
        let then = self.then.as_ref()?;
        let mut drift = Drift { settings: settings_between(then, &self.now), ..Drift::default() };
        if then.working_dir != self.now.working_dir {
            let (from, to) = (then.working_dir.clone(), self.now.working_dir.clone());
            drift.directory = Some(DirectoryDrift { change: DirectoryChange::Moved, from, to });
        }
        if let (Some(from), Some(to)) = (&then.agent, &self.now.agent)
            && from != to
        {
            drift.agent = Some(AgentDrift { from: from.clone(), to: to.clone() });
        }
        let start = self.start.as_ref().filter(|start| start.run_id == run);
        let looks = self.end.as_ref().zip(start);
        if let Some((end, start)) = looks {
            compare(end, start, &mut drift);
        }
        if drift.is_empty() {
            return None;
        }
        // Whoever reads of other things that changed would take files for unchanged that nobody has looked at.
        let is_compared = looks.is_some_and(|(end, start)| end.tree.is_some() && start.tree.is_some());
        if !is_compared {
            drift.files_unknown.get_or_insert_with(|| NOT_COMPARED.to_owned());
        }
        Some(drift)
    }

    fn set_provider(&mut self, provider: &Provider) {
        self.is_command = provider.is_command();
        let values = serde_json::to_value(provider).unwrap_or_default();
        for (name, of) in
            [("profile", "type"), ("agent", "agent"), ("model", "model"), ("command", "command")]
        {
            self.set(name, values.get(of));
        }
    }

    fn set_options(&mut self, options: &Options) {
        let before = ["profile", "agent", "model", "command", ENVIRONMENT];
        self.now.settings.retain(|name, _| before.contains(&name.as_str()));
        if let Ok(Value::Object(values)) = serde_json::to_value(options) {
            values.iter().for_each(|(name, value)| self.set(name, Some(value)));
        }
    }

    fn set_environment(&mut self, names: &[String]) {
        let mut names = names.to_vec();
        names.sort_unstable();
        let value = (!names.is_empty()).then(|| Value::String(names.join(" ")));
        self.set(ENVIRONMENT, value.as_ref());
    }

    fn set(&mut self, name: &str, value: Option<&Value>) {
        let text = match value {
            None | Some(Value::Null) => return drop(self.now.settings.remove(name)),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        self.now.settings.insert(name.to_owned(), text);
    }
}

/// The name under which the names of variables are compared.
const ENVIRONMENT: &str = "environment";

/// What callers bring along: the first who does changes nothing that was settled.
const BROUGHT: [&str; 2] = ["umask", ENVIRONMENT];

fn settings_between(then: &Surroundings, now: &Surroundings) -> Vec<SettingDrift> {
    let names: std::collections::BTreeSet<&String> =
        then.settings.keys().chain(now.settings.keys()).collect();
    let brought = |name: &String| BROUGHT.contains(&name.as_str()) && !then.settings.contains_key(name);
    let differs = |name: &&&String| then.settings.get(**name) != now.settings.get(**name) && !brought(name);
    let value = |of: &Surroundings, name: &String| of.settings.get(name).map(|value| shortened(value));
    let drifts = names.iter().filter(differs);
    drifts
        .map(|name| SettingDrift { name: (*name).clone(), from: value(then, name), to: value(now, name) })
        .collect()
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(VALUE) {
        Some((at, _)) => format!("{}…", &value[..at]),
        None => value.to_owned(),
    }
}

/// Compares what the last turn left with what the next begins with.
fn compare(end: &Look, start: &Look, drift: &mut Drift) {
    if end.is_seen() && start.is_seen() && end.git != start.git {
        drift.git = Some(GitDrift { from: end.git.clone(), to: start.git.clone() });
    }
    match (end.tree, start.tree) {
        (Some(left), Some(found)) if left == found => {}
        (Some(_), Some(_)) => {
            compare_files(start, drift);
            compare_directories(end, start, drift);
        }
        _ => {
            drift.files_unknown =
                why_unknown(end, "after the last turn").or_else(|| why_unknown(start, "before this turn"));
            compare_directories(end, start, drift);
        }
    }
}

fn compare_files(start: &Look, drift: &mut Drift) {
    match &start.files_changed {
        Some(changed) => drift.files = Some(changed.clone()).filter(|changed| changed.total > 0),
        None => {
            drift.files_unknown =
                Some("they differ from what the last turn left, and the two cannot be compared".into());
        }
    }
}

/// Tells another directory of the same name. Numbers of file systems and directories may change at a restart of the machine; where the
/// files are the same nobody cares.
fn compare_directories(end: &Look, start: &Look, drift: &mut Drift) {
    if end.root == start.root
        && let (Some(was), Some(is)) = (end.directory, start.directory)
        && was.inode != is.inode
    {
        let other = was.file_system != is.file_system;
        let change = if other { DirectoryChange::OtherFileSystem } else { DirectoryChange::Replaced };
        drift.directory = Some(DirectoryDrift { change, from: end.root.clone(), to: start.root.clone() });
    }
}

/// Says why a checkpoint was not taken; nothing of what holds at every turn, and is told there.
fn why_unknown(look: &Look, when: &str) -> Option<String> {
    let reason = look.not_taken.filter(|reason| *reason != NotTakenReason::TooLarge)?;
    Some(format!("the checkpoint {when} was not taken ({})", reason.as_str().replace('_', " ")))
}

/// Returns an agent's name and version, as far as it tells them.
fn agent_version(info: &Raw<'_>) -> Option<String> {
    let info: Value = serde_json::from_str(info.as_json()).ok()?;
    let field = |name: &str| info.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let told: Vec<&str> = field("name").into_iter().chain(field("version")).collect();
    (!told.is_empty()).then(|| shortened(&told.join(" ")))
}

#[cfg(test)]
mod tests;
