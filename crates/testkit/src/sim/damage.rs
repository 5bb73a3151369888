//! Reading and damaging files behind the back of the code under test: no operations are counted or observed,
//! no faults strike, and what is done is durable at once, with all else that was pending of that file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_store::disk::OpenMode;

use super::content::Content;
use super::disk::SimDisk;
use super::errno::{EISDIR, os};
use super::image::Image;
use super::names::Node;

impl SimDisk {
    /// Returns the live bytes of a file, or nothing if there is none.
    pub fn read_file(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        self.state().image.live_bytes(path.as_ref()).map(|bytes| bytes.to_vec()).ok()
    }

    /// Makes a file with these bytes, and the directories above it, durable at once.
    ///
    /// Panics if a directory or file is in the way.
    pub fn write_file(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        let path = path.as_ref();
        let outcome = self.state().image.settle_file(path, bytes);
        if let Err(error) = outcome {
            panic!("cannot make {}: {error}", path.display());
        }
    }

    /// Turns all bits of one byte of a file; returns false if there is no such byte.
    pub fn flip_byte(&self, path: impl AsRef<Path>, offset: u64) -> bool {
        self.damage(path.as_ref(), |bytes| {
            let byte = usize::try_from(offset).ok().and_then(|at| bytes.get_mut(at));
            byte.map(|byte| *byte = !*byte).is_some()
        })
    }

    /// Cuts a file; returns false if it is missing or not longer than that.
    pub fn truncate_file(&self, path: impl AsRef<Path>, len: u64) -> bool {
        self.damage(path.as_ref(), |bytes| {
            let longer = bytes.len() as u64 > len;
            if longer {
                bytes.truncate(len as usize);
            }
            longer
        })
    }

    /// Removes a file; returns false if there is none.
    pub fn remove(&self, path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        let image = &mut self.state().image;
        image.last_write = None;
        image.remove_file(path).and_then(|()| image.settle_names_above(path)).is_ok()
    }

    /// Returns the paths of all live files, sorted.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state().image.tree.paths()
    }

    fn damage(&self, path: &Path, damage: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let image = &mut self.state().image;
        let Ok(mut bytes) = image.live_bytes(path) else { return false };
        damage(Arc::make_mut(&mut bytes)) && image.settle(path, bytes).is_ok()
    }
}

impl Image {
    fn live_bytes(&self, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        match self.tree.find(path)? {
            Node::File(inode) => Ok(self.file(inode)?.content.live().clone()),
            Node::Dir(_) => Err(os(EISDIR)),
        }
    }

    fn settle_file(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let above: Vec<&Path> = path.ancestors().skip(1).collect();
        for dir in above.iter().rev() {
            self.create_dir(dir)?;
        }
        self.open(path, OpenMode::Create)?;
        self.settle(path, Arc::new(bytes.to_vec()))?;
        self.settle_names_above(path)
    }

    fn settle(&mut self, path: &Path, bytes: Arc<Vec<u8>>) -> io::Result<()> {
        self.last_write = None;
        match self.tree.find(path)? {
            Node::File(inode) => self.edit(inode, |content| *content = Content::settled(bytes)),
            Node::Dir(_) => Err(os(EISDIR)),
        }
    }

    /// Makes all names in the directories above a path durable.
    fn settle_names_above(&mut self, path: &Path) -> io::Result<()> {
        for dir in path.ancestors().skip(1) {
            let dir = self.directory(dir)?;
            self.tree.sync(dir, |all| all);
        }
        Ok(())
    }
}
