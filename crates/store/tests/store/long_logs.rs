//! Long logs: their hashes are verified beside the fold, and what is wrong in one is found where it is.

use std::sync::Arc;

use rekindle_domain::id::SessionId;
use rekindle_domain::session::SessionState;
use rekindle_store::commit::Append;
use rekindle_store::{Loaded, Want};
use rekindle_testkit::sim::SimDisk;

use crate::common::{Home, marked, open};

/// A log of some megabytes, where its records begin, and the state it comes to.
struct Long {
    session: SessionId,
    bytes: Vec<u8>,
    starts: Vec<usize>,
    state: SessionState,
}

impl Long {
    fn new() -> Long {
        let home = Home::with_sessions(1, 2);
        let session = home.sessions[0];
        for batch in 0..30 {
            let records = (0..20).map(|n| marked(batch * 20 + n, 5000, None)).collect();
            home.store.append(Append::durable(session, records)).expect("recorded");
        }
        let bytes = home.disk.read_file(home.store.layout().log(session)).expect("a log");
        assert!(bytes.len() > 2 << 20, "{} bytes are not long", bytes.len());
        let ends = line_ends(&bytes);
        let starts = std::iter::once(0).chain(ends).take_while(|start| *start < bytes.len()).collect();
        let state = (*home.store.current(session).expect("open").state).clone();
        Long { session, bytes, starts, state }
    }

    /// Loads a log of these bytes from a home that has nothing else.
    fn load(&self, bytes: &[u8]) -> Loaded {
        let disk = SimDisk::new(3);
        let store = open(&disk, &Arc::default()).expect("an empty home");
        disk.write_file(store.layout().log(self.session), bytes);
        store.load(self.session, Want::Everything).expect("loads")
    }

    /// Returns where the record with a number begins.
    fn start(&self, seq: usize) -> usize {
        self.starts[seq - 1]
    }
}

fn line_ends(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1)
}

// I12
#[test]
fn a_long_log_comes_to_what_was_recorded() {
    let long = Long::new();
    let loaded = long.load(&long.bytes);
    assert_eq!((loaded.damage, loaded.torn), (None, None));
    assert_eq!(loaded.state, long.state);
}

// I12: nothing behind a record whose hash does not fit is taken for true, however long the log.
#[test]
fn a_changed_byte_is_found_anywhere_in_a_long_log() {
    let long = Long::new();
    let last = long.starts.len();
    for seq in [1, 2, last / 2, last - 1] {
        let mut changed = long.bytes.clone();
        // In the middle of its text: only the hash tells.
        let at = long.start(seq) + (long.start(seq + 1) - long.start(seq)) / 2;
        changed[at] ^= 1;
        let loaded = long.load(&changed);
        let damage = loaded.damage.expect("it is found");
        assert_eq!(damage.offset, long.start(seq) as u64, "record {seq}: {damage}");
        assert_eq!(damage.detail, format!("the hash of record {seq} does not match"));
        assert_eq!(loaded.state.last_seq, seq as u64 - 1);
    }
}

#[test]
fn a_record_that_is_missing_from_a_long_log_is_found() {
    let long = Long::new();
    let seq = long.starts.len() / 2;
    let mut changed = long.bytes.clone();
    changed.drain(long.start(seq)..long.start(seq + 1));
    let loaded = long.load(&changed);
    let damage = loaded.damage.expect("it is found");
    assert_eq!(damage.offset, long.start(seq) as u64);
    assert_eq!(damage.detail, format!("found record {} where {seq} was expected", seq + 1));
    assert_eq!(loaded.state.last_seq, seq as u64 - 1);
}

// I3
#[test]
fn a_long_log_is_cut_where_its_last_whole_list_ends() {
    let long = Long::new();
    let last = long.starts.len();
    let list = long.start(last - 19);
    let mut changed = long.bytes.clone();
    changed[long.start(last) + 2500] ^= 1;
    for (what, bytes) in [
        ("half a record", &long.bytes[..long.start(last) + 2500]),
        ("half a list", &long.bytes[..long.start(last)]),
        ("a last record with another byte", &changed[..]),
    ] {
        let loaded = long.load(bytes);
        assert_eq!(loaded.damage, None, "{what}");
        let torn = loaded.torn.expect("it is found");
        assert_eq!((torn.offset, torn.half_list), (list as u64, true), "{what}");
        assert_eq!(loaded.state.last_seq, last as u64 - 20, "{what}");
    }
}
