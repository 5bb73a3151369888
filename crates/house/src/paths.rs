//! The modules of a crate and what each names of the others: read from text, as far as paths that begin with `crate`, `super`
//! or `self` tell, and through `use` declarations that export a name again.

use std::collections::BTreeMap;

use super::code::{code_only, is_word, without_tests};
use crate::SourceFile;

/// Exports of exports that are followed: more than anyone writes.
const MOST_EXPORTS: usize = 8;

/// Names of a path, from the crate's root.
pub(super) type Path = Vec<String>;

/// A module that is a file of its own, and no test.
pub(super) struct Module<'a> {
    path: Path,
    file: &'a str,
    code: String,
    /// What it exports under which name, as it is written.
    exports: BTreeMap<String, Path>,
}

impl Module<'_> {
    pub(super) fn path(&self) -> &[String] {
        &self.path
    }

    pub(super) fn file(&self) -> &str {
        self.file
    }
}

/// The modules of one crate.
pub(super) struct Modules<'a> {
    krate: &'a str,
    modules: BTreeMap<Path, Module<'a>>,
}

impl<'a> Modules<'a> {
    /// Reads all crates of the workspace that have a `src/lib.rs` or a `src/main.rs`.
    pub(super) fn of_crates(files: &'a [SourceFile]) -> Vec<Modules<'a>> {
        let by_path: BTreeMap<&str, &str> =
            files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
        let root = |path: &&'a str| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
        let roots: Vec<&'a str> = files.iter().map(|file| file.path.as_str()).filter(root).collect();
        roots.into_iter().map(|root| Modules::of_crate(root, &by_path)).collect()
    }

    /// Follows the declarations from the root: what only tests declare is not reached.
    fn of_crate(root: &'a str, files: &BTreeMap<&'a str, &'a str>) -> Modules<'a> {
        let krate = root.rsplit_once("/src/").map_or(root, |(krate, _)| krate);
        let mut modules = BTreeMap::new();
        let mut pending = vec![(Path::new(), root)];
        while let Some((path, file)) = pending.pop() {
            let code = without_tests(&code_only(files.get(file).copied().unwrap_or_default()));
            for child in declared(&code) {
                let path: Path = path.iter().cloned().chain([child]).collect();
                let place = format!("{krate}/src/{}", path.join("/"));
                let there = |file: &String| files.get_key_value(file.as_str()).map(|(file, _)| *file);
                let found = [format!("{place}.rs"), format!("{place}/mod.rs")].iter().find_map(there);
                pending.extend(found.map(|file| (path, file)));
            }
            let exports = exports(&code);
            modules.insert(path.clone(), Module { path, file, code, exports });
        }
        Modules { krate, modules }
    }

    /// Returns the crate's directory.
    pub(super) fn krate(&self) -> &str {
        self.krate
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Module<'a>> {
        self.modules.values()
    }

    /// Returns the modules that a module names, each with a line where it does.
    pub(super) fn references(&self, module: &Module<'_>) -> Vec<(usize, Path)> {
        let mut found = Vec::new();
        for word in ["crate", "super", "self"] {
            for (at, _) in module.code.match_indices(word) {
                let (before, rest) = (&module.code[..at], &module.code[at..]);
                let begins = !before.ends_with(is_word) && !before.trim_end().ends_with("::");
                if begins && rest[word.len()..].starts_with("::") {
                    let line = before.matches('\n').count() + 1;
                    let targets =
                        names(rest).into_iter().filter_map(|(_, names)| self.resolve(module, &names));
                    found.extend(targets.map(|target| (line, target)));
                }
            }
        }
        found.sort();
        found
    }

    /// Returns the module in which something is that a module names.
    fn resolve(&self, module: &Module<'_>, names: &[String]) -> Option<Path> {
        let mut path = module.path.clone();
        let mut names = names.to_vec();
        for _ in 0..MOST_EXPORTS {
            let (mut rest, mut begun) = (names.into_iter(), false);
            let mut last = None;
            for name in rest.by_ref() {
                match name.as_str() {
                    "crate" if !begun => path.clear(),
                    "self" => {}
                    "super" => drop(path.pop()?),
                    _ => {
                        path.push(name);
                        if !self.modules.contains_key(&path) {
                            last = path.pop();
                            break;
                        }
                    }
                }
                begun = true;
            }
            let exported = last.and_then(|last| self.modules.get(&path)?.exports.get(&last));
            let Some(exported) = exported else { return Some(path) };
            names = exported.clone();
        }
        Some(path)
    }
}

/// Returns the names behind each `mod` that is a file of its own.
fn declared(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("mod ") {
        let name: String = code[at + 4..].chars().take_while(|c| is_word(*c)).collect();
        if !code[..at].ends_with(is_word) && code[at + 4 + name.len()..].starts_with(';') {
            found.push(name);
        }
    }
    found
}

/// Returns what `use` declarations bring into a module, by the name they give it.
fn exports(code: &str) -> BTreeMap<String, Path> {
    let mut found = BTreeMap::new();
    for (at, _) in code.match_indices("use ") {
        // What only the module itself uses is nobody's way to it.
        if !code[..at].ends_with(is_word) && code[..at].trim_end().ends_with([')', 'b']) {
            found.extend(names(&code[at + 4..]).into_iter().filter(|(_, names)| names.len() > 1));
        }
    }
    found
}

/// Reads a path, or a tree of them in braces: each with the name under which it is known afterwards.
fn names(text: &str) -> Vec<(String, Path)> {
    let mut found = Vec::new();
    tree(text, &Path::new(), &mut found);
    found
}

/// Reads one tree behind a prefix; returns what follows it.
fn tree<'t>(text: &'t str, prefix: &[String], found: &mut Vec<(String, Path)>) -> &'t str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = tree(rest, prefix, found).trim_start();
            match rest.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => rest = more,
                more => return more.unwrap_or(rest).trim_start().strip_prefix('}').unwrap_or(rest),
            }
        }
    }
    let name: String = text.chars().take_while(|c| is_word(*c)).collect();
    if name.is_empty() {
        found.push((String::new(), prefix.to_vec()));
        return text.strip_prefix('*').unwrap_or(text);
    }
    let rest = &text[name.len()..];
    let path: Path = prefix.iter().cloned().chain([name.clone()]).collect();
    if let Some(more) = rest.strip_prefix("::") {
        return tree(more, &path, found);
    }
    match rest.strip_prefix(" as ") {
        Some(more) => {
            let alias: String = more.trim_start().chars().take_while(|c| is_word(*c)).collect();
            let rest = &more.trim_start()[alias.len()..];
            found.push((alias, path));
            rest
        }
        None => {
            let last = if name == "self" { prefix.last().cloned().unwrap_or_default() } else { name };
            found.push((last, path));
            rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_trees_of_paths_are_read() {
        for (text, expected) in [
            ("crate::a::b(c)", vec!["b=crate::a::b"]),
            ("crate::a::<T>()", vec!["=crate::a"]),
            (
                "super::{self, a::{B, C as D}, e::*}; f",
                vec!["super=super::self", "B=super::a::B", "D=super::a::C", "=super::e"],
            ),
            ("crate::{\n    a,\n    b::C,\n};\nuse x::y;", vec!["a=crate::a", "C=crate::b::C"]),
        ] {
            let read: Vec<String> =
                names(text).into_iter().map(|(name, path)| format!("{name}={}", path.join("::"))).collect();
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn only_what_others_can_name_is_an_export() {
        let code = "use a::A;\npub use b::B;\npub(crate) use c::{C, d::D as E};\npub use rekindle;\n";
        let exported: Vec<String> =
            exports(code).into_iter().map(|(name, path)| format!("{name}={}", path.join("::"))).collect();
        assert_eq!(exported, ["B=b::B", "C=c::C", "E=c::d::D"]);
        assert_eq!(declared("mod a;\npub mod b;\nmod c { }\nfn remod () {}"), ["a", "b"]);
    }
}
