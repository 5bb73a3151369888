//! Directories that runs have to themselves: one run writes to a directory at a time, and the same goes for one above it or below it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rekindle_domain::id::PipelineId;

use crate::lock::locked;

/// The directories that runs have.
#[derive(Default)]
pub(super) struct Claims(Mutex<HashMap<PipelineId, PathBuf>>);

impl Claims {
    /// Gives a run its directory, unless another one has it; tells whose it is.
    pub(super) fn take(&self, run: PipelineId, directory: &Path) -> Result<(), PipelineId> {
        let directory = canonical(directory);
        let mut taken = locked(&self.0);
        let by_other = taken.iter().find(|(other, held)| **other != run && conflict(held, &directory));
        match by_other {
            Some((other, _)) => Err(*other),
            None => {
                taken.insert(run, directory);
                Ok(())
            }
        }
    }

    /// Returns the run that has a directory which another one would like to have.
    pub(super) fn holder(&self, run: PipelineId, directory: &Path) -> Option<PipelineId> {
        let directory = canonical(directory);
        let taken = locked(&self.0);
        taken
            .iter()
            .find(|(other, held)| **other != run && conflict(held, &directory))
            .map(|(other, _)| *other)
    }

    /// Returns which runs have which directories.
    pub(super) fn all(&self) -> Vec<(PipelineId, PathBuf)> {
        locked(&self.0).iter().map(|(run, directory)| (*run, directory.clone())).collect()
    }

    /// Takes a directory back; tells whether the run had one.
    pub(super) fn release(&self, run: PipelineId) -> bool {
        locked(&self.0).remove(&run).is_some()
    }
}

/// Tells whether what is done in one of two directories may be seen in the other.
pub(super) fn conflict(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns a directory by the name that it has without links; one that is not there keeps its own.
pub(super) fn canonical(directory: &Path) -> PathBuf {
    directory.canonicalize().unwrap_or_else(|_| directory.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_one_runs_at_a_time_with_what_is_above_and_below_it() {
        let claims = Claims::default();
        let [one, other] = [PipelineId::from_ulid(1), PipelineId::from_ulid(2)];
        assert_eq!(claims.take(one, Path::new("/nowhere/repo")), Ok(()));
        assert_eq!(claims.take(one, Path::new("/nowhere/repo")), Ok(()), "it has it");
        for busy in ["/nowhere/repo", "/nowhere", "/nowhere/repo/src"] {
            assert_eq!(claims.take(other, Path::new(busy)), Err(one), "{busy}");
        }
        assert_eq!(claims.take(other, Path::new("/nowhere/repository")), Ok(()));
        assert!(claims.release(one) && !claims.release(one));
        assert_eq!(claims.take(other, Path::new("/nowhere/repo")), Ok(()));
    }
}
