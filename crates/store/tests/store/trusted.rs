//! The list of trusted project files on a disk that loses power: what was said stays said, a crash in the middle of writing it leaves the
//! list before or after, and one that cannot be read trusts nothing and is not touched.

use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::config_trust::{TrustList, TrustedConfig};
use rekindle_domain::time::Timestamp;
use rekindle_store::check::{Code, Holding, check};
use rekindle_store::layout::Layout;
use rekindle_store::trusted_configs::{self, TrustError};
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, OpKind, SimDisk};

use crate::common::{Home, pictures};

const FILE: &str = "/home/trusted.json";

fn layout() -> Layout {
    Layout::new("/home")
}

fn config(text: &str) -> TrustedConfig {
    let hash = BlobId::of(text.as_bytes());
    TrustedConfig { root: "/repo".into(), hash, at: Timestamp::from_millis(7), by: "user:ada".into() }
}

fn trust(disk: &SimDisk, text: &str) -> Result<(), TrustError> {
    trusted_configs::trust(disk, &layout(), config(text))
}

fn read(disk: &SimDisk) -> TrustList {
    trusted_configs::read(disk, &layout()).expect("a list")
}

fn is_trusted(disk: &SimDisk, text: &str) -> bool {
    read(disk).is_trusted("/repo", BlobId::of(text.as_bytes()))
}

/// A home in which one file is trusted.
fn home() -> SimDisk {
    let disk = Home::with_sessions(0, 0).disk;
    assert_eq!(read(&disk), TrustList::default());
    trust(&disk, "first").expect("it is written");
    disk
}

// I1: what was said is on disk when it is answered, and whatever happens before that leaves what was there.
#[test]
fn a_crash_while_a_file_is_trusted_leaves_the_list_before_or_after() {
    let disk = home();
    let before = pictures(&disk, || trust(&disk, "second").expect("it is written"));
    assert!(before.len() >= 4, "it is written to another file, synced, and put in place");
    for (op, picture) in before {
        for seed in 0..20 {
            for after in [picture.power_cut(&mut Rng::new(seed)), picture.process_kill(&mut Rng::new(seed))] {
                assert!(is_trusted(&after, "first"), "{op}: lost what was said before");
                let second = is_trusted(&after, "second");
                assert_eq!(read(&after).trusted.len(), 1 + usize::from(second), "{op}");
                // Nothing of it is in the way of the next time.
                trust(&after, "second").expect("it is written");
                let after = after.power_cut(&mut Rng::new(seed + 1));
                assert!(is_trusted(&after, "first") && is_trusted(&after, "second"), "{op}");
            }
        }
    }
    for seed in 0..50 {
        assert!(is_trusted(&disk.power_cut(&mut Rng::new(seed)), "second"), "it was answered");
    }
}

#[test]
fn what_cannot_be_written_is_not_trusted() {
    let disk = home();
    for kind in [OpKind::Write, OpKind::Sync, OpKind::Rename] {
        disk.inject(Fault::once(FaultKind::Eio, 0).on(&[kind]).at("trusted.json"));
        let error = trust(&disk, "second").expect_err("it fails");
        assert!(matches!(&error, TrustError::Io(error) if error.path.ends_with("trusted.json")), "{error}");
        disk.clear_faults();
        assert!(is_trusted(&disk, "first") && !is_trusted(&disk, "second"));
    }
    trust(&disk, "second").expect("it is written");
}

// I10, I12
#[test]
fn a_list_that_cannot_be_read_trusts_nothing_is_not_touched_and_is_found() {
    let disk = home();
    let found = |disk: &SimDisk| {
        let report = check(Arc::new(disk.clone()), "/home", Holding::Nothing, &mut |_| {}).expect("checked");
        report.findings.into_iter().filter(|finding| finding.code == Code::TrustUnreadable).count()
    };
    assert_eq!(found(&disk), 0);
    let whole = disk.read_file(FILE).expect("a list");
    let newer = String::from_utf8_lossy(&whole).replace("\"version\":1", "\"version\":2").into_bytes();
    for bytes in [&whole[..whole.len() / 2], b"", b"\xff garbage", &newer] {
        disk.write_file(FILE, bytes);
        let error = trusted_configs::read(&disk, &layout()).expect_err("it cannot be read");
        assert!(matches!(error, TrustError::Damaged { .. } | TrustError::Newer { found: 2, known: 1, .. }));
        trust(&disk, "second").expect_err("nor changed");
        assert_eq!(disk.read_file(FILE).as_deref(), Some(bytes), "left as it was");
        assert_eq!(found(&disk), 1);
    }
    disk.write_file(FILE, &whole);
    assert_eq!((is_trusted(&disk, "first"), found(&disk)), (true, 0));
}
