//! A project's `rekindle.toml` as the daemon reads it: sent by a caller or found in the directory, trusted by its bytes, and told by line
//! and column where it is wrong.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::event::ProjectConfig;
use rekindle_domain::time::Timestamp;
use rekindle_project::{FILE, Located};
use rekindle_store::disk::SharedDisk;
use rekindle_store::layout::Layout;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use rekindle_wire::request::{MAX_PROJECT_CONFIG, ProjectFile};

use super::claims::canonical;
use crate::config_trust::{self, ConfigInUse};
use crate::error::{Result, ServiceError};

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
    let text = String::from_utf8(bytes)
        .map_err(|_| invalid(&format!("{}: it is not valid UTF-8; save it as UTF-8", path.display())))?;
    Ok(ProjectFile { path: path.display().to_string(), text })
}

/// Reads what a file says, and checks it.
pub(super) fn parse(file: &ProjectFile) -> Result<ProjectConfig> {
    read_text(file, rekindle_project::check)
}

/// Reads what a file says, whether it makes sense or not: it is compared with what a run was started with.
pub(super) fn lenient(file: &ProjectFile) -> Result<ProjectConfig> {
    read_text(file, rekindle_project::parse)
}

fn read_text(
    file: &ProjectFile,
    read: impl FnOnce(&str) -> Result<ProjectConfig, Vec<Located>>,
) -> Result<ProjectConfig> {
    let path = Path::new(&file.path);
    if file.text.len() > MAX_PROJECT_CONFIG {
        return Err(invalid(&format!("{}: it is larger than {MAX_PROJECT_CONFIG} bytes", path.display())));
    }
    read(&file.text).map_err(|problems| {
        let mut told: Vec<String> = problems.iter().take(TOLD).map(|problem| problem.text(path)).collect();
        if problems.len() > TOLD {
            told.push(format!("and {} more", problems.len() - TOLD));
        }
        invalid(&told.join("\n"))
    })
}

fn invalid(why: &str) -> ServiceError {
    ServiceError::new(Code::ConfigInvalid, why).hint(Hint::CheckConfig)
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
