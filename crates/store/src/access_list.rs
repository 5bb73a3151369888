//! The list of access tokens as a file: one small file, replaced whole, with a lock of its own. Whoever owns the home reads
//! it; commands change it, with or without a daemon. Beside it stands when tokens were last used, which is a cache.

use std::collections::BTreeMap;
use std::io;
use std::time::SystemTime;

use rekindle_domain::access::{ACCESS_VERSION, AccessList};
use rekindle_domain::id::AccessId;
use rekindle_domain::time::Timestamp;

use crate::disk::{Disk, read_all, replace};
use crate::layout::Layout;
pub use crate::list_file::ListError as AccessError;
use crate::list_file::ListFile;

/// More than the longest list that is ever written: some hundred bytes a token.
const MOST: u64 = 1 << 20;

fn file(layout: &Layout) -> ListFile {
    ListFile {
        path: layout.access(),
        lock: layout.access_lock(),
        what: "list of access tokens",
        version: ACCESS_VERSION,
        most: MOST,
    }
}

/// By which it is known that the file is another one than before; none if there is none.
pub type Stamp = Option<((u64, u64), u64, SystemTime)>;

/// Looks at the file without reading it.
pub fn stamp(disk: &dyn Disk, layout: &Layout) -> Stamp {
    disk.stat(&layout.access()).ok().map(|stat| (stat.identity, stat.len, stat.modified))
}

/// Reads the list; without a file it is empty.
pub fn read(disk: &dyn Disk, layout: &Layout) -> Result<AccessList, AccessError> {
    file(layout).read(disk)
}

/// Changes the list: read, changed and replaced while nobody else does. A crash leaves the old list or the new one. What
/// `change` refuses is not written.
pub fn change<T, E>(
    disk: &dyn Disk,
    layout: &Layout,
    change: impl FnOnce(&mut AccessList) -> Result<T, E>,
) -> Result<Result<T, E>, AccessError> {
    file(layout).change(disk, change)
}

/// When tokens were last used.
pub type Used = BTreeMap<AccessId, Timestamp>;

/// Reads when tokens were last used; what cannot be read is not known.
pub fn read_used(disk: &dyn Disk, layout: &Layout) -> Used {
    let bytes = read_all(disk, &layout.access_used(), MOST).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Keeps when tokens were last used.
pub fn write_used(disk: &dyn Disk, layout: &Layout, used: &Used) -> io::Result<()> {
    replace(disk, &layout.access_used(), &serde_json::to_vec(used)?)
}
