//! The configuration as it applies: each key with its value, and whether that comes from the file or is the default.

use std::fmt::Write;

use serde::Serialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{DefaultValue, KEYS, Key};
use super::unknown::line_of;

/// What stands for a value that may be secret.
const HIDDEN: &str = "\"…\"";

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The file.
    File,
    /// Nobody has set it.
    Default,
}

/// A key with the value that applies.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// The section; empty at the top of the file.
    pub section: String,
    /// The name in it.
    pub key: String,
    /// The value; none where nothing is set and no value is the default. One that may be secret is hidden.
    pub value: Option<toml::Value>,
    /// Where the value comes from.
    pub source: Source,
    /// The line of the file that sets it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The default in words, where no value says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<&'static str>,
    /// The value as it is written.
    #[serde(skip)]
    written: String,
}

/// Returns every key with the value that applies, section by section. Names that people choose (of agents, of sinks) are those of the
/// file. The text is one that could be read as a configuration.
pub fn settings(text: &str) -> Vec<Setting> {
    let root = DeTable::parse(text).map(Spanned::into_inner).unwrap_or_default();
    let mut settings = Vec::new();
    for key in KEYS {
        let segments: Vec<&str> = key.path.split('.').collect();
        expand(text, key, Some(&root), &segments, &mut Vec::new(), &mut settings);
    }
    // Keys of a name that people chose belong together, and the list has them key by key.
    let order = |setting: &Setting| settings_order(&setting.section);
    settings.sort_by_key(order);
    settings
}

/// Returns where a section stands among the others: where its first key stands in the list, then by its name.
fn settings_order(section: &str) -> (usize, String) {
    let names: Vec<&str> = section.split('.').filter(|name| !name.is_empty()).collect();
    let fits = |key: &&Key| {
        let (place, _) = key.split();
        let known: Vec<&str> = place.split('.').filter(|name| !name.is_empty()).collect();
        known.len() == names.len()
            && known.iter().zip(&names).all(|(known, name)| *known == "*" || known == name)
    };
    let place = KEYS.iter().position(|key| fits(&key)).unwrap_or(KEYS.len());
    (place, section.to_owned())
}

/// Follows the segments of a key into a document, a way for each name that people chose.
fn expand<'a>(
    text: &str,
    key: &'static Key,
    table: Option<&DeTable<'a>>,
    segments: &[&str],
    section: &mut Vec<String>,
    settings: &mut Vec<Setting>,
) {
    let Some((name, below)) = segments.split_first() else { return };
    let names: Vec<String> = match (*name, table) {
        ("*", table) => {
            let names = table.into_iter().flat_map(|table| table.iter());
            names.map(|(name, _)| name.get_ref().to_string()).collect()
        }
        (name, _) => vec![name.to_owned()],
    };
    for name in names {
        let value = table.and_then(|table| table.get(name.as_str()));
        if below.is_empty() {
            settings.push(setting(text, key, section.join("."), name, value));
            continue;
        }
        let inside = value.and_then(|value| match value.get_ref() {
            DeValue::Table(inside) => Some(inside),
            _ => None,
        });
        section.push(name);
        expand(text, key, inside, below, section, settings);
        section.pop();
    }
}

fn setting(
    text: &str,
    key: &Key,
    section: String,
    name: String,
    value: Option<&Spanned<DeValue<'_>>>,
) -> Setting {
    let (written, line, default) = match (value, key.default) {
        (Some(value), _) => {
            let written = text.get(value.span()).unwrap_or_default();
            // That it is somewhere else is no secret.
            let is_elsewhere = written.starts_with("\"env:") || written.starts_with("\"file:");
            let shown = if key.is_secret && !is_elsewhere { HIDDEN } else { written };
            (shown.to_owned(), Some(line_of(text, value.span().start)), None)
        }
        (None, DefaultValue::Toml(value)) => (value.to_owned(), None, None),
        (None, DefaultValue::Words(text)) => (String::new(), None, Some(text)),
    };
    let source = if line.is_some() { Source::File } else { Source::Default };
    let value = toml::from_str::<toml::Table>(&format!("value = {written}")).ok();
    let value = value.and_then(|mut table| table.remove("value"));
    Setting { section, key: name, value, source, line, default, written }
}

/// Writes settings as a configuration: whatever is not set stands in comments, or as its default.
pub fn as_toml(settings: &[Setting]) -> String {
    let mut text = String::new();
    let mut section = "";
    for setting in settings {
        if setting.section != section {
            section = &setting.section;
            let gap = if text.is_empty() { "" } else { "\n" };
            // To name a section may mean something, so that one without values stands in comments as a whole.
            let is_set = |other: &Setting| other.section == *section && other.default.is_none();
            let mark = if settings.iter().any(is_set) { "" } else { "# " };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{gap}{mark}[{}]", quoted(section));
        }
        let name = quoted(&setting.key);
        let _ = match (&setting.line, setting.default) {
            (Some(line), _) => {
                writeln!(text, "{:40}  # line {line}", format!("{name} = {}", setting.written))
            }
            (None, Some(default)) => {
                writeln!(text, "{:40}  # {}", format!("# {name}"), default.replace('`', ""))
            }
            (None, None) => writeln!(text, "{:40}  # default", format!("{name} = {}", setting.written)),
        };
    }
    text
}

/// Writes a dotted name as TOML has it.
fn quoted(path: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let quote = |name: &str| if name.chars().all(is_bare) { name.to_owned() } else { format!("{name:?}") };
    path.split('.').map(quote).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    const OWN: &str = "agent = \"claude\"\n\n[checkpoints]\nkeep_days = 7\n\n[budgets]\nday = { cost = 40.0 }\n\n[tasks]\nurl = \"postgres://a:secret@db/x\"\n\n\
                       [notify.sinks.phone]\ntype = \"webhook\"\nurl = \"env:PHONE\"\n\n[notify.sinks.bell]\ntype = \"bell\"\n";

    fn one<'a>(settings: &'a [Setting], section: &str, key: &str) -> &'a Setting {
        let found: Vec<&Setting> =
            settings.iter().filter(|setting| setting.section == section && setting.key == key).collect();
        assert_eq!(found.len(), 1, "[{section}] {key}");
        found[0]
    }

    #[test]
    fn values_come_from_the_file_or_are_the_defaults() {
        let settings = settings(OWN);
        let agent = one(&settings, "", "agent");
        assert_eq!((agent.source, agent.line), (Source::File, Some(1)));
        assert_eq!(agent.value, Some(toml::Value::from("claude")));
        let keep = one(&settings, "checkpoints", "keep_days");
        assert_eq!((keep.value.clone(), keep.line), (Some(toml::Value::from(7)), Some(4)));
        let mode = one(&settings, "checkpoints", "mode");
        assert_eq!((mode.value.clone(), mode.source), (Some(toml::Value::from("auto")), Source::Default));
        let limit = one(&settings, "tasks", "limit");
        assert_eq!(
            (limit.value.clone(), limit.default),
            (None, Some("the number of processors, at least 2"))
        );
        assert_eq!(one(&settings, "budgets.day", "cost").value, Some(toml::Value::from(40.0)));
        assert_eq!(one(&settings, "notify.sinks.bell", "when").source, Source::Default);
        assert!(settings.iter().all(|setting| !setting.section.contains('*') && setting.key != "*"));
    }

    #[test]
    fn secrets_are_hidden_and_where_they_are_is_not() {
        let settings = settings(OWN);
        assert_eq!(one(&settings, "tasks", "url").value, Some(toml::Value::from("…")));
        assert_eq!(one(&settings, "notify.sinks.phone", "url").value, Some(toml::Value::from("env:PHONE")));
        assert!(!as_toml(&settings).contains("secret@"));
    }

    #[test]
    fn what_is_shown_is_a_configuration_that_means_the_same() {
        let read = |text: &str| {
            Config::parse(text, Path::new("/c.toml"))
                .unwrap_or_else(|failure| panic!("{}\n{text}", failure.message()))
        };
        for own in ["", &OWN.replace("a:secret@", "")] {
            let shown = as_toml(&settings(own)).replace(HIDDEN, "\"postgres://db/x\"");
            let (own, shown) = (read(own), read(&shown));
            assert_eq!(shown.unknown, []);
            assert_eq!(
                (&shown.agent, &shown.checkpoints, &shown.notify),
                (&own.agent, &own.checkpoints, &own.notify)
            );
            assert_eq!(shown.budgets.settings(), own.budgets.settings());
            assert_eq!(shown.tasks.database(), own.tasks.database());
        }
    }

    #[test]
    fn sections_stand_together_and_in_their_order() {
        let text = as_toml(&settings(OWN));
        let sections: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
        let mut once = sections.clone();
        once.dedup();
        assert_eq!(sections, once);
        assert!(
            sections.iter().collect::<std::collections::BTreeSet<_>>().len() == sections.len(),
            "{sections:?}"
        );
        assert!(text.contains("\n[notify.sinks.bell]\n") && text.contains("\nkeep_days = 7 "), "{text}");
    }
}
