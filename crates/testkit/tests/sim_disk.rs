//! The simulated disk as a file system: what calls answer, who sees what, room, locks, observation.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rekindle_store::disk::{Disk, DiskFile, EntryKind, OpenMode, read_all, replace, write_all_at};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{OpKind, SimDisk};

type Outcome = io::Result<()>;

fn open(disk: &SimDisk, path: &str, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
    disk.open(Path::new(path), mode)
}

/// A disk with `/d/f` holding "old" and an empty directory `/e`.
fn furnished() -> SimDisk {
    let disk = SimDisk::new(1);
    disk.write_file("/d/f", b"old");
    disk.create_dir(Path::new("/e")).expect("the root exists");
    disk.sync_dir(Path::new("/")).expect("no fault is set");
    disk
}

#[test]
fn calls_that_cannot_work_say_why() {
    type Call = fn(&SimDisk) -> Outcome;
    let cases: [(&str, Call, Option<ErrorKind>); 18] = [
        ("open missing", |d| open(d, "/x", OpenMode::Write).map(drop), Some(ErrorKind::NotFound)),
        ("create without parent", |d| open(d, "/x/y", OpenMode::Create).map(drop), Some(ErrorKind::NotFound)),
        (
            "create new over a file",
            |d| open(d, "/d/f", OpenMode::CreateNew).map(drop),
            Some(ErrorKind::AlreadyExists),
        ),
        ("open a directory", |d| open(d, "/d", OpenMode::Read).map(drop), Some(ErrorKind::IsADirectory)),
        (
            "file as a directory",
            |d| open(d, "/d/f/x", OpenMode::Read).map(drop),
            Some(ErrorKind::NotADirectory),
        ),
        ("list missing", |d| d.list(Path::new("/x")).map(drop), Some(ErrorKind::NotFound)),
        ("list a file", |d| d.list(Path::new("/d/f")).map(drop), Some(ErrorKind::NotADirectory)),
        ("make an existing directory", |d| d.create_dir(Path::new("/d")), None),
        ("make the root", |d| d.create_dir(Path::new("/")), None),
        ("make a directory over a file", |d| d.create_dir(Path::new("/d/f")), Some(ErrorKind::AlreadyExists)),
        ("make a directory without parent", |d| d.create_dir(Path::new("/x/y")), Some(ErrorKind::NotFound)),
        ("remove a full directory", |d| d.remove_dir(Path::new("/d")), Some(ErrorKind::DirectoryNotEmpty)),
        ("remove an empty directory", |d| d.remove_dir(Path::new("/e")), None),
        ("remove a directory as a file", |d| d.remove_file(Path::new("/e")), Some(ErrorKind::IsADirectory)),
        ("rename missing", |d| d.rename(Path::new("/x"), Path::new("/y")), Some(ErrorKind::NotFound)),
        ("rename across", |d| d.rename(Path::new("/d/f"), Path::new("/e/f")), None),
        (
            "directory into itself",
            |d| d.rename(Path::new("/d"), Path::new("/d/x")),
            Some(ErrorKind::InvalidInput),
        ),
        ("sync a missing directory", |d| d.sync_dir(Path::new("/x")), Some(ErrorKind::NotFound)),
    ];
    for (what, call, expected) in cases {
        assert_eq!(call(&furnished()).err().map(|error| error.kind()), expected, "{what}");
    }
}

#[test]
fn open_modes_treat_an_existing_file_as_promised() -> Outcome {
    for (mode, left) in [
        (OpenMode::Read, "old"),
        (OpenMode::Write, "old"),
        (OpenMode::Create, "old"),
        (OpenMode::Replace, ""),
    ] {
        let disk = furnished();
        let file = open(&disk, "/d/f", mode)?;
        assert_eq!(disk.read_file("/d/f").as_deref(), Some(left.as_bytes()), "{mode:?}");
        assert_eq!(file.write_at(b"x", 0).is_ok(), mode != OpenMode::Read, "{mode:?}");
    }
    Ok(())
}

#[test]
fn an_open_file_follows_the_inode_whatever_becomes_of_its_name() -> Outcome {
    let disk = furnished();
    let old = open(&disk, "/d/f", OpenMode::Write)?;
    replace(&disk, Path::new("/d/f"), b"new")?;
    old.write_at(b"!", 3)?;
    let mut buf = [0; 8];
    assert_eq!(old.read_at(&mut buf, 0)?, 4);
    assert_eq!(&buf[..4], b"old!");
    assert_eq!(read_all(&disk, Path::new("/d/f"), 100)?, b"new");
    assert_ne!(old.stat()?.identity, disk.stat(Path::new("/d/f"))?.identity);
    // Enough new files to make the disk look for forgotten ones: an open one is not forgotten.
    for n in 0..200 {
        let path = format!("/e/{n}");
        open(&disk, &path, OpenMode::CreateNew)?;
        disk.remove_file(Path::new(&path))?;
    }
    assert_eq!(old.stat()?.len, 4);
    Ok(())
}

#[test]
fn stat_and_list_tell_modes_kinds_and_changes() -> Outcome {
    let disk = furnished();
    let before = disk.stat(Path::new("/d/f"))?;
    assert_eq!((before.mode, before.len, before.kind), (0o600, 3, EntryKind::File));
    assert_eq!(disk.stat(Path::new("/e"))?.mode, 0o700);
    open(&disk, "/d/f", OpenMode::Write)?.set_len(9)?;
    disk.set_mode(Path::new("/d/f"), 0o400)?;
    let after = disk.stat(Path::new("/d/f"))?;
    assert_eq!((after.mode, after.len, after.identity), (0o400, 9, before.identity));
    assert!(after.modified > before.modified);
    let mut names: Vec<_> = disk.list(Path::new("/"))?.into_iter().map(|e| (e.name, e.kind)).collect();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(names, [("d".to_owned(), EntryKind::Dir), ("e".to_owned(), EntryKind::Dir)]);
    Ok(())
}

#[test]
fn writing_past_the_end_leaves_zeros_and_allocating_never_shrinks() -> Outcome {
    let disk = furnished();
    let file = open(&disk, "/d/f", OpenMode::Write)?;
    file.write_at(b"x", 5)?;
    file.allocate(4)?;
    assert_eq!(disk.read_file("/d/f").as_deref(), Some(&b"old\0\0x"[..]));
    file.allocate(8)?;
    assert_eq!(disk.read_file("/d/f").as_deref(), Some(&b"old\0\0x\0\0"[..]));
    assert_eq!(disk.bytes_written(), 1);
    assert_eq!(file.write_at(b"x", u64::MAX).map_err(|e| e.kind()), Err(ErrorKind::FileTooLarge));
    Ok(())
}

#[test]
fn a_lock_is_held_until_its_file_is_closed() -> Outcome {
    let disk = furnished();
    let first = open(&disk, "/d/f", OpenMode::Write)?;
    let second = open(&disk, "/d/f", OpenMode::Write)?;
    assert!(first.try_lock()? && first.try_lock()?);
    assert!(!second.try_lock()?);
    let copy = disk.fork();
    assert!(open(&copy, "/d/f", OpenMode::Write)?.try_lock()?, "a copy has no locks");
    drop(first);
    assert!(second.try_lock()?);
    Ok(())
}

#[test]
fn a_full_disk_gives_a_short_write_then_no_room_until_something_is_freed() -> Outcome {
    let disk = furnished();
    disk.set_capacity(Some(103));
    let file = open(&disk, "/e/log", OpenMode::Create)?;
    assert_eq!(file.write_at(&[1; 60], 0)?, 60);
    assert_eq!(file.write_at(&[2; 60], 60)?, 40, "as much as there is room for");
    let full = |outcome: io::Result<usize>| outcome.map_err(|e| e.raw_os_error()) == Err(Some(28));
    assert!(full(file.write_at(&[3; 60], 100)));
    assert!(full(file.allocate(101).map(|()| 0)));
    assert_eq!(file.write_at(&[4; 60], 40)?, 60, "what is there can be overwritten");
    open(&disk, "/e/empty", OpenMode::CreateNew)?;

    disk.remove_file(Path::new("/d/f"))?;
    assert_eq!(file.write_at(&[3; 60], 100)?, 3);
    file.set_len(50)?;
    assert_eq!(file.write_at(&[3; 60], 50)?, 53);
    disk.remove_file(Path::new("/e/log"))?;
    let other = open(&disk, "/e/other", OpenMode::Create)?;
    assert!(full(other.write_at(&[5; 60], 0)), "a removed file takes room while it is open");
    drop(file);
    write_all_at(&*other, &[5; 103], 0)
}

#[test]
fn the_observer_sees_every_change_before_it_happens_and_can_fork() -> Outcome {
    let disk = furnished();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (handle, log) = (disk.clone(), seen.clone());
    let first = disk.ops();
    disk.set_observer(Box::new(move |op| {
        let copy = handle.fork();
        assert_eq!(copy.ops(), op.index);
        let entry = (op.kind, op.to_string(), copy.read_file("/d/f").map(|bytes| bytes.len()));
        log.lock().expect("no observer panicked").push(entry);
    }));
    let file = open(&disk, "/d/f", OpenMode::Replace)?;
    write_all_at(&*file, b"12345", 0)?;
    file.set_len(4)?;
    file.allocate(6)?;
    file.sync()?;
    file.read_at(&mut [0; 4], 0)?;
    file.try_lock()?;
    disk.create_dir(Path::new("/n"))?;
    open(&disk, "/n/f", OpenMode::CreateNew)?;
    open(&disk, "/n/f", OpenMode::Create)?;
    disk.set_mode(Path::new("/n"), 0o700)?;
    disk.rename(Path::new("/n/f"), Path::new("/d/f"))?;
    disk.remove_file(Path::new("/d/f"))?;
    disk.remove_dir(Path::new("/n"))?;
    disk.list(Path::new("/"))?;
    disk.sync_dir(Path::new("/"))?;
    disk.clear_observer();

    let seen = seen.lock().expect("no observer panicked");
    use OpKind::*;
    let kinds = [
        Truncate, Write, SetLen, Allocate, Sync, CreateDir, Create, SetMode, Rename, Remove, RemoveDir,
        SyncDir,
    ];
    assert_eq!(seen.iter().map(|entry| entry.0).collect::<Vec<_>>(), kinds);
    let lens = [3, 0, 5, 4, 6, 6, 6, 6, 6, 0];
    assert_eq!(seen.iter().filter_map(|entry| entry.2).collect::<Vec<_>>(), lens);
    assert_eq!(seen[1].1, format!("#{} write /d/f at 0, 5 bytes", first + 1));
    assert_eq!(disk.ops(), first + kinds.len() as u64);
    Ok(())
}

#[test]
fn a_frozen_disk_refuses_everything_and_its_copies_do_not() -> Outcome {
    let disk = furnished();
    let file = open(&disk, "/d/f", OpenMode::Write)?;
    disk.freeze_after(2);
    file.write_at(b"1", 0)?;
    assert!(!disk.is_frozen());
    file.write_at(b"2", 1)?;
    assert!(disk.is_frozen());
    let ops = disk.ops();
    for error in [file.write_at(b"3", 2).err(), file.stat().err(), disk.list(Path::new("/")).err()] {
        let error = error.expect("the disk is frozen");
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Other, "simulated power cut".into()));
    }
    assert_eq!(disk.ops(), ops, "a refused operation is none");
    assert_eq!(disk.read_file("/d/f").as_deref(), Some(&b"12d"[..]));
    for copy in [disk.fork(), disk.power_cut(&mut Rng::new(1)), disk.process_kill(&mut Rng::new(1))] {
        open(&copy, "/d/f", OpenMode::Write)?.sync()?;
    }
    Ok(())
}

#[test]
fn a_fork_goes_its_own_way() -> Outcome {
    let disk = furnished();
    let copy = disk.fork();
    replace(&copy, Path::new("/d/f"), b"copy")?;
    copy.remove("/d/g");
    open(&disk, "/d/f", OpenMode::Write)?.write_at(b"OLD", 0)?;
    assert_eq!(copy.read_file("/d/f").as_deref(), Some(&b"copy"[..]));
    assert_eq!(disk.read_file("/d/f").as_deref(), Some(&b"OLD"[..]));
    Ok(())
}

#[test]
fn damage_is_live_and_durable_at_once() -> Outcome {
    let disk = furnished();
    open(&disk, "/d/f", OpenMode::Write)?.write_at(b"new", 0)?;
    let ops = disk.ops();
    assert!(disk.flip_byte("/d/f", 1) && !disk.flip_byte("/d/f", 3) && !disk.flip_byte("/none", 0));
    assert!(disk.truncate_file("/d/f", 2) && !disk.truncate_file("/d/f", 2));
    disk.write_file("/a/b/c", b"deep");
    disk.write_file("/a/b/gone", b"");
    assert!(disk.remove("/a/b/gone") && !disk.remove("/a/b/gone"));
    assert!(disk.is_settled());
    assert_eq!(disk.ops(), ops);
    let after = disk.power_cut(&mut Rng::new(3));
    assert_eq!(after.paths(), [Path::new("/a/b/c"), Path::new("/d/f")]);
    assert_eq!(after.read_file("/d/f").as_deref(), Some(&[b'n', !b'e'][..]));
    Ok(())
}
