//! The files of a home: where each is, and the disk it is on. What works on a home is handed both together.

use std::ops::Deref;

use crate::disk::SharedDisk;
use crate::layout::Layout;

/// The files of a home.
#[derive(Clone)]
pub(crate) struct HomeFiles {
    pub(crate) disk: SharedDisk,
    pub(crate) layout: Layout,
}

/// Where each file is.
impl Deref for HomeFiles {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        &self.layout
    }
}
