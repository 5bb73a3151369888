//! The check of a configuration: everything that is wrong with it, each with its place and what to do. Nothing runs before there is
//! no problem left.

mod stages;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::key::MAX_INTEGER;
use crate::event::{AgentConfig, InputValue, ProjectConfig, TaskConfig, UnknownKeys};
use crate::id::is_plain_name;

/// The version of `rekindle.toml` that this code reads.
pub const CONFIG_VERSION: u32 = 1;

/// The profiles that an agent may have.
const PROFILES: [&str; 3] = ["acp", "ndjson", "exec"];

/// Inputs that an `ndjson` agent is told beside those of the task.
const TOLD_ANYWAY: [&str; 2] = ["goal", "prompt"];

/// What is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where it is.
    pub place: Place,
    /// What it is, and what to do.
    pub what: String,
    /// The byte of a template at which it is.
    pub offset: Option<usize>,
}

/// The place of a problem: keys and numbers, from the outside in. Whoever parsed the file can find its line by them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place(pub Vec<Segment>);

/// A part of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A key of a table.
    Key(String),
    /// An item of a list, from 0.
    Index(usize),
}

impl Place {
    fn key(&self, key: &str) -> Place {
        self.with(Segment::Key(key.to_owned()))
    }

    fn index(&self, index: usize) -> Place {
        self.with(Segment::Index(index))
    }

    fn with(&self, segment: Segment) -> Place {
        Place(self.0.iter().cloned().chain([segment]).collect())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if at == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Returns everything that is wrong with a configuration, in its order.
pub fn problems(config: &ProjectConfig, is_known_agent: impl Fn(&str) -> bool) -> Vec<Problem> {
    let root = Place::default();
    let mut found = Found::default();
    match config.version {
        Some(CONFIG_VERSION) => {}
        None => found.add(root.key("version"), format!("it is missing; write version = {CONFIG_VERSION}")),
        Some(other) => found.add(
            root.key("version"),
            format!(
                "version {other} is not known here; write version = {CONFIG_VERSION}, or use a newer rekindle"
            ),
        ),
    }
    found.unknown_keys(&root, &config.unknown, "version, agents, tasks, pipelines");
    for (name, agent) in &config.agents {
        found.agent(&root.key("agents").key(name), name, agent, &is_known_agent);
    }
    let mut ids = BTreeSet::new();
    for (index, task) in config.tasks.iter().enumerate() {
        let place = root.key("tasks").index(index);
        found.task(&place, task, &mut ids);
        if config.agents.values().any(AgentConfig::speaks_ndjson) {
            found.told_anyway(&place, task);
        }
    }
    let inputs: BTreeSet<&str> =
        config.tasks.iter().flat_map(|task| task.inputs.keys().map(String::as_str)).collect();
    for (name, pipeline) in &config.pipelines {
        found.pipeline(&root.key("pipelines").key(name), name, pipeline, &config.agents, &inputs);
    }
    found.default_pipeline(&root, config);
    found.0
}

/// The problems that were found.
#[derive(Default)]
struct Found(Vec<Problem>);

impl Found {
    fn add(&mut self, place: Place, what: impl Into<String>) {
        self.0.push(Problem { place, what: what.into(), offset: None });
    }

    fn unknown_keys(&mut self, place: &Place, unknown: &UnknownKeys, known: &str) {
        for key in unknown.keys() {
            self.add(place.key(key), format!("there is no such key; there are {known}"));
        }
    }

    /// Says what is wrong with a name of somebody or something.
    fn name(&mut self, place: Place, name: &str) {
        if name.is_empty() {
            self.add(place, "it has no name; give it one");
        } else if !is_plain_name(name) {
            self.add(
                place,
                format!(
                    "{name:?} is not a valid name: use letters, digits, _ and -, a letter or digit first, at most 64"
                ),
            );
        }
    }

    fn agent(&mut self, place: &Place, name: &str, agent: &AgentConfig, is_known: &impl Fn(&str) -> bool) {
        self.name(place.clone(), name);
        match (&agent.agent, &agent.command) {
            (Some(_), Some(_)) => {
                self.add(place.clone(), "it has both agent and command; leave one of them out");
            }
            (None, None) => {
                self.add(
                    place.clone(),
                    "it has neither agent nor command; name a known agent, or give a command",
                );
            }
            (Some(known), None) if !is_known(known) => self.add(
                place.key("agent"),
                format!(
                    "there is no known agent {known:?}; name one that there is, or give command and profile"
                ),
            ),
            (Some(_), None) if agent.profile.is_some() => {
                self.add(place.key("profile"), "a known agent has its profile already; leave it out");
            }
            (Some(_), None) => {}
            (None, Some(command)) => {
                self.command(&place.key("command"), command);
                match agent.profile.as_deref() {
                    None => self.add(place.key("profile"), "it is missing; write acp, ndjson or exec"),
                    Some(profile) if !PROFILES.contains(&profile) => {
                        self.add(
                            place.key("profile"),
                            format!("{profile:?} is not a profile; write acp, ndjson or exec"),
                        );
                    }
                    Some(_) => {}
                }
            }
        }
        for (index, name) in agent.env.iter().enumerate() {
            if name.is_empty() || name.contains(['=', '\0']) {
                let what = format!(
                    "{name:?} is not the name of a variable; write only names here, values come from the caller"
                );
                self.add(place.key("env").index(index), what);
            }
        }
        self.unknown_keys(place, &agent.unknown, "agent, command, profile, model, env, heartbeat_s");
        if agent.heartbeat_s.is_some() && !agent.speaks_ndjson() {
            self.add(place.key("heartbeat_s"), "only an ndjson agent sends heartbeats; leave it out");
        }
    }

    /// Says which inputs of a task have names under which an `ndjson` agent is told something else.
    fn told_anyway(&mut self, place: &Place, task: &TaskConfig) {
        for name in TOLD_ANYWAY.into_iter().filter(|name| task.inputs.contains_key(*name)) {
            let what =
                format!("an ndjson agent gets its {name} under this name; give the input another name");
            self.add(place.key("inputs").key(name), what);
        }
    }

    fn command(&mut self, place: &Place, command: &[String]) {
        if command.first().is_none_or(String::is_empty) {
            self.add(
                place.clone(),
                "it is empty; write a program and its arguments, each as a string of its own",
            );
        }
        for (index, word) in command.iter().enumerate().filter(|(_, word)| word.contains('\0')) {
            self.add(place.index(index), format!("{word:?} contains a NUL, which no argument can have"));
        }
    }

    fn task<'a>(&mut self, place: &Place, task: &'a TaskConfig, ids: &mut BTreeSet<&'a str>) {
        self.name(place.key("id"), &task.id);
        if !ids.insert(&task.id) {
            self.add(place.key("id"), format!("there is another task {:?}; give it another id", task.id));
        }
        if task.goal.trim().is_empty() {
            self.add(place.key("goal"), "it is missing; say what is to be done");
        }
        for (name, value) in &task.inputs {
            let at = place.key("inputs").key(name);
            self.name(at.clone(), name);
            match value {
                InputValue::Integer(number) if number.unsigned_abs() > MAX_INTEGER.unsigned_abs() => {
                    self.add(
                        at,
                        format!("whole numbers go from -{MAX_INTEGER} to {MAX_INTEGER}; write it as a text"),
                    );
                }
                InputValue::Float(number) if !number.is_finite() => {
                    self.add(at, "it is not a finite number; write it as a text");
                }
                InputValue::File(path) if !is_inside(path) => self.add(
                    at.key("file"),
                    format!(
                        "{path:?} is not a path inside the workspace; write it relative to that, without .."
                    ),
                ),
                _ => {}
            }
        }
        self.unknown_keys(place, &task.unknown, "id, goal, inputs");
    }
}

/// Tells whether a path is one below the directory that it is looked up in.
fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\0')
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

/// The agents of a configuration, by the names of their roles.
type Agents = BTreeMap<String, AgentConfig>;

#[cfg(test)]
mod tests;
