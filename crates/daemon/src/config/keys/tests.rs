//! The list of keys is held to the structures that the file is read into, to their defaults, and to the page that documents them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use super::*;
use crate::config::Config;

const PAGE: &str = include_str!("../../../../../docs/guide/configuration.md");

type Failed = serde::de::value::Error;

/// A deserializer that follows one path through nested structures, and writes down the names of the fields at its end.
#[derive(Clone, Copy)]
struct Explorer<'a> {
    path: &'a [String],
    found: &'a RefCell<Option<Vec<String>>>,
}

impl<'a> Explorer<'a> {
    /// Goes on below the next name of the path; at its end there are these.
    fn go_on<'de, V: Visitor<'de>>(self, names: &[&str], visitor: V) -> Result<V::Value, Failed> {
        match self.path.split_first() {
            Some((name, path)) => {
                visitor.visit_map(OneField { name: Some(name.as_str()), below: Explorer { path, ..self } })
            }
            None => {
                *self.found.borrow_mut() = Some(names.iter().map(ToString::to_string).collect());
                Err(Failed::custom("this is far enough"))
            }
        }
    }
}

impl<'de> Deserializer<'de> for Explorer<'_> {
    type Error = Failed;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Failed> {
        *self.found.borrow_mut() = Some(Vec::new());
        Err(Failed::custom("this is a value"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failed> {
        self.go_on(fields, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        self.go_on(&["*"], visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failed> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failed> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct enum identifier ignored_any
    }
}

struct OneField<'a> {
    name: Option<&'a str>,
    below: Explorer<'a>,
}

impl<'de> MapAccess<'de> for OneField<'_> {
    type Error = Failed;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failed> {
        self.name.take().map(|name| seed.deserialize(StrDeserializer::new(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failed> {
        seed.deserialize(self.below)
    }
}

/// Returns every path that the structures have, as serde reads them.
fn paths_in_the_code() -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut open = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let found = RefCell::new(None);
        let _ = Config::deserialize(Explorer { path: &path, found: &found });
        let names = found.into_inner().unwrap_or_else(|| panic!("{path:?} cannot be reached"));
        if names.is_empty() {
            paths.insert(path.join("."));
        }
        open.extend(names.into_iter().map(|name| [path.clone(), vec![name]].concat()));
    }
    paths
}

#[test]
fn the_list_has_every_key_of_the_code_and_no_other() {
    let listed: BTreeSet<String> = KEYS.iter().map(|key| key.path.to_owned()).collect();
    assert_eq!(listed.len(), KEYS.len(), "a key is listed twice");
    assert_eq!(listed, paths_in_the_code());
}

/// Writes every default that is a value into a file, section by section.
fn all_defaults() -> String {
    let mut text = String::new();
    for key in KEYS {
        let DefaultValue::Toml(value) = key.default else { continue };
        text.push_str(&format!("{} = {value}\n", key.path.replace('*', "any")));
    }
    text + "notify.sinks.any.type = \"bell\"\n"
}

#[test]
fn the_defaults_of_the_list_are_those_of_the_code() {
    let parse = |text: &str| {
        Config::parse(text, Path::new("/c.toml")).unwrap_or_else(|failure| panic!("{}", failure.message()))
    };
    let usual = parse("notify.sinks.any.type = \"bell\"\n");
    let written = parse(&all_defaults());
    assert_eq!(written.unknown, []);
    // What the sections mean, because some keep apart whether something was said.
    assert_eq!(written.persistence.policy(), usual.persistence.policy());
    assert_eq!(written.waits.settings(), usual.waits.settings());
    assert_eq!(written.tasks.database(), usual.tasks.database());
    assert_eq!(written.collection(), usual.collection());
    assert_eq!(written.checkpoints, usual.checkpoints);
    assert_eq!(written.workspace, usual.workspace);
    assert_eq!(written.worktree, usual.worktree);
    assert_eq!(written.serve, usual.serve);
    assert_eq!(written.notify, usual.notify);
    // What is logged where nobody says.
    let log = (written.log.filter.as_deref(), written.log.format.as_deref());
    assert_eq!(log, (Some("info"), Some("text")));
}

/// Reads the tables of the page: section, key and default of each row.
fn documented() -> BTreeSet<(String, String, String)> {
    let mut section = String::new();
    let mut rows = BTreeSet::new();
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            let name = heading.split('`').nth(1).and_then(|name| name.strip_prefix('[')?.strip_suffix(']'));
            section = name.unwrap_or_default().to_owned();
            continue;
        }
        let cells: Vec<&str> = line.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect();
        if let [key, default, _] = cells.as_slice()
            && let Some(key) = key.strip_prefix('`').and_then(|key| key.strip_suffix('`'))
            && !key.starts_with("REKINDLE_")
        {
            let new = rows.insert((section.clone(), key.to_owned(), (*default).to_owned()));
            assert!(new, "{section} {key} is documented twice");
        }
    }
    rows
}

#[test]
fn the_page_documents_every_key_with_its_default() {
    let expected: BTreeSet<(String, String, String)> = KEYS
        .iter()
        .map(|key| {
            let default = match key.default {
                DefaultValue::Toml(value) => format!("`{value}`"),
                DefaultValue::Words(text) => text.to_owned(),
            };
            let path = key.path.replace('*', "NAME");
            // Tables of one kind share their rows.
            let path = match path.clone().split('.').collect::<Vec<_>>().as_slice() {
                ["budgets", _, what] => format!("budgets.{what}"),
                _ => path,
            };
            let section = SECTIONS
                .iter()
                .filter(|section| path.starts_with(&format!("{section}.")))
                .max_by_key(|name| name.len());
            let section = section.copied().unwrap_or_default();
            let name = path[section.len()..].trim_start_matches('.').to_owned();
            (section.to_owned(), name, default)
        })
        .collect();
    let documented = documented();
    let missing: Vec<_> = expected.difference(&documented).collect();
    let wrong: Vec<_> = documented.difference(&expected).collect();
    assert!(missing.is_empty() && wrong.is_empty(), "the page lacks {missing:#?}\nand has {wrong:#?}");
}

/// The headings of the page that have keys below them.
const SECTIONS: &[&str] = &[
    "agents.NAME",
    "serve",
    "log",
    "workspace",
    "checkpoints",
    "persistence",
    "idle_agents",
    "gc",
    "cache",
    "pipelines",
    "tasks",
    "budgets",
    "waits",
    "worktree",
    "notify",
    "notify.sinks.NAME",
];

#[test]
fn the_examples_of_the_guide_are_configurations() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let mut read = 0;
    for page in std::fs::read_dir(guide).expect("the guide") {
        let page = page.expect("an entry").path();
        // Its files are those of projects.
        if page.ends_with("pipelines.md") {
            continue;
        }
        let text = std::fs::read_to_string(&page).expect("a page");
        for example in text.split("```toml\n").skip(1) {
            let (example, _) = example.split_once("```").expect("its end");
            let config = Config::parse(example, &page)
                .unwrap_or_else(|failure| panic!("{}\n{example}", failure.message()));
            assert_eq!(config.unknown, [], "{}\n{example}", page.display());
            read += 1;
        }
    }
    assert!(read > 10, "only {read} examples were found");
}
