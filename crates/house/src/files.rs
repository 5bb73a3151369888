//! Which files the rules look at: what git tracks or would track, else everything below the root.
//! Reads only the kinds of file that some rule is about.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::SourceFile;

/// Reads the Rust files, the manifests and the pages of the workspace, sorted by path.
pub(crate) fn read(root: &Path) -> io::Result<Vec<SourceFile>> {
    let mut paths = match from_git(root) {
        Some(paths) => paths,
        None => walk(root)?,
    };
    paths.retain(|path| is_of_interest(path));
    paths.sort();
    paths.dedup();

    let mut files = Vec::new();
    for path in paths {
        match fs::read_to_string(root.join(&path)) {
            Ok(text) => files.push(SourceFile { path, text }),
            // Git still lists a file whose removal is not committed yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed("read", &path)(error)),
        }
    }
    Ok(files)
}

fn is_of_interest(path: &str) -> bool {
    path.ends_with(".rs") || path == "Cargo.toml" || path.ends_with("/Cargo.toml") || path.ends_with(".md")
}

/// Asks git; `None` without git, outside a repository, or if the repository is not about these files.
fn from_git(root: &Path) -> Option<Vec<String>> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(args).current_dir(root).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let paths: Vec<String> =
        String::from_utf8(output.stdout).ok()?.split_terminator('\0').map(Into::into).collect();
    // A copy of the tree that lies ignored in someone else's repository must not pass as empty.
    paths.iter().any(|path| path == "Cargo.toml").then_some(paths)
}

/// Lists all files below `root` except build output and git's own; follows no links.
fn walk(root: &Path) -> io::Result<Vec<String>> {
    let mut files = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(directory) = pending.pop() {
        let place = root.join(&directory);
        let entries = fs::read_dir(&place).map_err(failed("list", &directory))?;
        for entry in entries {
            let entry = entry.map_err(failed("list", &directory))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
            let kind = entry.file_type().map_err(failed("look at", &path))?;
            if kind.is_dir() && name != "target" && name != ".git" {
                pending.push(path);
            } else if kind.is_file() {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// Says what could not be done with which file.
fn failed(doing: &str, path: &str) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("cannot {doing} {path:?}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_sources() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR"))
    }

    #[test]
    fn the_walk_finds_files_by_their_path_below_the_root() {
        let paths = walk(own_sources()).expect("our own directory can be listed");
        assert!(paths.contains(&"Cargo.toml".to_owned()), "{paths:?}");
        assert!(paths.contains(&"src/files.rs".to_owned()), "{paths:?}");
    }

    #[test]
    fn files_are_read_once_and_in_order() {
        let files = read(own_sources()).expect("our own files can be read");
        assert!(files.is_sorted_by(|a, b| a.path < b.path));
        assert!(files.iter().any(|file| file.path == "src/main.rs" && file.text.starts_with("//!")));
    }

    #[test]
    fn only_sources_manifests_and_pages_matter() {
        for path in [
            "crates/store/src/wal.rs",
            "Cargo.toml",
            "crates/store/Cargo.toml",
            "docs/promises.md",
            "README.md",
        ] {
            assert!(is_of_interest(path), "{path}");
        }
        for path in ["Cargo.lock", "docs/demo.svg", "fixtures/home.json"] {
            assert!(!is_of_interest(path), "{path}");
        }
    }
}
