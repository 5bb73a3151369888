//! Ledgers that are compressed, or decompressed for a run that is reopened, on a disk that fails: any call, once or from then on. Not a
//! byte of them is lost, a later try comes through, and what is left of the failed one is cleared away.

use rekindle_domain::pipeline::RunStatus;
use rekindle_store::Store;
use rekindle_store::commit::{Commits, Inline};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, SimDisk};

use crate::common::{Home, open, pictures};
use crate::compressed_ledgers::{COMPRESSED, bytes, compress, home_with_aborted, judge, reopen};
use crate::pipelines::{APPENDS, LEDGER, home_with, id, state, told};

/// How calls fail.
const KINDS: [FaultKind; 6] = [
    FaultKind::Eio,
    FaultKind::NoSpace,
    FaultKind::NoDescriptors,
    FaultKind::ReadOnly,
    FaultKind::ShortWrite,
    FaultKind::ShortThenNoSpace,
];

/// A fault of a kind at a call: then, or from then on.
type Fails = fn(FaultKind, u64) -> Fault;

/// Has something tried on a home whose disk is to fail at one call of it, for every call and every way to fail; returns how many that were.
fn at_every_call(home: impl Fn() -> Home, tried: impl Fn(&Home, Fault, &str)) -> usize {
    let fails: [(&str, Fails); 2] = [("once", Fault::once), ("from then on", Fault::sticky)];
    let ways = KINDS.into_iter().flat_map(|kind| fails.map(|(times, fault)| (kind, times, fault)));
    let mut calls = 0;
    for (kind, times, fault) in ways {
        for has_checkpoint in [false, true] {
            for nth in 0.. {
                let home = home();
                if has_checkpoint {
                    home.store.committer().checkpoint().expect("a checkpoint");
                }
                let before = home.disk.faults_struck();
                let what = format!("{kind:?} at call {nth}, {times}, checkpoint {has_checkpoint}");
                tried(&home, fault(kind, nth).with_reads().at("/runs"), &what);
                if home.disk.faults_struck() == before {
                    break;
                }
                calls += 1;
            }
        }
    }
    calls
}

/// Returns the names in the directory of the run.
fn names(disk: &SimDisk) -> Vec<String> {
    let paths = disk.paths().into_iter().filter(|path| path.starts_with("/home/runs"));
    paths.map(|path| path.display().to_string()).collect()
}

// I1, I12, I14
#[test]
fn a_ledger_is_whole_whatever_fails_while_it_is_compressed() {
    let calls = at_every_call(
        || home_with(APPENDS),
        |home, fault, what| {
            let (whole, plain) = (state(&home.store), bytes(&home.store));
            home.disk.inject(fault);
            let tried = compress(&home.store);
            let struck = home.disk.fork();
            home.disk.clear_faults();
            assert_eq!(bytes(&home.store), plain, "{what}: {tried:?}");
            let mut rng = Rng::new(29);
            let check = |disk: &SimDisk, rng: &mut Rng, when: &str| {
                for image in [disk.power_cut(rng), disk.process_kill(rng)] {
                    judge(&image, home, &whole, &plain).unwrap_or_else(|why| panic!("{what}, {when}: {why}"));
                }
            };
            check(&struck, &mut rng, "at once");
            // What the write-ahead log has of it may go now.
            home.store.committer().checkpoint().expect("a checkpoint");
            check(&home.disk, &mut rng, "after a checkpoint");
            assert_eq!(compress(&home.store).ok(), Some(true), "{what}: later it can be done");
            assert_eq!(
                (bytes(&home.store), names(&home.disk)),
                (plain.clone(), vec![COMPRESSED.to_owned()]),
                "{what}"
            );
        },
    );
    assert!(calls > 100, "{calls}");
}

// I1, I12, I14
#[test]
fn a_run_is_as_it_was_or_reopened_whatever_fails_over_that() {
    let compressed = || {
        let home = home_with_aborted();
        assert_eq!(compress(&home.store).ok(), Some(true));
        home
    };
    let calls = at_every_call(compressed, |home, fault, what| {
        let before = state(&home.store);
        home.disk.inject(fault);
        let tried = reopen(&home.store);
        let struck = home.disk.fork();
        home.disk.clear_faults();
        let found = state(&home.store);
        let is_open = |store: &Store<Inline>| state(store).status == RunStatus::Running;
        assert!(found == before || tried.is_ok() && is_open(&home.store), "{what}: {tried:?}, {found:?}");
        let mut rng = Rng::new(31);
        for image in [struck.power_cut(&mut rng), struck.process_kill(&mut rng)] {
            let store = open(&image, &home.clock).expect("opens");
            let found = told(&store).unwrap_or_else(|why| panic!("{what}: {why}")).run;
            assert!(found == before && tried.is_err() || is_open(&store), "{what}: {tried:?}, {found:?}");
        }
        // Whoever tries again, and loses power over it, has the run all the same.
        if tried.is_err() {
            let points =
                pictures(&home.disk, || reopen(&home.store).unwrap_or_else(|why| panic!("{what}: {why}")));
            for (op, picture) in points {
                let store = open(&picture.power_cut(&mut rng), &home.clock).expect("opens");
                let found = told(&store).unwrap_or_else(|why| panic!("{what}, then {op}: {why}")).run;
                assert!(found == before || is_open(&store), "{what}, then {op}: {found:?}");
            }
        }
        home.store.committer().checkpoint().expect("a checkpoint");
        let again = open(&home.disk.power_cut(&mut rng), &home.clock).expect("opens");
        assert!(is_open(&again), "{what}: {:?}", state(&again));
        assert_eq!(home.disk.read_file(LEDGER), Some(bytes(&again)), "{what}");
        assert_eq!(names(&home.disk), [LEDGER], "{what}");
    });
    assert!(calls > 100, "{calls}");
}

// I14: what nobody reads any more does not stay.
#[test]
fn what_a_death_left_beside_a_ledger_is_cleared_away_by_the_next_start() {
    let compressing = home_with(APPENDS);
    let points = pictures(&compressing.disk, || assert_eq!(compress(&compressing.store).ok(), Some(true)));
    let reopening = home_with_aborted();
    assert_eq!(compress(&reopening.store).ok(), Some(true));
    let more = pictures(&reopening.disk, || reopen(&reopening.store).expect("reopened"));
    let (mut rng, mut left) = (Rng::new(37), 0);
    for (op, picture) in points.into_iter().chain(more) {
        let image = picture.process_kill(&mut rng);
        let store = open(&image, &compressing.clock).expect("opens");
        let (whole, plain) = (state(&store), bytes(&store));
        let is_temporary = |name: &String| name.ends_with(".tmp");
        left += names(&image).iter().filter(|name| is_temporary(name)).count();
        store.clear_leftovers(id()).expect("cleared away");
        assert!(!names(&image).iter().any(is_temporary), "before {op}: {:?}", names(&image));
        assert_eq!((state(&store), bytes(&store)), (whole, plain), "before {op}");
    }
    assert!(left > 5, "{left}");
    // What a removal has taken away already is not a leftover of these.
    compressing.store.committer().checkpoint().expect("a checkpoint");
    let disk = compressing.disk.fork();
    let taken = format!("{COMPRESSED}.tmp");
    disk.write_file(&taken, b"on its way out");
    assert!(disk.remove(COMPRESSED));
    let store = open(&disk, &compressing.clock).expect("opens");
    store.clear_leftovers(id()).expect("looked");
    assert_eq!(names(&disk), [taken]);
}
