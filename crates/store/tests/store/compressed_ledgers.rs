//! Ledgers of runs that have ended, kept compressed: the same bytes, whenever somebody dies, and never less without a word.

use std::sync::Arc;

use rekindle_domain::id::StepId;
use rekindle_domain::pipeline::{PipelineState, RunStatus, compose};
use rekindle_store::AppendError;
use rekindle_store::Store;
use rekindle_store::blob_references::referenced_blobs;
use rekindle_store::check::Code;
use rekindle_store::commit::{Append, Commits, Inline};
use rekindle_store::disk::Disk;
use rekindle_store::layout::Layout;
use rekindle_store::log::{Cursor, LogForm};
use rekindle_store::offline::Offline;
use rekindle_store::run_files::{RunRemoval, is_leftover, remove};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, OpKind, SimDisk};

use crate::common::{Home, open, pictures};
use crate::pipelines::{APPENDS, LEDGER, found, home_with, id, intention, state, told, tree};

pub(crate) const COMPRESSED: &str = "/home/runs/run-20251020-140818-4f9f29a1/ledger.ndjson.zst";

/// Returns the bytes of the ledger as whoever reads it finds them.
pub(crate) fn bytes(store: &Store<Inline>) -> Vec<u8> {
    let reader = store.ledger_reader(id()).expect("a ledger");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut reader.stored(Cursor::START, reader.end()), &mut bytes).expect("read");
    bytes
}

pub(crate) fn compress(store: &Store<Inline>) -> std::io::Result<bool> {
    store.compress_ledger(&state(store))
}

/// A home with a run that somebody aborted.
pub(crate) fn home_with_aborted() -> Home {
    let home = home_with(2);
    home.store.append(Append::durable(id(), vec![compose::abort(None, "user:ada")])).expect("aborted");
    home
}

pub(crate) fn reopen(store: &Store<Inline>) -> Result<(), String> {
    let opened = store.reopen_pipeline(id()).map_err(|error| error.to_string())?.ok_or("it is gone")?;
    let records = compose::reopen(&opened.fold, None, "user:ada", |_, step: &StepId| Ok(intention(step)));
    let append = Append::durable(id(), records.map_err(|error| error.to_string())?);
    store.append(append).map(drop).map_err(|error| error.to_string())
}

#[test]
fn a_compressed_ledger_has_the_same_bytes_and_nothing_is_added_to_it() {
    let home = home_with_aborted();
    let (whole, plain) = (told(&home.store), bytes(&home.store));
    let early = home.store.ledger_reader(id()).expect("a ledger");
    assert_eq!(compress(&home.store).ok(), Some(true));
    assert!(home.disk.read_file(LEDGER).is_none());
    let stored = home.disk.read_file(COMPRESSED).expect("it is there");
    assert!(stored.len() < plain.len(), "{} bytes of {}", stored.len(), plain.len());
    assert_eq!(zstd::decode_all(&stored[..]).expect("any tool reads it"), plain);
    assert_eq!((told(&home.store), bytes(&home.store)), (whole.clone(), plain.clone()));
    assert_eq!(early.form(), LogForm::Plain, "whoever has it open reads on");
    assert_eq!(early.last(early.end(), 1).expect("read").len(), 1);
    let reader = home.store.ledger_reader(id()).expect("a ledger");
    assert_eq!(reader.form(), LogForm::Compressed);
    assert!(reader.find(4).expect("read").is_some() && reader.find(5).expect("read").is_none());
    assert!(home.store.is_compressed(id()).expect("looked"));
    assert_eq!(compress(&home.store).ok(), Some(true), "once more is nothing more");
    let refused = home.store.append(Append::durable(id(), vec![compose::abort(None, "user:ada")]));
    assert!(matches!(refused, Err(AppendError::NotOpen(_))), "{refused:?}");
    home.store.create_pipeline(id()).expect_err("its name is taken");
    let offline = Offline::open(Arc::new(home.disk.fork()), "/home").expect("a home");
    assert_eq!(offline.pipeline(id()).expect("read").state.status, RunStatus::Aborted);
    assert_eq!(found(&home.disk.fork()), []);
    let named = referenced_blobs(&home.disk, &Layout::new("/home")).expect("read");
    assert!(named.referenced.contains(&tree(1)) && named.unreadable.is_empty());
    // It goes on as if it had never been compressed.
    reopen(&home.store).expect("reopened");
    let after = bytes(&home.store);
    assert!(after.starts_with(&plain) && after.len() > plain.len());
    assert_eq!(home.disk.read_file(LEDGER), Some(after));
    assert!(home.disk.read_file(COMPRESSED).is_none());
    assert_eq!(state(&home.store).status, RunStatus::Running);
    let again = home.reopen_same();
    assert_eq!(state(&again.store).status, RunStatus::Running);
}

#[test]
fn a_run_that_grew_meanwhile_is_not_compressed() {
    let home = home_with(1);
    let before = state(&home.store);
    home.store.append(Append::durable(id(), vec![compose::abort(None, "user:ada")])).expect("aborted");
    assert_eq!(home.store.compress_ledger(&before).ok(), Some(false));
    assert!(home.disk.read_file(LEDGER).is_some() && home.disk.read_file(COMPRESSED).is_none());
}

/// What a home may be after a crash while a run was compressed: the same run, with every byte.
pub(crate) fn judge(image: &SimDisk, home: &Home, whole: &PipelineState, plain: &[u8]) -> Result<(), String> {
    for start in 0..2 {
        let errors: Vec<_> = found(image).into_iter().filter(|(code, _)| *code == Code::LogDamaged).collect();
        if !errors.is_empty() {
            return Err(format!("start {start}: {errors:?}"));
        }
        let store = open(image, &home.clock).map_err(|error| format!("{error:?}"))?;
        let found = told(&store)?.run;
        if found != *whole || bytes(&store) != plain {
            return Err(format!("start {start}: it is {found:?}"));
        }
        if start == 1 {
            // Whoever comes next finishes it.
            let compressed = compress(&store).map_err(|error| error.to_string())?;
            let left = image.paths().into_iter().filter(|path| path.starts_with("/home/runs")).count();
            if !compressed || image.read_file(LEDGER).is_some() || left != 1 {
                return Err(format!("compressed: {compressed}, {left} files"));
            }
            let again = open(&image.power_cut(&mut Rng::new(3)), &home.clock);
            let again = told(&again.map_err(|error| format!("{error:?}"))?)?.run;
            if again != *whole {
                return Err(format!("afterwards it is {again:?}"));
            }
        }
    }
    Ok(())
}

// I1, I14
#[test]
fn a_ledger_is_whole_whenever_somebody_dies_while_it_is_compressed() {
    for checkpoint in [false, true] {
        let home = home_with(APPENDS);
        if checkpoint {
            home.store.committer().checkpoint().expect("a checkpoint");
        }
        let (whole, plain) = (state(&home.store), bytes(&home.store));
        let points = pictures(&home.disk, || assert_eq!(compress(&home.store).ok(), Some(true)));
        assert!(points.len() >= 5, "{} places to crash at", points.len());
        let mut rng = Rng::new(17);
        let last = [("the end".to_owned(), home.disk.fork())];
        for (op, picture) in points.into_iter().chain(last) {
            for image in
                [picture.power_cut(&mut rng), picture.power_cut(&mut rng), picture.process_kill(&mut rng)]
            {
                if let Err(why) = judge(&image, &home, &whole, &plain) {
                    panic!("before {op}, checkpoint {checkpoint}: {why}");
                }
            }
        }
    }
}

// I1, I14
#[test]
fn a_run_is_as_it_was_or_reopened_whenever_somebody_dies_over_that() {
    for checkpoint in [false, true] {
        let home = home_with_aborted();
        assert_eq!(compress(&home.store).ok(), Some(true));
        if checkpoint {
            home.store.committer().checkpoint().expect("a checkpoint");
        }
        let before = state(&home.store);
        let points = pictures(&home.disk, || reopen(&home.store).expect("reopened"));
        let after = state(&home.store);
        let (mut rng, mut both) = (Rng::new(19), [0, 0]);
        for (op, picture) in points.into_iter().chain([("the end".to_owned(), home.disk.fork())]) {
            for image in [picture.power_cut(&mut rng), picture.process_kill(&mut rng)] {
                let store = open(&image, &home.clock).expect("opens");
                let found = told(&store).expect("it is whole").run;
                assert!(found == before || found == after, "before {op}: {found:?}");
                both[usize::from(found == after)] += 1;
                if found == before {
                    reopen(&store).unwrap_or_else(|why| panic!("before {op}: {why}"));
                }
                assert_eq!(state(&store).status, RunStatus::Running, "before {op}");
                let again = open(&image.power_cut(&mut rng), &home.clock).expect("opens");
                assert_eq!(state(&again).status, RunStatus::Running, "before {op}");
            }
        }
        assert!(both[0] > 0 && both[1] > 0, "{both:?}");
    }
}

#[test]
fn what_cannot_be_compressed_stays_as_it_is() {
    for kind in [OpKind::Create, OpKind::Write] {
        let home = home_with(APPENDS);
        home.store.committer().checkpoint().expect("a checkpoint");
        let plain = bytes(&home.store);
        home.disk.inject(Fault::sticky(FaultKind::NoSpace, 0).on(&[kind]).at("/runs"));
        compress(&home.store).expect_err("it fails");
        home.disk.clear_faults();
        assert_eq!(home.disk.read_file(LEDGER).as_deref(), Some(&plain[..]), "{kind:?}");
        assert_eq!(bytes(&home.store), plain);
        assert_eq!(compress(&home.store).ok(), Some(true), "{kind:?}: later it can be done");
        assert_eq!(bytes(&home.store), plain);
    }
}

// I12: less than there was is never taken for all there is.
#[test]
fn every_byte_of_a_compressed_ledger_that_is_changed_or_missing_is_noticed() {
    let home = home_with(APPENDS);
    let whole = state(&home.store);
    assert_eq!(compress(&home.store).ok(), Some(true));
    home.store.committer().checkpoint().expect("a checkpoint");
    let stored = home.disk.read_file(COMPRESSED).expect("it is there");
    let check = |changed: &[u8], what: &str| {
        let disk = home.disk.fork();
        disk.write_file(COMPRESSED, changed);
        let is_found = found(&disk).iter().any(|(code, _)| *code == Code::LogDamaged);
        let store = open(&disk, &home.clock).expect("the home opens");
        let opened = store.open_pipeline(id()).expect("readable").expect("it is known");
        let is_same = opened.damage.is_none() && opened.fold == whole;
        assert!(is_same || opened.damage.is_some(), "{what}: {:?}", opened.fold);
        assert_eq!(is_found, opened.damage.is_some(), "{what}");
        let reopened = store.reopen_pipeline(id()).map(|opened| opened.and_then(|opened| opened.damage));
        assert!(is_same || !matches!(reopened, Ok(None)), "{what}: nothing is added behind damage");
        is_same
    };
    assert!(check(&stored, "as it is"));
    let mut harmless = 0;
    for at in 0..stored.len() {
        let mut changed = stored.clone();
        changed[at] ^= 1 << (at % 8);
        harmless += usize::from(check(&changed, &format!("byte {at}")));
    }
    assert!(harmless < stored.len() / 10, "{harmless} of {} bytes make no difference", stored.len());
    for len in (0..stored.len()).step_by(7) {
        assert!(!check(&stored[..len], &format!("cut at {len}")), "cut at {len}");
    }
}

#[test]
fn a_run_that_is_collected_is_there_whole_or_not_at_all_whoever_dies() {
    let home = home_with(APPENDS);
    let layout = Layout::new("/home");
    let shared = |disk: &SimDisk| Arc::new(disk.clone());
    assert_eq!(remove(&*shared(&home.disk), &layout, id()).ok(), Some(RunRemoval::InUse), "it may go on");
    let whole = state(&home.store);
    assert_eq!(compress(&home.store).ok(), Some(true));
    home.store.committer().checkpoint().expect("a checkpoint");
    let summary = format!("{}/run.json", layout.run(id()).display());
    home.disk.write_file(&summary, b"{}");
    let foreign = home.disk.fork();
    foreign.write_file(format!("{}/notes.txt", layout.run(id()).display()), b"mine");
    let left = remove(&foreign, &layout, id()).expect("looked");
    assert_eq!(left, RunRemoval::Foreign("notes.txt".into()));
    assert!(foreign.read_file(COMPRESSED).is_some() && foreign.read_file(&summary).is_some());
    let gone = home.disk.fork();
    let points = pictures(&gone, || {
        assert_eq!(remove(&gone, &layout, id()).ok(), Some(RunRemoval::Gone));
    });
    let (mut rng, mut both) = (Rng::new(23), [0, 0]);
    for (op, picture) in points.into_iter().chain([("the end".to_owned(), gone.fork())]) {
        for image in [picture.power_cut(&mut rng), picture.process_kill(&mut rng)] {
            let errors: Vec<_> =
                found(&image).into_iter().filter(|(code, _)| *code == Code::LogDamaged).collect();
            assert_eq!(errors, [], "before {op}");
            let store = open(&image, &home.clock).expect("opens");
            let there = store.open_pipeline(id()).expect("readable").filter(|run| run.fold.started.is_some());
            if let Some(there) = &there {
                assert!(there.damage.is_none() && there.fold == whole, "before {op}: {there:?}");
            }
            both[usize::from(there.is_some())] += 1;
            let is_left = is_leftover(&image, &layout, id()).expect("looked");
            assert!(!is_left || there.is_none(), "before {op}");
            drop(store);
            assert_eq!(remove(&image, &layout, id()).ok(), Some(RunRemoval::Gone), "before {op}");
            assert!(image.stat(&layout.run(id())).is_err(), "before {op}");
        }
    }
    assert!(both[0] > 0 && both[1] > 0, "{both:?}");
    // Its name is free again.
    let store = open(&gone, &home.clock).expect("opens");
    assert_eq!(store.pipelines().expect("listed").runs, []);
}
