//! Rule: each variable of the environment that our code names is documented: those of users in the page on configuration, those of
//! developers in CONTRIBUTING.md. And the page documents none that the code does not name.

use std::collections::BTreeMap;

use super::code::strings_only;
use super::words::is_test;
use crate::{SourceFile, Violation};

const PREFIX: &str = "REKINDLE_";

/// Where variables are documented.
const PAGES: &[&str] = &["docs/guide/configuration.md", "CONTRIBUTING.md"];

/// Crates that are no part of the product.
const TOOLS: &[&str] = &["bench", "house", "lab", "testkit", "trial"];

/// Compares the variables of the code with those of the pages.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    let code = files.iter().filter(|file| is_product(&file.path));
    let code = named_in(code.map(|file| (file, strings_only(&file.text))));
    let pages = files.iter().filter(|file| PAGES.contains(&file.path.as_str()));
    let pages = named_in(pages.map(|file| (file, file.text.clone())));
    let missing = code.iter().filter(|(name, _)| !pages.contains_key(*name)).map(|(name, (path, line))| {
        let message =
            format!("{name} is documented nowhere; add it to {}", PAGES.join(" or, for developers, to "));
        Violation::new(path, *line, message)
    });
    let for_users = pages.iter().filter(|(_, (path, _))| path == PAGES[0]);
    let invented = for_users.filter(|(name, _)| !code.contains_key(*name)).map(|(name, (path, line))| {
        Violation::new(path, *line, format!("no code names {name}; remove it, or write it as the code does"))
    });
    missing.chain(invented).collect()
}

fn is_product(path: &str) -> bool {
    let inside = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
    inside.is_some_and(|(krate, _)| !TOOLS.contains(&krate)) && path.ends_with(".rs") && !is_test(path)
}

/// Returns where each variable is named first.
fn named_in<'a>(texts: impl Iterator<Item = (&'a SourceFile, String)>) -> BTreeMap<String, (String, usize)> {
    let mut places = BTreeMap::new();
    for (file, text) in texts {
        for (at, _) in text.match_indices(PREFIX) {
            let behind = &text[at + PREFIX.len()..];
            let length = behind.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(behind.len());
            let name = format!("{PREFIX}{}", &behind[..length]);
            // Of some the rest of the name is put behind it.
            if length > 0 && !name.ends_with('_') {
                let line = text[..at].matches('\n').count() + 1;
                places.entry(name).or_insert_with(|| (file.path.clone(), line));
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, places};
    use super::*;

    #[test]
    fn variables_of_the_code_and_of_the_pages_are_the_same() {
        let code = "//! X.\nf(\"REKINDLE_HOME\");\ng(\"REKINDLE_SECRET is read\");\nh(format!(\"REKINDLE_{name}\"));\n\
                    #[cfg(test)]\nmod tests { const A: &str = \"REKINDLE_NONE\"; }\n";
        let mut files = vec![
            file("crates/cli/src/home.rs", code),
            file("crates/bench/src/lab.rs", "//! X.\nf(\"REKINDLE_TOOL\");\n"),
            file("docs/guide/configuration.md", "`REKINDLE_HOME` and\n`REKINDLE_OLD`\n"),
        ];
        assert_eq!(places(&check(&files)), ["crates/cli/src/home.rs:3", "docs/guide/configuration.md:2"]);
        files.push(file("CONTRIBUTING.md", "REKINDLE_SECRET=… REKINDLE_SEED=…\n"));
        assert_eq!(places(&check(&files)), ["docs/guide/configuration.md:2"]);
    }
}
