//! README.md and the pages of the guide, as a reader would follow them: every command, in order, with the binaries as they were built,
//! a home of its own for each page, an empty `HOME`, a project to work in, and the demo agent under the name of a known one.

mod reader;
mod shell;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rekindle_testkit::documents::{Page, Way, commands_of};

use crate::reader::Reader;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn follow(page: &str) {
    let text = std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
    Reader::new(page).follow(&Page::parse(&text));
}

/// Each page is a test, so that pages are followed at once.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(
            #[test]
            fn $name() {
                follow($path);
            }
        )*
    };
}

pages! {
    readme: "README.md",
    agents: "docs/guide/agents.md",
    backup_and_repair: "docs/guide/backup-and-repair.md",
    configuration: "docs/guide/configuration.md",
    getting_started: "docs/guide/getting-started.md",
    notifications: "docs/guide/notifications.md",
    pipelines: "docs/guide/pipelines.md",
    remote: "docs/guide/remote.md",
    service: "docs/guide/service.md",
    sessions: "docs/guide/sessions.md",
    tasks: "docs/guide/tasks.md",
    troubleshooting: "docs/guide/troubleshooting.md",
    undo: "docs/guide/undo.md",
}

#[test]
fn every_page_is_followed() {
    let files = std::fs::read_dir(root().join("docs/guide")).expect("the guide");
    let names = files.map(|file| file.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut there: BTreeSet<String> = names.map(|name| format!("docs/guide/{name}")).collect();
    there.insert("README.md".to_owned());
    let followed: BTreeSet<String> = PAGES.iter().map(ToString::to_string).collect();
    assert_eq!(followed, there);
}

/// What is not run has at least to be understood, up to the point where the help takes over.
#[test]
fn commands_that_are_not_run_are_understood() {
    let mut understood = 0;
    for page in PAGES {
        let text =
            std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        let page_items = Page::parse(&text);
        let skipped = page_items.blocks().filter(|block| matches!(block.way, Way::Skip(_)));
        for example in skipped.flat_map(|block| &block.examples) {
            for mut words in commands_of("rekindle", &example.command) {
                let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
                words.insert(end, "--help".to_owned());
                let output = shell::rekindle().args(&words).output().expect("it runs");
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(
                    output.status.success(),
                    "{page}, line {}: {}\n{said}",
                    example.line,
                    example.command
                );
                understood += 1;
            }
        }
    }
    assert!(understood > 0, "some commands cannot be run in a test");
}
