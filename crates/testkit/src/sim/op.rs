//! What one call asks of the disk: told to the observer before it happens, and matched against the faults.

use std::fmt;
use std::path::PathBuf;

/// The kinds of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OpKind {
    /// An open that makes a file.
    Create,
    /// An open that cuts an existing file to nothing.
    Truncate,
    /// A write at an offset.
    Write,
    /// A change of length.
    SetLen,
    /// A reservation of room.
    Allocate,
    /// A sync of a file.
    Sync,
    /// A rename.
    Rename,
    /// The removal of a file.
    Remove,
    /// The making of a directory.
    CreateDir,
    /// The removal of a directory.
    RemoveDir,
    /// A sync of the names in a directory.
    SyncDir,
    /// A change of permissions.
    SetMode,
    /// An open that changes nothing.
    Open,
    /// A read at an offset.
    Read,
    /// A question about a path or an open file.
    Stat,
    /// A listing of a directory.
    List,
    /// An attempt at the advisory lock.
    Lock,
}

impl OpKind {
    /// Every kind that changes the disk: those that are counted and observed.
    pub const MUTATING: [OpKind; 12] = [
        OpKind::Create,
        OpKind::Truncate,
        OpKind::Write,
        OpKind::SetLen,
        OpKind::Allocate,
        OpKind::Sync,
        OpKind::Rename,
        OpKind::Remove,
        OpKind::CreateDir,
        OpKind::RemoveDir,
        OpKind::SyncDir,
        OpKind::SetMode,
    ];

    /// Returns whether calls of this kind change the disk.
    pub fn mutates(self) -> bool {
        !matches!(self, OpKind::Open | OpKind::Read | OpKind::Stat | OpKind::List | OpKind::Lock)
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            OpKind::Create => "create",
            OpKind::Truncate => "truncate",
            OpKind::Write => "write",
            OpKind::SetLen => "set-len",
            OpKind::Allocate => "allocate",
            OpKind::Sync => "sync",
            OpKind::Rename => "rename",
            OpKind::Remove => "remove",
            OpKind::CreateDir => "create-dir",
            OpKind::RemoveDir => "remove-dir",
            OpKind::SyncDir => "sync-dir",
            OpKind::SetMode => "set-mode",
            OpKind::Open => "open",
            OpKind::Read => "read",
            OpKind::Stat => "stat",
            OpKind::List => "list",
            OpKind::Lock => "lock",
        })
    }
}

/// One call on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// How many mutating operations came before it.
    pub index: u64,
    /// What it does.
    pub kind: OpKind,
    /// The path it names; for an open file the path it was opened by, even if it was renamed since.
    pub path: PathBuf,
    /// Where a rename leads.
    pub to: Option<PathBuf>,
    /// The offset of a read or write.
    pub offset: u64,
    /// The bytes to read or write, or the new length.
    pub len: u64,
}

impl Op {
    /// Returns an operation on a path; its index is filled in when its turn comes.
    pub(super) fn on(kind: OpKind, path: impl Into<PathBuf>) -> Op {
        Op { index: 0, kind, path: path.into(), to: None, offset: 0, len: 0 }
    }

    /// Returns whether the path, or where a rename leads, contains `part`.
    pub fn touches(&self, part: &str) -> bool {
        let contains = |path: &PathBuf| path.to_string_lossy().contains(part);
        contains(&self.path) || self.to.as_ref().is_some_and(contains)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} {}", self.index, self.kind, self.path.display())?;
        if let Some(to) = &self.to {
            write!(f, " to {}", to.display())?;
        }
        match self.kind {
            OpKind::Write | OpKind::Read => write!(f, " at {}, {} bytes", self.offset, self.len),
            OpKind::SetLen | OpKind::Allocate => write!(f, " {} bytes", self.len),
            OpKind::SetMode => write!(f, " {:o}", self.len),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_well() {
        let write = Op { index: 7, offset: 4096, len: 300, ..Op::on(OpKind::Write, "/wal/1") };
        assert_eq!(write.to_string(), "#7 write /wal/1 at 4096, 300 bytes");
        let rename = Op { to: Some("/a".into()), ..Op::on(OpKind::Rename, "/a.tmp") };
        assert_eq!(rename.to_string(), "#0 rename /a.tmp to /a");
        assert!(rename.touches(".tmp") && !rename.touches("wal"));
    }

    #[test]
    fn mutating_kinds_are_the_listed_ones() {
        assert!(OpKind::MUTATING.iter().all(|kind| kind.mutates()));
        assert!(!OpKind::Lock.mutates() && !OpKind::Read.mutates());
    }
}
