//! The list of project files that are trusted, as a file of the home.

use std::convert::Infallible;

use rekindle_domain::config_trust::{TRUST_VERSION, TrustList, TrustedConfig};

use crate::disk::Disk;
use crate::layout::Layout;
pub use crate::list_file::ListError as TrustError;
use crate::list_file::ListFile;

/// More than the longest list that is ever written: paths of some thousand directories.
const MOST: u64 = 32 << 20;

fn file(layout: &Layout) -> ListFile {
    ListFile {
        path: layout.trusted_configs(),
        lock: layout.trusted_configs_lock(),
        what: "list of project files that are trusted",
        version: TRUST_VERSION,
        most: MOST,
    }
}

/// Reads the list; without a file nothing is trusted.
pub fn read(disk: &dyn Disk, layout: &Layout) -> Result<TrustList, TrustError> {
    file(layout).read(disk)
}

/// Adds a file that is trusted from now on: on disk when it returns.
pub fn trust(disk: &dyn Disk, layout: &Layout, new: TrustedConfig) -> Result<(), TrustError> {
    let changed: Result<bool, Infallible> =
        file(layout).change(disk, |list: &mut TrustList| Ok(list.trust(new)))?;
    changed.map(drop).map_err(|never| match never {})
}
