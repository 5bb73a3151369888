//! Working directories as requests name them: refused if nobody could work there.

use std::path::Path;

use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;

use crate::error::{Result, ServiceError};

/// Refuses a working directory that is not there.
pub(crate) fn check_directory(directory: &str) -> Result<()> {
    let place = Path::new(directory);
    if place.is_absolute() && place.is_dir() {
        return Ok(());
    }
    let message = format!("the working directory {directory} does not exist");
    Err(ServiceError::new(Code::InvalidWorkingDir, message).hint(Hint::NameDirectory))
}

/// Says that a directory cannot be one that somebody works in.
pub(super) fn unusable(directory: &str, why: &str) -> ServiceError {
    let message = format!("the working directory {directory} cannot be used: {why}");
    ServiceError::new(Code::InvalidWorkingDir, message).hint(Hint::NameDirectory)
}
