//! Which paths of a workspace count: ignore files, the user's lists, and what git tracks.
//! Nothing here reads a directory; `git_dir` alone opens files, those of git's own.

mod git_dir;
mod git_index;
mod ignore_chain;
mod lists;

pub use git_dir::{GitHead, Repository};
pub use git_index::{IndexError, TrackedPaths};
pub use ignore_chain::{Decision, DirRules, IgnoreFiles};
pub use lists::{Lists, Selection};

use rekindle_domain::blob_id::BlobId;

/// Names of the files that say what is ignored. The second beats the first.
pub const IGNORE_FILES: [&str; 2] = [".gitignore", ".rekindleignore"];

/// Largest ignore file that is honoured: each of its lines is compiled.
pub const MAX_IGNORE_FILE_BYTES: u64 = 1 << 20;

/// Returns true for a file that a restore has not finished: `.rekindle-<hex>.tmp`. It is never part of a workspace.
pub fn is_temporary(name: &[u8]) -> bool {
    name.strip_prefix(b".rekindle-").and_then(|rest| rest.strip_suffix(b".tmp")).is_some_and(|digits| {
        !digits.is_empty() && digits.iter().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
    })
}

/// Returns the hash of the rules of one capture: the user's lists and every ignore file that was met, by path and content.
///
/// Two captures with the same hash left out the same paths for the same reasons, apart from what git tracked.
pub fn hash_rules(lists: &Lists, ignore_files: &mut [(Vec<u8>, BlobId)]) -> BlobId {
    ignore_files.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"rkrules1\n").update(lists.key());
    for (path, content) in ignore_files {
        hasher.update(&(path.len() as u64).to_le_bytes()).update(path).update(content.as_bytes());
    }
    BlobId::from_bytes(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests;
