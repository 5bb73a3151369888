//! The calls on open files, and what each leaves behind when it fails.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_store::disk::{DiskFile, OpenMode, Stat};

use super::disk::{SimDisk, State};
use super::errno::{EBADF, EFBIG, ENOSPC, os};
use super::fault::FaultKind;
use super::names::Node;
use super::op::{Op, OpKind};
use super::survive;

/// Files are in memory: a wild offset should be an error instead of the end of the test run.
const LONGEST: u64 = 1 << 30;

/// An open file. It follows the inode, whatever becomes of the name.
pub(super) struct SimFile {
    disk: SimDisk,
    handle: u64,
    inode: u64,
    path: PathBuf,
    writable: bool,
}

impl SimFile {
    pub(super) fn open(
        disk: &SimDisk,
        state: &mut State,
        path: &Path,
        mode: OpenMode,
    ) -> io::Result<SimFile> {
        state.tidy();
        let inode = state.image.open(path, mode)?;
        let handle = state.next_handle;
        state.next_handle += 1;
        state.open.insert(handle, inode);
        let writable = mode != OpenMode::Read;
        Ok(SimFile { disk: disk.clone(), handle, inode, path: path.to_owned(), writable })
    }

    fn op(&self, kind: OpKind, offset: u64, len: u64) -> Op {
        Op { offset, len, ..Op::on(kind, &self.path) }
    }

    fn must_be_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(os(EBADF)) }
    }
}

/// Returns a length as one in memory, if it is not too long.
fn in_memory(len: u64) -> io::Result<usize> {
    if len > LONGEST { Err(os(EFBIG)) } else { Ok(len as usize) }
}

impl State {
    /// Writes as much as there is room for; returns how much that was.
    fn write(&mut self, inode: u64, buf: &[u8], offset: u64) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        let end = offset.saturating_add(buf.len() as u64);
        let start = in_memory(end)? - buf.len();
        let len = self.image.file(inode)?.content.len() as u64;
        let lacking = end.saturating_sub(len).saturating_sub(self.room());
        let taken = buf.len().saturating_sub(usize::try_from(lacking).unwrap_or(usize::MAX));
        if taken == 0 {
            return Err(os(ENOSPC));
        }
        let undo = self.image.edit(inode, |content| content.write(start, &buf[..taken]))?;
        self.image.last_write = Some((inode, undo));
        self.image.bytes_written += taken as u64;
        Ok(taken)
    }

    fn resize(&mut self, inode: u64, len: u64) -> io::Result<()> {
        let new = in_memory(len)?;
        let old = self.image.file(inode)?.content.len() as u64;
        if len.saturating_sub(old) > self.room() {
            return Err(os(ENOSPC));
        }
        self.image.edit(inode, |content| content.resize(new))
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.look(self.op(OpKind::Read, offset, buf.len() as u64))?;
        Ok(state.image.file(self.inode)?.content.read(buf, offset))
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let mut turn = self.disk.turn(self.op(OpKind::Write, offset, buf.len() as u64))?;
        self.must_be_writable()?;
        let state = &mut *turn.state;
        match turn.fault {
            None => state.write(self.inode, buf, offset),
            Some(FaultKind::ShortWrite | FaultKind::ShortThenNoSpace) => {
                // At least one byte and, if there is a choice, not all of them.
                let part = 1 + state.image.rng.index(buf.len().saturating_sub(1));
                state.write(self.inode, &buf[..part.min(buf.len())], offset)
            }
            Some(fault @ (FaultKind::Eio | FaultKind::NoSpace)) => {
                if state.image.rng.chance(1, 2) {
                    let part = state.image.rng.index(buf.len() + 1);
                    // No room for the part is the failure that was asked for.
                    let _ = state.write(self.inode, &buf[..part], offset);
                }
                Err(fault.error())
            }
            Some(fault @ (FaultKind::Interrupted | FaultKind::ReadOnly | FaultKind::NoDescriptors)) => {
                Err(fault.error())
            }
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut turn = self.disk.turn(self.op(OpKind::SetLen, 0, len))?;
        self.must_be_writable()?;
        turn.pass()?;
        turn.state.resize(self.inode, len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let mut turn = self.disk.turn(self.op(OpKind::Allocate, 0, len))?;
        self.must_be_writable()?;
        turn.pass()?;
        let old = turn.state.image.file(self.inode)?.content.len() as u64;
        if len > old { turn.state.resize(self.inode, len) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        let mut turn = self.disk.turn(self.op(OpKind::Sync, 0, 0))?;
        let image = &mut turn.state.image;
        let mut rng = image.rng.clone();
        let physics = image.physics;
        let content = &mut image.file_mut(self.inode)?.content;
        match turn.fault {
            None => content.sync(),
            Some(FaultKind::Interrupted) => {}
            // The pages count as clean now: a second sync will not write what this one lost.
            Some(_) if content.pending().is_empty() => {}
            Some(_) => {
                let left = survive::after_failed_sync(content, &physics, &mut rng);
                content.fail_sync(left);
                image.rng = rng;
            }
        }
        turn.pass()
    }

    fn stat(&self) -> io::Result<Stat> {
        self.disk.look(self.op(OpKind::Stat, 0, 0))?.image.stat(Node::File(self.inode))
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.disk.look(self.op(OpKind::Lock, 0, 0))?;
        let holder = *state.locks.entry(self.inode).or_insert(self.handle);
        Ok(holder == self.handle)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        state.open.remove(&self.handle);
        state.locks.retain(|_, holder| *holder != self.handle);
    }
}
