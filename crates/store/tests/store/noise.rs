//! Rubbish in every file: nothing panics, nothing loops, nothing good is lost because of a neighbour.

use std::sync::Arc;

use proptest::prelude::*;
use rekindle_store::commit::Commits;
use rekindle_store::offline::Offline;
use rekindle_store::{Store, Want};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::SimDisk;

use crate::common::{Home, open};

/// Opens, looks and loads; whatever comes out, it comes out.
fn use_everything(disk: &SimDisk, home: &Home) {
    if let Ok(offline) = Offline::open(Arc::new(disk.clone()), "/home") {
        let _ = offline.survey(|_, _| {});
    }
    if let Ok(store) = open(disk, &home.clock) {
        let mut seen = Vec::new();
        let _ = store.survey(|session, _| seen.push(session));
        for session in seen {
            let _ = store.load(session, Want::Everything);
            let _ = store.open_session(session);
            let _ = store.snapshot(session);
        }
        let _ = store.committer().checkpoint();
    }
}

const FILES: [&str; 6] = ["log", "snapshot", "tokens", "index", "wal", "home"];

fn path_of(store: &Store<impl Commits>, home: &Home, which: &str) -> std::path::PathBuf {
    let (layout, session) = (store.layout(), home.sessions[0]);
    match which {
        "log" => layout.log(session),
        "snapshot" => layout.snapshot(session),
        "tokens" => layout.tokens(session),
        "index" => layout.index(),
        "wal" => layout.segment(1),
        _ => layout.home_file(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn arbitrary_bytes_in_any_file_never_panic(
        which in proptest::sample::select(FILES.to_vec()),
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        keep in any::<bool>(),
    ) {
        let home = Home::with_sessions(2, 3);
        let path = path_of(&home.store, &home, which);
        let disk = home.disk.fork();
        let mut content = if keep { disk.read_file(&path).unwrap_or_default() } else { Vec::new() };
        content.extend_from_slice(&bytes);
        disk.write_file(&path, &content);
        use_everything(&disk, &home);
    }
}

// I10
#[test]
fn damage_to_one_sessions_files_never_hides_the_others() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let home = Home::with_sessions(3, 4);
        for session in &home.sessions {
            home.store.snapshot(*session).expect("a snapshot");
        }
        home.store.committer().checkpoint().expect("fine");
        let disk = home.disk.fork();
        let path = path_of(&home.store, &home, if rng.chance(1, 2) { "log" } else { "snapshot" });
        let len = disk.read_file(&path).expect("a file").len() as u64;
        for _ in 0..=rng.below(3) {
            match rng.below(3) {
                0 => drop(disk.flip_byte(&path, rng.below(len))),
                1 => drop(disk.truncate_file(&path, rng.below(len))),
                _ => {
                    let mut bytes = disk.read_file(&path).expect("a file");
                    let at = rng.index(bytes.len().max(1)).min(bytes.len());
                    bytes.splice(at..at, (0..20).map(|n| n * 13));
                    disk.write_file(&path, &bytes);
                }
            }
        }
        let store = open(&disk, &home.clock).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for session in &home.sessions[1..] {
            let loaded = store.load(*session, Want::Everything).expect("the others load");
            assert!(loaded.damage.is_none() && loaded.state.last_seq == 5, "seed {seed}");
            store.open_session(*session).expect("and can be written");
        }
        drop(store);
        use_everything(&disk, &home);
    }
}

#[test]
fn names_that_are_none_of_ours_are_left_alone() {
    let home = Home::with_sessions(1, 1);
    let disk = home.disk.fork();
    let strangers = ["/home/sessions/notes.txt", "/home/sessions/..json", "/home/wal/1.wal", "/home/blobs/x"];
    for path in strangers {
        disk.write_file(path, b"mine");
    }
    let home = home.reopen(disk);
    let foreign = home.store.survey(|_, _| {}).expect("listed");
    assert_eq!(foreign.len(), 2, "{foreign:?}");
    home.store.committer().checkpoint().expect("fine");
    for path in strangers {
        assert_eq!(home.disk.read_file(path).as_deref(), Some(&b"mine"[..]), "{path}");
    }
}
