//! Rule: no circle of imports between modules beside each other, at any level of a crate, so that each can be read and changed
//! with nothing but what lies below it. Follows `crate::…` and `super::…` in code that is no test, also through exports.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{Module, Modules};
use crate::{SourceFile, Violation};

/// An arrow that closes a circle and is let through for now.
struct Exception {
    /// The crate's directory.
    krate: &'static str,
    /// Who imports.
    from: &'static str,
    /// What it imports.
    to: &'static str,
    /// Why it is still there.
    reason: &'static str,
}

/// Arrows that are to go. One that is in no circle any more is reported, so that this list only shrinks.
const EXCEPTIONS: &[Exception] = &[
    Exception {
        krate: "crates/server",
        from: "openapi",
        to: "router",
        reason: "the description that is served is made of the router's own table",
    },
    Exception {
        krate: "crates/demo-agent",
        from: "turn",
        to: "serve",
        reason: "turns and the loop share one state",
    },
];

/// Who imports whom among modules beside each other, and where it does so first.
type Arrows = BTreeMap<String, BTreeMap<String, (String, usize)>>;

/// Checks the modules of every crate.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    check_but(files, EXCEPTIONS)
}

fn check_but(files: &[SourceFile], exceptions: &[Exception]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for modules in Modules::of_crates(files) {
        let mut arrows = arrows(&modules);
        let krate = modules.krate();
        for exception in exceptions.iter().filter(|exception| exception.krate == krate) {
            let Exception { from, to, reason, .. } = exception;
            // Two exceptions of one circle are one too many: each has to close a circle that the others leave.
            if way(&arrows, to, from).is_none() || !arrows.get(*from).is_some_and(|out| out.contains_key(*to))
            {
                let message = format!(
                    "`{from} -> {to}` of {krate} closes no circle ({reason}); remove it from EXCEPTIONS"
                );
                violations.push(Violation::new("crates/house/src/circles.rs", 1, message));
            } else if let Some(out) = arrows.get_mut(*from) {
                out.remove(*to);
            }
        }
        violations.extend(circles(krate, &arrows));
    }
    violations
}

/// Returns the arrows between modules beside each other, at every level of a crate.
fn arrows(modules: &Modules<'_>) -> Arrows {
    let mut arrows = Arrows::new();
    for module in modules.all() {
        for (line, target) in modules.references(module) {
            let path = module.path();
            let common = path.iter().zip(&target).take_while(|(one, other)| one == other).count();
            // Whoever names a module above or below is part of it.
            if let (Some(from), Some(to)) = (path.get(..=common), target.get(..=common)) {
                let out = arrows.entry(from.join("::")).or_default();
                out.entry(to.join("::")).or_insert_with(|| place(module, line));
            }
        }
    }
    arrows
}

fn place(module: &Module<'_>, line: usize) -> (String, usize) {
    (module.file().to_owned(), line)
}

/// Returns a violation for each circle, every module being in at most one of them.
fn circles(krate: &str, arrows: &Arrows) -> Vec<Violation> {
    let (mut told, mut violations) = (BTreeSet::new(), Vec::new());
    for from in arrows.keys() {
        if told.contains(from) {
            continue;
        }
        let Some(circle) = way(arrows, from, from) else { continue };
        let (path, line) = &arrows[&circle[0]][&circle[1]];
        let words = circle.join(" -> ");
        let message = format!(
            "{krate}: {words} is a circle of imports; move what both sides need into a module below them"
        );
        violations.push(Violation::new(path, *line, message));
        told.extend(circle);
    }
    violations
}

/// Finds a shortest way along at least one arrow.
fn way(arrows: &Arrows, from: &str, to: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_owned()]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = way.last().map(String::as_str).unwrap_or_default();
            for next in arrows.get(last).into_iter().flat_map(BTreeMap::keys) {
                let way: Vec<String> = way.iter().chain([next]).cloned().collect();
                if next == to {
                    return Some(way);
                }
                if seen.insert(next.clone()) {
                    longer.push(way);
                }
            }
        }
        ways = longer;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tests::file;
    use super::*;

    fn said(files: &[SourceFile], exceptions: &[Exception]) -> Vec<String> {
        check_but(files, exceptions).iter().map(ToString::to_string).collect()
    }

    /// Three modules in a row, the lowest of which is given.
    fn three(lowest: &str) -> [SourceFile; 4] {
        [
            file("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;\n"),
            file("crates/x/src/a.rs", "use crate::b::B;\n"),
            file("crates/x/src/b.rs", "use crate::c::C;\n"),
            file("crates/x/src/c.rs", lowest),
        ]
    }

    #[test]
    fn modules_in_a_row_are_in_order_and_tests_may_look_up() {
        for lowest in [
            "//! crate::a",
            "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
            "use rekindle_other::crate_::a;\nstruct A(self::C);\n",
        ] {
            assert_eq!(said(&three(lowest), &[]), [""; 0], "{lowest}");
        }
    }

    #[test]
    fn a_circle_is_told_in_words_with_its_first_arrow() {
        for lowest in
            ["use super::a;", "use crate::{a::A};", "fn f() { crate::a::f() }", "use crate::{d, a};"]
        {
            let said = said(&three(lowest), &[]);
            assert_eq!(said.len(), 1, "{lowest}: {said:?}");
            let expected = "crates/x/src/a.rs:1: crates/x: a -> b -> c -> a is a circle of imports;";
            assert!(said[0].starts_with(expected), "{said:?}");
        }
    }

    #[test]
    fn a_circle_through_a_folder_or_another_name_is_one_of_those_beside_each_other() {
        let files = [
            file("crates/x/src/lib.rs", "mod a;\nmod b;\npub use a::Thing;\n"),
            file("crates/x/src/a/mod.rs", "mod inner;\npub use inner::Thing;\n"),
            file("crates/x/src/a/inner.rs", "use super::super::b::B;\n"),
            file("crates/x/src/b.rs", "use crate::Thing;\n"),
        ];
        let said = said(&files, &[]);
        assert!(said.len() == 1 && said[0].starts_with("crates/x/src/a/inner.rs:1: crates/x: a -> b -> a "));
    }

    #[test]
    fn a_circle_inside_of_a_folder_is_found_and_a_child_may_name_its_parent() {
        let folder = |inner: &str| {
            [
                file("crates/x/src/lib.rs", "mod a;\n"),
                file("crates/x/src/a/mod.rs", "mod one;\nmod two;\npub(crate) use one::One;\nstruct A;\n"),
                file("crates/x/src/a/one.rs", "use super::A;\nuse super::two::Two;\n"),
                file("crates/x/src/a/two.rs", inner),
            ]
        };
        assert_eq!(said(&folder("use super::A;\nuse crate::a::A as B;\n"), &[]), [""; 0]);
        let said = said(&folder("use crate::a::{A, One};\n"), &[]);
        assert!(
            said.len() == 1 && said[0].contains("crates/x: a::one -> a::two -> a::one is a circle"),
            "{said:?}"
        );
    }

    #[test]
    fn an_exception_lets_a_circle_through_and_is_reported_when_it_is_not_needed() {
        let exception = |from, to| Exception { krate: "crates/x", from, to, reason: "it is old" };
        let files = three("use super::a;");
        assert_eq!(said(&files, &[exception("c", "a")]), [""; 0]);
        let two = said(&files, &[exception("c", "a"), exception("a", "b")]);
        assert!(
            two.len() == 1 && two[0].contains("`a -> b` of crates/x closes no circle (it is old)"),
            "{two:?}"
        );
        assert_eq!(said(&three(""), &[exception("c", "a")]).len(), 1);
    }
}
