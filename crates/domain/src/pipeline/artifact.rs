//! Artifacts that an agent says it has made: files beneath the directory that it works in, each with the hash of its content. Whether
//! that is so is looked at when it has ended; what is wrong with one has a name, and its step fails.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Artifacts of one step that are looked at: far more than anybody names, and as many as can be hashed while a person waits.
pub const MOST_ARTIFACTS: usize = 1000;

/// Longest path of an artifact.
const MAX_PATH: usize = 4096;

/// Most of what an agent wrote that an error shows.
const SHOWN: usize = 200;

/// An artifact as an agent tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its path, from the directory that the agent works in.
    pub path: String,
    /// The SHA-256 of its content, as 64 hex digits in lower case.
    pub sha256: String,
}

/// What is wrong with an artifact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactError {
    /// What the agent told is no artifact.
    #[error("artifact_invalid: {0}")]
    Invalid(String),
    /// Its path leads out of the directory.
    #[error(
        "artifact_outside: {0:?} is not a path below the working directory; write it relative to that, without .."
    )]
    Outside(String),
    /// It is a link, or is reached through one.
    #[error("artifact_symlink: {0:?} is a symbolic link or leads through one")]
    Symlink(String),
    /// It is not there.
    #[error("artifact_missing: {0:?} does not exist")]
    Missing(String),
    /// It is something else than a file.
    #[error("artifact_no_file: {0:?} is not a regular file")]
    NoFile(String),
    /// It is there, and has another content.
    #[error("artifact_changed: {path:?} has the hash {found}, but its agent reported {told}")]
    Changed {
        /// Its path.
        path: String,
        /// The hash that its agent told.
        told: String,
        /// The hash that it has.
        found: String,
    },
    /// It cannot be read.
    #[error("artifact_unreadable: {path:?}: {why}")]
    Unreadable {
        /// Its path.
        path: String,
        /// Why.
        why: String,
    },
    /// There are more than anybody looks at.
    #[error("artifact_too_many: there are {0}; at most {MOST_ARTIFACTS} are allowed")]
    TooMany(usize),
}

impl Artifact {
    /// Reads what an agent told.
    pub fn parse(told: &Value) -> Result<Artifact, ArtifactError> {
        let text = |name: &str| told.get(name).and_then(Value::as_str);
        let invalid = |why: String| ArtifactError::Invalid(why);
        let path = text("path").filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| invalid("it has no path".into()))?;
        let shown: String = path.chars().take(SHOWN).collect();
        if path.len() > MAX_PATH || path.contains('\0') {
            return Err(invalid(format!("{shown:?} is longer than {MAX_PATH} bytes, or contains a NUL")));
        }
        // Trailing slashes and single dots lead nowhere else, and would give one file several names.
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(ArtifactError::Outside(shown));
        }
        let is_hash = |hash: &&str| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let sha256 = text("sha256").filter(is_hash);
        let sha256 = sha256.ok_or_else(|| invalid(format!("{shown:?} has no sha256 of 64 hex digits")))?;
        Ok(Artifact { path: path.to_owned(), sha256: sha256.to_ascii_lowercase() })
    }

    /// Compares its content with what its agent told.
    pub fn check(&self, found: &str) -> Result<(), ArtifactError> {
        if self.sha256 == found {
            return Ok(());
        }
        let (path, told) = (self.path.clone(), self.sha256.clone());
        Err(ArtifactError::Changed { path, told, found: found.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_stay_beneath_the_directory_and_hashes_are_hashes() {
        let hash = "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef";
        let parse = |path: &str, sha256: &str| Artifact::parse(&json!({"path": path, "sha256": sha256}));
        let found = parse("out/a b.txt", hash).expect("an artifact");
        assert_eq!((found.path.as_str(), found.sha256), ("out/a b.txt", hash.to_ascii_lowercase()));
        assert!(parse("..a/b..", hash).is_ok(), "dots in a name are a name");
        let long = "a".repeat(5000);
        for (path, sha256, name) in [
            ("/etc/passwd", hash, "artifact_outside"),
            ("../x", hash, "artifact_outside"),
            ("a/../../x", hash, "artifact_outside"),
            ("a//b", hash, "artifact_outside"),
            ("./a", hash, "artifact_outside"),
            ("a/", hash, "artifact_outside"),
            ("", hash, "artifact_invalid"),
            ("a\0b", hash, "artifact_invalid"),
            (long.as_str(), hash, "artifact_invalid"),
            ("a", "", "artifact_invalid"),
            ("a", &hash[1..], "artifact_invalid"),
            ("a", "z123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "artifact_invalid"),
        ] {
            let error = parse(path, sha256).expect_err(path).to_string();
            assert!(error.starts_with(name) && error.len() < 400, "{path}: {error}");
        }
        for told in [json!(null), json!([]), json!({"path": 7, "sha256": hash}), json!({"path": "a"})] {
            assert!(matches!(Artifact::parse(&told), Err(ArtifactError::Invalid(_))), "{told}");
        }
    }

    #[test]
    fn another_content_is_told_with_both_hashes() {
        let artifact = Artifact { path: "a".into(), sha256: "0".repeat(64) };
        assert_eq!(artifact.check(&"0".repeat(64)), Ok(()));
        let error = artifact.check(&"1".repeat(64)).expect_err("another").to_string();
        assert!(error.starts_with("artifact_changed: \"a\" has the hash 111"), "{error}");
    }
}
