//! Rule: no link in a Markdown file leads nowhere: what it names below the root is there, and so is the heading behind a `#`.

use crate::{SourceFile, Violation};

/// Checks the links of every Markdown file; `exists` tells whether there is something at a path below the root.
pub(crate) fn check(files: &[SourceFile], exists: &dyn Fn(&str) -> bool) -> Vec<Violation> {
    let pages = files.iter().filter(|file| file.path.ends_with(".md"));
    pages.flat_map(|page| check_page(page, files, exists)).collect()
}

fn check_page(page: &SourceFile, files: &[SourceFile], exists: &dyn Fn(&str) -> bool) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (line, target) in links(&page.text) {
        if target.contains("://") || target.starts_with("mailto:") {
            continue;
        }
        let (path, heading) =
            target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
        let place = if path.is_empty() { Some(page.path.clone()) } else { resolve(&page.path, path) };
        let text = place.as_ref().and_then(|place| files.iter().find(|file| file.path == *place));
        let wrong = match (&place, heading, text) {
            (None, ..) => Some(format!("{path} leads out of the workspace")),
            (Some(place), _, None) if !exists(place) => Some(format!("there is no {place}")),
            (Some(place), Some(heading), Some(file)) if !has_heading(&file.text, heading) => {
                Some(format!("{place} has no heading #{heading}"))
            }
            _ => None,
        };
        violations.extend(wrong.map(|wrong| Violation::new(&page.path, line, format!("dead link: {wrong}"))));
    }
    violations
}

/// Returns line and target of each link and picture outside of code.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            continue;
        }
        let mut rest = if in_code { "" } else { line };
        while let Some((before, behind)) = rest.split_once("](") {
            let (target, behind) = behind.split_once(')').unwrap_or((behind, ""));
            // Between two backticks it is an example.
            let is_code = line[..line.len() - rest.len() + before.len()].matches('`').count() % 2 == 1;
            if !is_code {
                found.push((index + 1, target));
            }
            rest = behind;
        }
    }
    found
}

/// Returns the path below the root that a link of a page means; none if it leads out of there.
fn resolve(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

fn has_heading(text: &str, wanted: &str) -> bool {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#'));
    headings.map(|heading| anchor(heading.trim())).any(|anchor| anchor == wanted)
}

/// Returns what a heading is linked by: small letters, with `-` for blanks and nothing for signs.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, places};
    use super::*;

    #[test]
    fn dead_links_are_found_and_others_are_not() {
        let page = "# A page: `x`\n[a](../b.md) [b](../b.md#a-heading)\n[c](#a-page-x) [d](https://example.com/none)\n\
                    ![e](../picture.svg) [f](../src/)\n```\n[g](none)\n```\n`[h](none)`\n\
                    [bad](none.md)\n[bad](../b.md#none) [bad](../../../etc)\n[bad](#none)\n";
        let files = [file("docs/a.md", page), file("b.md", "## A heading\n")];
        let exists = |path: &str| ["picture.svg", "src"].contains(&path);
        let found = check(&files, &exists);
        assert_eq!(places(&found), ["docs/a.md:9", "docs/a.md:10", "docs/a.md:10", "docs/a.md:11"]);
        assert_eq!(found[1].message, "dead link: b.md has no heading #none");
    }

    #[test]
    fn headings_are_linked_as_forges_do() {
        for (heading, expected) in [
            ("What happens when something dies", "what-happens-when-something-dies"),
            ("`[notify.sinks.NAME]`", "notifysinksname"),
            ("Agents of your own: `ndjson`", "agents-of-your-own-ndjson"),
            ("1. Install", "1-install"),
        ] {
            assert_eq!(anchor(heading), expected);
        }
    }
}
