//! Directories by the names that they have without links: two tasks that came by different ways are in each other's way all the same.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock::locked;

/// How long a name is believed: links change now and then.
const BELIEVED_FOR: Duration = Duration::from_secs(10);

/// Names of directories without links, remembered for a while: a look at ten thousand tasks asks the disk for few.
#[derive(Default)]
pub(super) struct CanonicalPaths(Mutex<Known>);

struct Known {
    since: Instant,
    names: HashMap<String, Arc<Path>>,
}

impl Default for Known {
    fn default() -> Known {
        Known { since: Instant::now(), names: HashMap::new() }
    }
}

impl CanonicalPaths {
    /// Returns the name of a directory without links; one that is not there keeps its own.
    pub(super) fn of(&self, directory: &str) -> Arc<Path> {
        {
            let mut known = locked(&self.0);
            if known.since.elapsed() > BELIEVED_FOR {
                *known = Known::default();
            }
            if let Some(found) = known.names.get(directory) {
                return found.clone();
            }
        }
        let real = Path::new(directory).canonicalize().unwrap_or_else(|_| PathBuf::from(directory));
        let real: Arc<Path> = real.into();
        locked(&self.0).names.insert(directory.to_owned(), real.clone());
        real
    }
}
