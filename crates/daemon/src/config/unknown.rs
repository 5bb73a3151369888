//! Keys of a configuration that nobody reads: mistyped ones, and those of another version. They change nothing, and are named with
//! the key that was probably meant.

use std::fmt;

use serde::Serialize;
use toml::de::{DeTable, DeValue};

use super::keys::KEYS;
use super::nearest::nearest;

/// A key that is in the file and that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnknownKey {
    /// Its line, from 1.
    pub line: usize,
    /// The section that it stands in; empty at the top of the file.
    pub section: String,
    /// Its name.
    pub key: String,
    /// The key that was probably meant, from the top of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meant: Option<String>,
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownKey { line, section, key, meant } = self;
        write!(f, "line {line}: unknown key {key:?}")?;
        if !section.is_empty() {
            write!(f, " in [{section}]")?;
        }
        f.write_str(" is ignored")?;
        let Some(meant) = meant else { return Ok(()) };
        match meant.rsplit_once('.') {
            Some((place, name)) if place == section => write!(f, "; did you mean {name:?}?"),
            Some((place, name)) => write!(f, "; did you mean {name:?} in [{place}]?"),
            None => write!(f, "; did you mean {meant:?}?"),
        }
    }
}

/// Returns the keys of a file that nobody reads, in the order of their lines. A text that is no TOML has none.
pub(super) fn unknown_keys(text: &str) -> Vec<UnknownKey> {
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let mut found = Vec::new();
    look(text, root.get_ref(), &[], &mut found);
    found.sort_by_key(|unknown| unknown.line);
    found
}

fn look(text: &str, table: &DeTable<'_>, section: &[&str], found: &mut Vec<UnknownKey>) {
    for (key, value) in table.iter() {
        let name: &str = key.get_ref();
        let path = [section, &[name]].concat();
        if children(&path).is_none() {
            found.push(UnknownKey {
                line: line_of(text, key.span().start),
                section: section.join("."),
                key: name.to_owned(),
                meant: meant(section, name),
            });
        } else if let DeValue::Table(below) = value.get_ref() {
            look(text, below, &path, found);
        }
    }
}

/// Returns the line, from 1, that a byte stands in.
pub(super) fn line_of(text: &str, byte: usize) -> usize {
    text.get(..byte).unwrap_or(text).matches('\n').count() + 1
}

/// Returns the names that may stand below a path; none if the path itself is not known.
fn children(path: &[&str]) -> Option<Vec<&'static str>> {
    let mut is_known = path.is_empty();
    let mut names = Vec::new();
    for key in KEYS {
        let mut segments = key.path.split('.');
        let fits =
            path.iter().all(|name| segments.next().is_some_and(|known| known == "*" || known == *name));
        if fits {
            is_known = true;
            names.extend(segments.next());
        }
    }
    is_known.then_some(names)
}

/// Returns the key that somebody meant who wrote one that is not known: one that is spelled alike in the same section, else the same
/// name elsewhere.
fn meant(section: &[&str], name: &str) -> Option<String> {
    let beside = children(section).unwrap_or_default();
    let place = |name: &str| [section, &[name]].concat().join(".");
    if let Some(alike) = nearest(name, beside.into_iter().filter(|name| *name != "*")) {
        return Some(place(alike));
    }
    let same = |path: &&str| path.rsplit('.').next() == Some(name) && !path.contains('*');
    KEYS.iter().map(|key| key.path).find(same).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        unknown_keys(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn unknown_keys_are_named_with_their_line_and_what_was_meant() {
        let text = "agnet = \"claude\"\n[taks]\nlimit = 3\n[tasks]\nlimits = 3\nkeep_days = 9\n\n[checkpoints]\ncolour = 1\n";
        assert_eq!(
            told(text),
            [
                "line 1: unknown key \"agnet\" is ignored; did you mean \"agent\"?",
                "line 2: unknown key \"taks\" is ignored; did you mean \"tasks\"?",
                "line 5: unknown key \"limits\" in [tasks] is ignored; did you mean \"limit\"?",
                "line 6: unknown key \"keep_days\" in [tasks] is ignored; did you mean \"keep_days\" in [checkpoints]?",
                "line 9: unknown key \"colour\" in [checkpoints] is ignored",
            ]
        );
        assert_eq!(
            told("limit = 4\n"),
            ["line 1: unknown key \"limit\" is ignored; did you mean \"limit\" in [tasks]?"]
        );
    }

    #[test]
    fn names_that_people_choose_are_known_and_what_is_below_them_is_looked_at() {
        let known = "[tasks.agents]\nclaude = 2\n[agents.claude]\nenv_file = \"/f\"\n[notify.sinks.phone.headers]\nX-A = \"b\"\n\
                     [budgets]\nrun = { tokens = 5 }\n";
        assert_eq!(told(known), [""; 0]);
        let typo = "[agents.claude]\nenvfile = \"/f\"\n";
        let said =
            "line 2: unknown key \"envfile\" in [agents.claude] is ignored; did you mean \"env_file\"?";
        assert_eq!(told(typo), [said]);
    }

    #[test]
    fn a_text_that_is_no_toml_has_none() {
        assert_eq!(told("agnet = "), [""; 0]);
        assert_eq!(told(""), [""; 0]);
    }
}
