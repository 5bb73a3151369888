//! Looking at holders' directories: reads only, signals nobody, and what is wrong with one file hides no other.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::de::DeserializeOwned;

use super::lock::{is_copied, read_note};
use crate::dir::{EpochNote, ExitNote, FORMAT, HolderDir, Launch, LockNote, StatusNote};
use crate::file_ops::if_exists;
use crate::identity::{Presence, machine_boot};

/// Directories looked at at a time. More would wait for the same disk.
const MOST_THREADS: usize = 16;

/// Directories for which another thread is worth starting.
const LEAST_FOR_A_THREAD: usize = 16;

/// The contents of a file that should be in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContents<T> {
    /// It is.
    There(T),
    /// It is not.
    Missing,
    /// It is, but cannot be understood; why not.
    Unreadable(String),
}

impl<T> FileContents<T> {
    /// Returns it if it is there and understood.
    pub fn there(&self) -> Option<&T> {
        match self {
            FileContents::There(value) => Some(value),
            FileContents::Missing | FileContents::Unreadable(_) => None,
        }
    }
}

/// Who has a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeper {
    /// The holder, or someone who has not written who they are.
    Holder,
    /// Not the process that wrote the note, which is gone: someone harvests or removes, or inherited the lock.
    Another,
}

/// What a directory's lock tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockState {
    /// Someone has it. Only this is life.
    Held {
        /// What it says.
        note: Option<LockNote>,
        /// Who.
        by: Keeper,
    },
    /// Nobody has it. Only this is death.
    Free {
        /// What it says.
        note: Option<LockNote>,
    },
    /// The directory is a copy of another one: nothing may be signalled for it.
    Copied {
        /// What it says, of processes of the original.
        note: LockNote,
    },
    /// There is none: the holder never came so far.
    Missing,
    /// Nothing is known of it; why not.
    Unreadable(String),
}

/// Everything a holder's directory says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The directory.
    pub dir: HolderDir,
    /// The holder's id, by the name of the directory.
    pub holder_id: String,
    /// What it is for.
    pub launch: FileContents<Launch>,
    /// Whether it lives.
    pub lock: LockState,
    /// How it ended.
    pub exit: FileContents<ExitNote>,
    /// Who commanded last.
    pub epoch: FileContents<EpochNote>,
    /// The hint for people.
    pub status: FileContents<StatusNote>,
    /// The machine was started again since the holder was made; none if nobody can tell.
    pub other_boot: Option<bool>,
}

/// Looks at one holder's directory.
pub fn inspect(dir: &HolderDir) -> Inspection {
    let holder_id = dir.name();
    // The end is looked at after the lock: a holder writes it before it lets go.
    let lock = lock_state(dir);
    let launch = match found::<Launch>(&dir.launch()) {
        FileContents::There(launch) if launch.format != FORMAT => FileContents::Unreadable(format!(
            "format {} is not known here; use the version that made it",
            launch.format
        )),
        FileContents::There(launch) if launch.holder_id != holder_id => {
            FileContents::Unreadable(format!("it is about {}, not {holder_id}", launch.holder_id))
        }
        found => found,
    };
    let boot = machine_boot().ok();
    let other_boot = launch.there().zip(boot).map(|(launch, boot)| launch.machine_boot != boot);
    Inspection {
        exit: found(&dir.exit()),
        epoch: found(&dir.epoch()),
        status: found(&dir.status()),
        dir: dir.clone(),
        holder_id,
        launch,
        lock,
        other_boot,
    }
}

/// Looks at all holders of a home, in parallel; sorted by id. A home without holders has none.
pub fn inspect_all(holders: &Path) -> io::Result<Vec<Inspection>> {
    Ok(inspect_each(&list(holders)?))
}

/// Lists the directories of the holders of a home, sorted by id, and looks into none.
pub fn list(holders: &Path) -> io::Result<Vec<HolderDir>> {
    let mut dirs = Vec::new();
    for entry in if_exists(std::fs::read_dir(holders))?.into_iter().flatten() {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b"h_") && entry.path().is_dir() {
            dirs.push(HolderDir::new(entry.path()));
        }
    }
    dirs.sort_by(|a, b| a.path().cmp(b.path()));
    Ok(dirs)
}

/// Looks at some holders, in parallel; sorted by id.
pub fn inspect_each(dirs: &[HolderDir]) -> Vec<Inspection> {
    let mut found = on_threads(dirs, inspect);
    found.sort_by(|a, b| a.holder_id.cmp(&b.holder_id));
    found
}

/// Returns the highest epoch that any holder of a home knows; 0 if none does. Looks at nothing else: a daemon does this before
/// its first answer.
pub fn highest_epoch(holders: &Path) -> io::Result<u64> {
    let of_one = |dir: &HolderDir| {
        let granted = found::<EpochNote>(&dir.epoch()).there().map_or(0, |note| note.epoch);
        granted.max(found::<StatusNote>(&dir.status()).there().map_or(0, |note| note.epoch))
    };
    Ok(on_threads(&list(holders)?, of_one).into_iter().max().unwrap_or(0))
}

/// Calls a function with each of some directories, on as many threads as are worth it; what it answers comes in no order.
fn on_threads<T: Send>(dirs: &[HolderDir], look: impl Fn(&HolderDir) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(dir) = dirs.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push(look(dir));
        }
        done
    };
    let threads = dirs.len().div_ceil(LEAST_FOR_A_THREAD).min(MOST_THREADS);
    std::thread::scope(|scope| {
        // Where no thread is to be had the others do its share.
        let begin = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let threads: Vec<_> = (1..threads).filter_map(begin).collect();
        let mut found = work();
        for thread in threads {
            found.extend(thread.join().expect("looking does not panic"));
        }
        found
    })
}

fn lock_state(dir: &HolderDir) -> LockState {
    let file = match if_exists(File::open(dir.lock())) {
        Ok(Some(file)) => file,
        Ok(None) => return LockState::Missing,
        Err(error) => return LockState::Unreadable(error.to_string()),
    };
    // Shared, so that several who look do not see each other; a holder that begins just now tries again.
    let taken = file.try_lock_shared();
    let note = read_note(&file);
    let copied = is_copied(&file, note.as_ref());
    let _ = file.unlock();
    match (copied, note, taken) {
        (Err(error), ..) => LockState::Unreadable(error.to_string()),
        (Ok(true), Some(note), _) => LockState::Copied { note },
        (Ok(_), note, Ok(())) => LockState::Free { note },
        (Ok(_), note, Err(TryLockError::WouldBlock)) => {
            let gone =
                note.as_ref().is_some_and(|note| matches!(note.process.presence(), Ok(Presence::Gone)));
            LockState::Held { note, by: if gone { Keeper::Another } else { Keeper::Holder } }
        }
        (Ok(_), _, Err(TryLockError::Error(error))) => LockState::Unreadable(error.to_string()),
    }
}

fn found<T: DeserializeOwned>(path: &Path) -> FileContents<T> {
    /// A living holder writes some files over in place: one that is caught half written is whole a moment later.
    const LOOKS: usize = 3;
    let mut found = if_exists(HolderDir::read(path));
    for _ in 1..LOOKS {
        if found.is_err() {
            found = if_exists(HolderDir::read(path));
        }
    }
    match found {
        Ok(Some(value)) => FileContents::There(value),
        Ok(None) => FileContents::Missing,
        Err(error) => FileContents::Unreadable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::DirLock;
    use super::super::testing::{Home, eventually};
    use super::*;

    #[test]
    fn a_directory_without_anything_is_described_all_the_same() {
        let home = Home::new();
        let dir = HolderDir::new(home.path().join("h_1"));
        std::fs::create_dir(dir.path()).expect("made");
        let seen = inspect(&dir);
        assert_eq!(seen.holder_id, "h_1");
        assert_eq!((seen.launch, seen.lock), (FileContents::Missing, LockState::Missing));
        assert_eq!(
            (seen.exit, seen.epoch, seen.status),
            (FileContents::Missing, FileContents::Missing, FileContents::Missing)
        );
        assert_eq!(seen.other_boot, None);
    }

    #[test]
    fn one_file_that_cannot_be_read_hides_no_other() {
        let home = Home::new();
        let dir = home.holder("h_1");
        std::fs::write(dir.status(), "{\"phase\":\"danc").expect("written");
        std::fs::write(dir.epoch(), r#"{"epoch":7,"instance":"boot_1","later":1}"#).expect("written");
        let seen = inspect(&dir);
        assert!(matches!(seen.status, FileContents::Unreadable(_)));
        assert_eq!(seen.epoch.there().map(|note| note.epoch), Some(7));
        assert_eq!(seen.launch.there().map(|launch| launch.holder_id.as_str()), Some("h_1"));
        assert_eq!(seen.other_boot, Some(false));
    }

    #[test]
    fn a_launch_of_another_format_holder_or_boot_is_told() {
        let home = Home::new();
        let dir = home.holder("h_1");
        for (change, words) in [
            (&(|launch: &mut Launch| launch.format = 2) as &dyn Fn(&mut Launch), "format 2"),
            (&|launch: &mut Launch| launch.holder_id = "h_2".into(), "h_2"),
        ] {
            home.change_launch(&dir, change);
            assert!(matches!(inspect(&dir).launch, FileContents::Unreadable(why) if why.contains(words)));
            home.write_launch(&dir);
        }
        home.change_launch(&dir, |launch| launch.machine_boot = "another".into());
        assert_eq!(inspect(&dir).other_boot, Some(true));
    }

    /// I9: only a free lock is death.
    #[test]
    fn the_lock_tells_life_death_and_copies() {
        let home = Home::new();
        let dir = home.holder("h_1");
        home.write_lock_note(&dir, 0);
        assert!(matches!(inspect(&dir).lock, LockState::Free { note: Some(_) }));
        let lock = DirLock::take(&dir).expect("free");
        assert!(matches!(inspect(&dir).lock, LockState::Held { note: Some(_), by: Keeper::Holder }));
        home.change_lock_note(&dir, |note| note.process.start_ticks += 1);
        assert!(matches!(inspect(&dir).lock, LockState::Held { by: Keeper::Another, .. }));
        home.write_lock_note(&dir, 1);
        assert!(matches!(inspect(&dir).lock, LockState::Copied { .. }));
        drop(lock);
        assert!(matches!(inspect(&dir).lock, LockState::Copied { .. }));
        std::fs::write(dir.lock(), "").expect("written");
        // A process that another test starts just now has our descriptors for a moment.
        eventually(|| matches!(inspect(&dir).lock, LockState::Free { note: None }).then_some(()));
    }

    #[test]
    fn all_are_looked_at_and_the_highest_epoch_is_known() {
        let home = Home::new();
        assert_eq!(inspect_all(&home.path().join("none")).expect("no holders"), []);
        for number in 0..40 {
            let dir = home.holder(&format!("h_{number:02}"));
            let note = EpochNote { epoch: number, instance: "boot_1".into() };
            std::fs::write(dir.epoch(), serde_json::to_vec(&note).expect("plain")).expect("written");
        }
        std::fs::create_dir(home.path().join(".h_removed")).expect("made");
        std::fs::write(home.path().join("h_file"), "").expect("written");
        let all = inspect_all(home.path()).expect("a list");
        assert_eq!(all.len(), 40);
        assert!(all.is_sorted_by(|a, b| a.holder_id < b.holder_id));
        assert_eq!(highest_epoch(home.path()).expect("a list"), 39);
        assert_eq!(highest_epoch(&home.path().join("none")).expect("no holders"), 0);
    }
}
