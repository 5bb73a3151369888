//! Rule: dependencies between our crates point down only.
//! Reads the manifests line by line; what only tests depend on is free.

use crate::{SourceFile, Violation};

/// Each crate under `crates/` and those of ours that it may use, from the bottom up.
const LAYERS: &[(&str, &[&str])] = &[
    // One generator for tests, for the self-test and for made-up text.
    ("seeded", &[]),
    ("demo-agent", &["seeded"]),
    ("domain", &[]),
    ("holder", &[]),
    // Text for people is the same whoever prints it; points in time are the domain's.
    ("terminal", &["domain"]),
    ("agent", &["domain", "holder"]),
    ("store", &["domain"]),
    // Beside the store, not above it: a capture hands its objects to whoever keeps them.
    ("workspace", &["domain"]),
    // Beside the store too: rows are made from records, and nothing is made from rows.
    ("taskdb", &["domain"]),
    // Shapes that whoever serves and whoever calls share: nothing that does anything.
    ("wire", &["domain"]),
    // Beside the store: a notice is delivered by what it says, and who keeps it is another matter.
    ("notify", &["domain", "terminal"]),
    // Beside the store too: a file is read and checked, and nothing of it is kept.
    ("project", &["agent", "domain", "terminal"]),
    ("service", &["agent", "domain", "holder", "notify", "project", "store", "taskdb", "wire", "workspace"]),
    ("server", &["agent", "domain", "service", "wire"]),
    // The other side of the server: it finds, starts and asks a daemon, and must not know how one works.
    ("client", &["domain", "holder", "store", "terminal", "wire"]),
    // What people are shown is the same with a daemon and without one, and is made from shapes and records alone.
    ("display", &["client", "domain", "store", "terminal", "wire", "workspace"]),
    // Keys in, lines out: how a daemon is spoken to and what records look like are others' business.
    ("conversation", &["agent", "client", "display", "domain", "terminal", "wire"]),
    // The process around the service: whoever starts it is asked as a command is, and fails as one.
    ("daemon", &["client", "domain", "holder", "notify", "server", "service", "store"]),
    // The harness knows a daemon from outside, as tests need it, and must not share the client's mistakes.
    ("lab", &["holder", "store"]),
    // It asks daemons as any program does, and judges them by what is on disk: it never calls into one.
    ("trial", &["client", "domain", "holder", "lab", "seeded", "store", "terminal", "wire"]),
    ("testkit", &["domain", "seeded", "store", "wire"]),
    (
        "bench",
        &[
            "domain",
            "holder",
            "lab",
            "notify",
            "seeded",
            "service",
            "store",
            "taskdb",
            "testkit",
            "workspace",
        ],
    ),
    ("house", &[]),
    // It packs what is built.
    ("dist", &[]),
    // It draws what any command shows.
    ("picture", &[]),
    (
        "cli",
        &[
            "agent",
            "client",
            "conversation",
            "daemon",
            "demo-agent",
            "display",
            "domain",
            "holder",
            "notify",
            "project",
            "service",
            "store",
            "terminal",
            "trial",
            "wire",
            "workspace",
        ],
    ),
];

/// Checks the manifest of every crate against the table.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Violation> {
    files.iter().flat_map(check_manifest).collect()
}

fn check_manifest(file: &SourceFile) -> Vec<Violation> {
    let Some(name) = file.path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml"))
    else {
        return Vec::new();
    };
    let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
        let message = format!("crate `{name}` has no layer; add it to LAYERS in crates/house/src/layers.rs");
        return vec![Violation::new(&file.path, 1, message)];
    };
    dependencies(&file.text)
        .into_iter()
        .filter(|(_, dependency)| !allowed.contains(&dependency.as_str()))
        .map(|(line, dependency)| {
            let may = if allowed.is_empty() { "none of our crates".to_owned() } else { allowed.join(", ") };
            let message =
                format!("`{name}` depends on `{dependency}` but may use {may}; move the code down a layer");
            Violation::new(&file.path, line, message)
        })
        .collect()
}

/// Returns line and name (without `rekindle-`) of each of our crates that a manifest depends on.
fn dependencies(manifest: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_dependencies = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(header) = line.strip_prefix('[') {
            let section = header.trim_end_matches(']');
            // `[dependencies]`, `[build-dependencies]`, `[target.….dependencies]`, `[dependencies.rekindle-store]`.
            let parts: Vec<&str> = section.split('.').collect();
            in_dependencies = parts.iter().any(|part| matches!(*part, "dependencies" | "build-dependencies"));
            if !in_dependencies {
                continue;
            }
        }
        if in_dependencies && let Some(name) = our_crate(line) {
            found.push((index + 1, name));
        }
    }
    found
}

/// Returns the crate of ours that a line names, also behind another name (`package = "rekindle-store"`).
fn our_crate(line: &str) -> Option<String> {
    let start = line.find("rekindle")?;
    let word: String =
        line[start..].chars().take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
    match word.strip_prefix("rekindle")? {
        "" => Some("cli".to_owned()),
        rest => rest.strip_prefix(['-', '_']).map(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{file, places};
    use super::*;

    #[test]
    fn downward_and_test_dependencies_are_in_order() {
        let store = "[package]\nname = \"rekindle-store\"\n\n[dependencies]\nrekindle-domain.workspace = true\n\
                     blake3.workspace = true # not rekindle-cli\n\n[dev-dependencies]\nrekindle-testkit.workspace = true\n";
        assert_eq!(check(&[file("crates/store/Cargo.toml", store)]), []);
    }

    #[test]
    fn upward_dependencies_are_found_in_every_form() {
        let domain = "[dependencies]\nrekindle-store.workspace = true\n[target.'cfg(unix)'.dependencies]\n\
                      kit = { package = \"rekindle-testkit\", path = \"../testkit\" }\n[build-dependencies]\n\
                      rekindle = \"1\"\n[dependencies.rekindle-bench]\nworkspace = true\n[features]\n";
        let found = check(&[file("crates/domain/Cargo.toml", domain)]);
        let path = "crates/domain/Cargo.toml";
        assert_eq!(places(&found), [2, 4, 6, 7].map(|line| format!("{path}:{line}")));
        assert!(found[0].message.contains("`domain` depends on `store` but may use none of our crates"));
        assert!(found[2].message.contains("`cli`"));
    }

    #[test]
    fn a_crate_without_a_layer_is_a_violation() {
        let found = check(&[file("crates/attic/Cargo.toml", "[package]\n")]);
        assert_eq!(places(&found), ["crates/attic/Cargo.toml:1"]);
    }
}
