//! Files that change, grow or vanish while they are read, and sinks that fail: moments that a sink can choose.

use std::io::{self, Read};
use std::sync::atomic::AtomicU64;

use super::*;

/// A sink that does something to the directory whenever it is given a large file.
struct Meddling<'a, F: Fn() + Sync> {
    objects: &'a MemoryObjects,
    meddle: F,
    streamed: AtomicU64,
}

impl<'a, F: Fn() + Sync> Meddling<'a, F> {
    fn new(objects: &'a MemoryObjects, meddle: F) -> Meddling<'a, F> {
        Meddling { objects, meddle, streamed: AtomicU64::new(0) }
    }
}

impl<F: Fn() + Sync> ObjectSink for Meddling<'_, F> {
    fn put(&self, bytes: &[u8]) -> io::Result<BlobId> {
        self.objects.put(bytes)
    }

    fn put_reader(&self, content: &mut dyn Read) -> io::Result<(BlobId, u64)> {
        self.streamed.fetch_add(1, Ordering::Relaxed);
        let mut first = [0; 1000];
        content.read_exact(&mut first)?;
        (self.meddle)();
        self.objects.put_reader(&mut first.as_slice().chain(content))
    }

    fn reuse(&self, id: &BlobId) -> bool {
        self.objects.reuse(id)
    }
}

const LARGE: usize = read::WHOLE_BYTES + 5000;

#[test]
fn a_file_that_changes_whenever_it_is_read_is_skipped_after_three_tries() {
    let lab = Lab::new();
    lab.write("growing", vec![b'x'; LARGE]);
    lab.write("still", "x");
    let grow = || {
        let mut file = fs::OpenOptions::new().append(true).open(lab.at("growing")).expect("open");
        io::Write::write_all(&mut file, b"more").expect("written");
    };
    let sink = Meddling::new(&lab.objects, grow);
    let captured = capture(&lab.options(), &sink, &StatCache::new()).expect("captured");
    assert_eq!(Lab::skipped(&captured), [("growing".to_owned(), SkipReason::Changing)]);
    assert_eq!((sink.streamed.into_inner(), lab.show(captured.tree)), (3, vec!["f still x".to_owned()]));
}

#[test]
fn a_file_that_changes_once_is_read_again_and_captured_whole() {
    let lab = Lab::new();
    lab.write("f", vec![b'x'; LARGE]);
    let times = AtomicU64::new(0);
    let change = || {
        if times.fetch_add(1, Ordering::Relaxed) == 0 {
            lab.write("f", vec![b'y'; LARGE + 7]);
        }
    };
    let captured =
        capture(&lab.options(), &Meddling::new(&lab.objects, change), &StatCache::new()).expect("captured");
    assert_eq!(lab.show(captured.tree), [format!("f f {}", "y".repeat(LARGE + 7))]);
    assert_eq!(captured.skipped.total(), 0);
}

#[test]
fn files_and_directories_that_vanish_are_not_there() {
    let lab = Lab::new();
    lab.write("a", vec![b'x'; LARGE]);
    lab.write("b", "x");
    lab.write("z/deep/file", "x");
    let vanish = || {
        _ = fs::remove_file(lab.at("a"));
        _ = fs::remove_file(lab.at("b"));
        _ = fs::remove_dir_all(lab.at("z"));
    };
    let options = CaptureOptions { threads: Some(1), ..lab.options() };
    let captured =
        capture(&options, &Meddling::new(&lab.objects, vanish), &StatCache::new()).expect("captured");
    assert_eq!(lab.show(captured.tree), Vec::<String>::new());
    assert_eq!((captured.skipped.total(), captured.totals), (0, Totals::default()));
}

#[test]
fn a_directory_that_becomes_a_link_is_not_followed() {
    let lab = Lab::new();
    lab.write("a", vec![b'x'; LARGE]);
    lab.write("z/file", "x");
    fs::create_dir(lab.place.path().join("outside")).expect("a directory");
    fs::write(lab.place.path().join("outside/secret"), "s").expect("a file");
    let swap = || {
        if fs::remove_dir_all(lab.at("z")).is_ok() {
            symlink("../outside", lab.at("z")).expect("a link");
        }
    };
    let options = CaptureOptions { threads: Some(1), ..lab.options() };
    let captured =
        capture(&options, &Meddling::new(&lab.objects, swap), &StatCache::new()).expect("captured");
    assert!(lab.show(captured.tree).iter().all(|line| !line.contains("secret")));
    assert_eq!(captured.totals.files, 1);
}

#[test]
fn a_capture_beside_a_busy_writer_has_only_whole_files() {
    let lab = Lab::new();
    let line = |letter: u8| vec![letter; 3000];
    for index in 0..50 {
        lab.write(format!("d/{index}"), line(b'a'));
    }
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0_usize;
            while !done.load(Ordering::Relaxed) {
                let letter = b'a' + (round % 26) as u8;
                // Whole files by rename, as editors do; names that come and go.
                lab.write("new", line(letter));
                fs::rename(lab.at("new"), lab.at(format!("d/{}", round % 50))).expect("renamed");
                lab.write(format!("t/{}", round % 7), "t");
                _ = fs::remove_dir_all(lab.at("t"));
                round += 1;
            }
        });
        let mut cache = StatCache::new();
        for _ in 0..30 {
            let captured = capture(&lab.options(), &lab.objects, &cache);
            done.store(captured.is_err(), Ordering::Relaxed);
            let captured = captured.expect("captured");
            for entry in TreeWalk::new(&lab.objects, captured.tree, Limits::default()) {
                let entry = entry.expect("valid");
                if let (OwnedNode::File { content, .. }, true) = (entry.node, entry.path.starts_with(b"d/")) {
                    let bytes = lab.objects.get(&content, u64::MAX).expect("kept");
                    assert!(bytes.len() == 3000 && bytes.iter().all(|byte| *byte == bytes[0]));
                }
            }
            cache = captured.cache.unwrap_or(cache);
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(
        lab.capture().tree,
        capture(&lab.options(), &lab.objects, &lab.warm()).expect("captured").tree
    );
}

/// A sink whose disk is full after a while.
struct Full<'a>(&'a MemoryObjects, AtomicU64);

impl ObjectSink for Full<'_> {
    fn put(&self, bytes: &[u8]) -> io::Result<BlobId> {
        if self.1.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.put(bytes)
    }

    fn put_reader(&self, content: &mut dyn Read) -> io::Result<(BlobId, u64)> {
        self.0.put_reader(content)
    }

    fn reuse(&self, _: &BlobId) -> bool {
        true
    }
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file_at_whatever_object_it_happens() {
    let lab = Lab::new();
    for index in 0..5 {
        lab.write(format!("{index}/f"), format!("{index}"));
    }
    let objects = 5 + 5 + 1;
    for room in 0..=objects {
        let sink = Full(&lab.objects, AtomicU64::new(room));
        match capture(&lab.options(), &sink, &StatCache::new()) {
            Ok(captured) => assert_eq!((room, captured.totals.files), (objects, 5)),
            Err(CaptureError::Sink { path, source }) => {
                assert!(path.starts_with(lab.root().canonicalize().expect("a path")), "{}", path.display());
                assert_eq!(source.kind(), io::ErrorKind::StorageFull);
            }
            Err(other) => panic!("{other}"),
        }
    }
}
