//! Faults on demand: which operation fails, how, and whether once or from then on.
//! What a failure leaves behind is decided where the operation is carried out.

use std::io;

use super::errno::{EINTR, EIO, EMFILE, ENOSPC, EROFS, os};
use super::op::{Op, OpKind};
use crate::rng::Rng;

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// An error of the device. A sync loses blocks that reads still see; a write may leave a prefix.
    Eio,
    /// No room, for anything that may need room: removing, cutting and changing permissions go on.
    NoSpace,
    /// The process has no descriptors left: nothing can be opened, what is open works.
    NoDescriptors,
    /// A signal came first: nothing happened.
    Interrupted,
    /// The file system became read-only: nothing that changes it works. Best made sticky.
    ReadOnly,
    /// A write that takes only a part, without an error.
    ShortWrite,
    /// A write that takes only a part, and then no room.
    ShortThenNoSpace,
}

impl FaultKind {
    fn can_strike(self, kind: OpKind) -> bool {
        match self {
            FaultKind::Eio | FaultKind::Interrupted => true,
            FaultKind::NoSpace => {
                kind.mutates()
                    && !matches!(
                        kind,
                        OpKind::Remove
                            | OpKind::RemoveDir
                            | OpKind::Truncate
                            | OpKind::SetLen
                            | OpKind::SetMode
                    )
            }
            FaultKind::NoDescriptors => {
                matches!(
                    kind,
                    OpKind::Open | OpKind::Create | OpKind::Truncate | OpKind::List | OpKind::SyncDir
                )
            }
            FaultKind::ReadOnly => kind.mutates(),
            FaultKind::ShortWrite | FaultKind::ShortThenNoSpace => kind == OpKind::Write,
        }
    }

    /// Returns the error a caller sees.
    pub(super) fn error(self) -> io::Error {
        os(match self {
            FaultKind::Eio => EIO,
            FaultKind::NoSpace | FaultKind::ShortWrite | FaultKind::ShortThenNoSpace => ENOSPC,
            FaultKind::NoDescriptors => EMFILE,
            FaultKind::Interrupted => EINTR,
            FaultKind::ReadOnly => EROFS,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Once,
    Sticky,
    Over,
}

/// One planned fault. It counts the operations it could strike, from the moment it is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    kind: FaultKind,
    after: u64,
    times: Times,
    kinds: Vec<OpKind>,
    part: String,
}

impl Fault {
    /// Returns a fault that lets `after` operations pass and strikes the next, once.
    pub fn once(kind: FaultKind, after: u64) -> Fault {
        let kinds = OpKind::MUTATING.to_vec();
        Fault { kind, after, times: Times::Once, kinds, part: String::new() }
    }

    /// Returns a fault that lets `after` operations pass and strikes all that follow.
    pub fn sticky(kind: FaultKind, after: u64) -> Fault {
        Fault { times: Times::Sticky, ..Fault::once(kind, after) }
    }

    /// Restricts the fault to some kinds of operations, which may be reads.
    pub fn on(self, kinds: &[OpKind]) -> Fault {
        Fault { kinds: kinds.to_vec(), ..self }
    }

    /// Lets the fault count and strike reads of all kinds too.
    pub fn with_reads(mut self) -> Fault {
        self.kinds.extend([OpKind::Open, OpKind::Read, OpKind::Stat, OpKind::List, OpKind::Lock]);
        self
    }

    /// Restricts the fault to paths that contain `part`; a file counts by the path it was opened by.
    pub fn at(self, part: &str) -> Fault {
        Fault { part: part.to_owned(), ..self }
    }

    fn strike(&mut self, op: &Op) -> Option<FaultKind> {
        if self.times == Times::Over
            || !self.kinds.contains(&op.kind)
            || !self.kind.can_strike(op.kind)
            || !op.touches(&self.part)
        {
            return None;
        }
        if self.after > 0 {
            self.after -= 1;
            return None;
        }
        if self.kind == FaultKind::ShortThenNoSpace {
            self.kind = FaultKind::NoSpace;
            return Some(FaultKind::ShortWrite);
        }
        if self.times == Times::Once {
            self.times = Times::Over;
        }
        Some(self.kind)
    }
}

/// The faults of a disk.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    planned: Vec<Fault>,
    random: Option<(Rng, u64)>,
    reads: bool,
}

impl Faults {
    /// Returns no faults.
    pub fn none() -> Faults {
        Faults::default()
    }

    /// Returns faults that strike `per_mille` of all mutating operations.
    ///
    /// They come and go: errors of the device, no room, signals, short writes; never `ReadOnly`.
    pub fn random(seed: u64, per_mille: u64) -> Faults {
        Faults { random: Some((Rng::new(seed), per_mille)), ..Faults::none() }
    }

    /// Lets random faults strike reads too.
    pub fn with_reads(self) -> Faults {
        Faults { reads: true, ..self }
    }

    /// Adds a planned fault.
    pub fn with(mut self, fault: Fault) -> Faults {
        self.planned.push(fault);
        self
    }

    /// Returns what strikes an operation, if anything; never `ShortThenNoSpace`.
    pub(super) fn strike(&mut self, op: &Op) -> Option<FaultKind> {
        // Every fault counts every operation, also those that another one strikes.
        let planned = self.planned.iter_mut().filter_map(|fault| fault.strike(op)).last();
        planned.or_else(|| self.strike_at_random(op))
    }

    fn strike_at_random(&mut self, op: &Op) -> Option<FaultKind> {
        let (rng, per_mille) = self.random.as_mut()?;
        if !(op.kind.mutates() || self.reads) || !rng.chance(*per_mille, 1000) {
            return None;
        }
        let kinds = [FaultKind::Eio, FaultKind::NoSpace, FaultKind::Interrupted, FaultKind::ShortWrite];
        let possible: Vec<FaultKind> = kinds.into_iter().filter(|kind| kind.can_strike(op.kind)).collect();
        Some(*rng.pick(&possible))
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Faults {
        Faults::none().with(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FaultKind::{Eio, NoSpace, ShortThenNoSpace, ShortWrite};
    use OpKind::{Read, Remove, Sync, Write};

    #[test]
    fn strikes_the_operations_it_was_planned_for() {
        let ops = [(Write, "/a"), (Sync, "/a"), (Write, "/b"), (Read, "/a"), (Remove, "/b"), (Write, "/a")];
        let cases = [
            (Fault::once(Eio, 1), vec![1]),
            (Fault::sticky(Eio, 1), vec![1, 2, 4, 5]),
            (Fault::sticky(Eio, 1).on(&[Write]), vec![2, 5]),
            (Fault::once(Eio, 0).on(&[Read]), vec![3]),
            (Fault::once(Eio, 3).with_reads(), vec![3]),
            (Fault::sticky(Eio, 0).at("b"), vec![2, 4]),
            (Fault::sticky(NoSpace, 2), vec![2, 5]),
            (Fault::once(ShortWrite, 1), vec![2]),
            (Fault::once(ShortThenNoSpace, 0), vec![0, 1]),
            (Fault::sticky(ShortThenNoSpace, 0), vec![0, 1, 2, 5]),
        ];
        for (fault, expected) in cases {
            let mut faults = Faults::from(fault.clone());
            let struck: Vec<usize> = ops
                .iter()
                .enumerate()
                .filter_map(|(at, (kind, path))| faults.strike(&Op::on(*kind, *path)).map(|_| at))
                .collect();
            assert_eq!(struck, expected, "{fault:?}");
        }
    }

    #[test]
    fn random_faults_are_as_frequent_as_asked_for() {
        let count = |per_mille| {
            let mut faults = Faults::random(3, per_mille);
            (0..10_000).filter(|_| faults.strike(&Op::on(Write, "/a")).is_some()).count()
        };
        assert_eq!(count(0), 0);
        assert!((400..600).contains(&count(50)), "{}", count(50));
        assert_eq!(count(1000), 10_000);
    }
}
