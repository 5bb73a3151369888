//! The calls on paths: opening, listing, renaming, removing, and making names durable.

use std::io;
use std::path::Path;

use rekindle_store::disk::{Disk, DiskFile, Entry, OpenMode, Stat};

use super::disk::SimDisk;
use super::fault::FaultKind;
use super::file::SimFile;
use super::names::Node;
use super::op::{Op, OpKind};

impl Disk for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let there = self.state().image.tree.find(path);
        let kind = match (mode, there) {
            (OpenMode::Read | OpenMode::Write, _) | (OpenMode::Create, Ok(_)) => OpKind::Open,
            (OpenMode::Replace, Ok(Node::File(_))) => OpKind::Truncate,
            (OpenMode::Create | OpenMode::CreateNew | OpenMode::Replace, _) => OpKind::Create,
        };
        let op = Op::on(kind, path);
        let file = if kind.mutates() {
            let mut turn = self.turn(op)?;
            turn.pass()?;
            SimFile::open(self, &mut turn.state, path, mode)?
        } else {
            SimFile::open(self, &mut *self.look(op)?, path, mode)?
        };
        Ok(Box::new(file))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        let state = self.look(Op::on(OpKind::Stat, path))?;
        state.image.stat(state.image.tree.find(path)?)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.look(Op::on(OpKind::List, dir))?.image.list(dir)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut turn = self.turn(Op::on(OpKind::CreateDir, path))?;
        turn.pass()?;
        turn.state.tidy();
        turn.state.image.create_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut turn = self.turn(Op { to: Some(to.to_owned()), ..Op::on(OpKind::Rename, from) })?;
        turn.pass()?;
        turn.state.image.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut turn = self.turn(Op::on(OpKind::Remove, path))?;
        turn.pass()?;
        turn.state.image.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut turn = self.turn(Op::on(OpKind::RemoveDir, path))?;
        turn.pass()?;
        turn.state.image.remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut turn = self.turn(Op::on(OpKind::SyncDir, path))?;
        let image = &mut turn.state.image;
        let dir = image.directory(path)?;
        match turn.fault {
            None => image.tree.sync(dir, |all| all),
            Some(FaultKind::Interrupted) => {}
            // Names go through a journal: those that did not make it stay pending, unlike a file's blocks.
            Some(_) => image.tree.sync(dir, |all| image.rng.index(all + 1)),
        }
        turn.pass()
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        let op = Op { len: u64::from(mode), ..Op::on(OpKind::SetMode, path) };
        let mut turn = self.turn(op)?;
        turn.pass()?;
        turn.state.image.set_mode(path, mode)
    }
}
