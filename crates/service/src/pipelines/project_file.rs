//! A project's `rekindle.toml` as the daemon reads it: sent by a caller or found in the directory, trusted by its bytes, and told by line
//! and column where it is wrong.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rekindle_agent::known::by_id;
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::ProjectConfig;
use rekindle_domain::pipeline::validate;
use rekindle_domain::time::Timestamp;
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::{MAX_PROJECT_CONFIG, ProjectFile};

use super::claims::canonical;
use crate::config_trust::{self, ConfigInUse};
use crate::error::{Result, ServiceError};

/// What the file is called.
const FILE: &str = "rekindle.toml";

/// Problems that are told at once.
const TOLD: usize = 20;

/// Reads the file of a directory.
pub(super) fn read(directory: &str) -> Result<ProjectFile> {
    let path = Path::new(directory).join(FILE);
    let missing = |why: &dyn std::fmt::Display| {
        let message = format!("{} cannot be read: {why}", path.display());
        ServiceError::new(Code::ConfigMissing, message)
    };
    let mut bytes = Vec::new();
    let most = MAX_PROJECT_CONFIG as u64 + 1;
    let read = File::open(&path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(|error| missing(&error))?;
    let text = String::from_utf8(bytes).map_err(|_| invalid(&path, "it is no UTF-8; save it as UTF-8"))?;
    Ok(ProjectFile { path: path.display().to_string(), text })
}

/// Reads what a file says, and checks it.
pub(super) fn parse(file: &ProjectFile) -> Result<ProjectConfig> {
    let config = lenient(file)?;
    let problems = validate::problems(&config, |name| by_id(name).is_some());
    if problems.is_empty() {
        return Ok(config);
    }
    let mut told: Vec<String> = problems.iter().take(TOLD).map(ToString::to_string).collect();
    if problems.len() > TOLD {
        told.push(format!("{} more", problems.len() - TOLD));
    }
    Err(invalid(Path::new(&file.path), &told.join("; ")))
}

/// Reads what a file says, whether it makes sense or not: it is compared with what a run was started with.
pub(super) fn lenient(file: &ProjectFile) -> Result<ProjectConfig> {
    let path = Path::new(&file.path);
    if file.text.len() > MAX_PROJECT_CONFIG {
        return Err(invalid(path, &format!("it is larger than {MAX_PROJECT_CONFIG} bytes")));
    }
    toml::from_str(&file.text).map_err(|error| {
        let before = file.text.get(..error.span().map_or(0, |span| span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        let words: Vec<&str> =
            error.message().lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        invalid(path, &format!("line {line}, column {column}: {}", words.join(", ")))
    })
}

fn invalid(path: &Path, why: &str) -> ServiceError {
    ServiceError::new(Code::ConfigInvalid, format!("{}: {why}", path.display())).hint(Hint::CheckConfig)
}

/// Refuses a file that nobody has said of that it is trusted in this directory; `trust` is what is said now.
pub(super) fn check_trust(
    (disk, layout): (&SharedDisk, &Layout),
    directory: &str,
    file: &ProjectFile,
    trust: Option<BlobId>,
    (by, at): (&str, Timestamp),
) -> Result<()> {
    let root = canonical(Path::new(directory)).display().to_string();
    let config = ConfigInUse { root: &root, hash: file.hash(), said: trust, by };
    config_trust::require(&**disk, layout, config, at)
}
