//! What the tests of this side share: homes with hand-made holders, journals, a holder's end of a connection,
//! and a way to wait.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::dir::{FORMAT, HolderDir, Launch, Limits, LockNote};
use crate::identity::{Identity, machine_boot};
use crate::journal::{Body, JournalWriter, OutFlags, Part};
use crate::wire::{
    Auth, Challenge, Decoder, Event, Marks, PREAMBLE_LEN, Phase, Preamble, Proof, Request, Secret, Welcome,
};

/// Longest a test waits for anything.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A directory of holders.
pub(super) struct Home(TempDir);

impl Home {
    pub(super) fn new() -> Home {
        Home(tempfile::tempdir().expect("a directory"))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes a holder's directory with a launch, a secret and room for a journal.
    pub(super) fn holder(&self, id: &str) -> HolderDir {
        let dir = HolderDir::new(self.path().join(id));
        std::fs::create_dir_all(dir.journal()).expect("made");
        std::fs::write(dir.secret(), [7; 32]).expect("written");
        self.write_launch(&dir);
        dir
    }

    pub(super) fn write_launch(&self, dir: &HolderDir) {
        let launch = Launch {
            format: FORMAT,
            holder_id: dir.path().file_name().and_then(|name| name.to_str()).expect("a name").into(),
            session_id: "sess_1".into(),
            attempt: 1,
            agent: None,
            profile: "exec".into(),
            argv: vec!["true".into()],
            cwd: "/".into(),
            fingerprint: "f".into(),
            env_names: Vec::new(),
            umask: None,
            socket: self.path().join("socket"),
            machine_boot: machine_boot().expect("a boot"),
            executable: String::new(),
            limits: Limits::default(),
        };
        std::fs::write(dir.launch(), serde_json::to_vec(&launch).expect("plain")).expect("written");
    }

    pub(super) fn change_launch(&self, dir: &HolderDir, change: impl FnOnce(&mut Launch)) {
        let mut launch: Launch = HolderDir::read(&dir.launch()).expect("a launch");
        change(&mut launch);
        std::fs::write(dir.launch(), serde_json::to_vec(&launch).expect("plain")).expect("written");
    }

    /// Writes a lock note of this process, whose inode is off by so much.
    pub(super) fn write_lock_note(&self, dir: &HolderDir, off: u64) {
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(dir.lock());
        let metadata = file.expect("opened").metadata().expect("there");
        let note = LockNote {
            holder_id: "h_1".into(),
            process: Identity::of(std::process::id() as i32).expect("we are there"),
            device: metadata.dev(),
            inode: metadata.ino() + off,
        };
        std::fs::write(dir.lock(), serde_json::to_vec(&note).expect("plain")).expect("written");
    }

    pub(super) fn change_lock_note(&self, dir: &HolderDir, change: impl FnOnce(&mut LockNote)) {
        let mut note: LockNote = HolderDir::read(&dir.lock()).expect("a note");
        change(&mut note);
        std::fs::write(dir.lock(), serde_json::to_vec(&note).expect("plain")).expect("written");
    }

    pub(super) fn journal(&self, dir: &HolderDir) -> JournalWriter {
        JournalWriter::create(&dir.journal(), "h_1", crate::journal::SEGMENT_BYTES).expect("a journal")
    }

    /// Changes a byte of the first place in the first segment where these bytes stand.
    pub(super) fn spoil(&self, dir: &HolderDir, what: &[u8]) {
        let path = dir.journal().join("00000001.log");
        let mut bytes = std::fs::read(&path).expect("a segment");
        let at = bytes.windows(what.len()).position(|window| window == what).expect("it is there");
        bytes[at] ^= 0x20;
        std::fs::write(&path, bytes).expect("written");
    }
}

/// Appends a whole line.
pub(super) fn out(journal: &mut JournalWriter, bytes: &[u8]) {
    out_part(journal, Part::Whole, bytes);
}

/// Appends part of a line.
pub(super) fn out_part(journal: &mut JournalWriter, part: Part, bytes: &[u8]) {
    journal.append(&Body::Out { part, flags: OutFlags::default(), bytes }, bytes).expect("appended");
}

/// Looks until there is something to see.
pub(super) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not happen in time");
        std::thread::yield_now();
    }
}

/// The holder's end of a connection, in the hand of a test.
pub(super) struct Peer {
    stream: UnixStream,
    decoder: Decoder,
    pub(super) secret: Secret,
    pub(super) holder_id: String,
    pub(super) nonce: String,
}

impl Peer {
    pub(super) fn new(stream: UnixStream) -> Peer {
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        Peer {
            stream,
            decoder: Decoder::default(),
            secret: Secret::new([7; 32]),
            holder_id: "h_1".into(),
            nonce: "nonce".into(),
        }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("sent");
    }

    pub(super) fn say(&mut self, event: &Event) {
        let mut bytes = Vec::new();
        event.frame(Vec::new()).write(&mut bytes);
        self.send(&bytes);
    }

    pub(super) fn challenge(&mut self) {
        let challenge = Challenge {
            nonce: self.nonce.clone(),
            holder_id: self.holder_id.clone(),
            fingerprint: "f".into(),
            phase: Phase::Running,
            epoch: 4,
        };
        self.say(&Event::Challenge(challenge));
    }

    /// Reads the other side's first bytes.
    pub(super) fn preamble(&mut self) -> Preamble {
        loop {
            if let Some(bytes) = self.decoder.take::<PREAMBLE_LEN>() {
                return Preamble::read(&bytes).expect("a preamble");
            }
            assert!(self.fill(), "a preamble");
        }
    }

    /// Reads a request and its payload; none if the other side has gone.
    pub(super) fn request(&mut self) -> Option<(Request, Vec<u8>)> {
        loop {
            if let Some(frame) = self.decoder.next_frame().expect("frames") {
                return Some((
                    Request::read(&frame).expect("a request").expect("a known one"),
                    frame.payload,
                ));
            }
            if !self.fill() {
                return None;
            }
        }
    }

    fn fill(&mut self) -> bool {
        let mut bytes = [0; 8192];
        let count = self.stream.read(&mut bytes).expect("read in time");
        self.decoder.push(&bytes[..count]);
        count > 0
    }

    pub(super) fn auth(&mut self) -> Auth {
        match self.request() {
            Some((Request::Auth(auth), _)) => auth,
            other => panic!("an auth, not {other:?}"),
        }
    }

    pub(super) fn proof<'a>(&'a self, auth: &'a Auth) -> Proof<'a> {
        Proof {
            holder_id: &self.holder_id,
            nonce: &self.nonce,
            nonce2: &auth.nonce2,
            mode: auth.mode,
            instance: &auth.instance,
            epoch: auth.epoch,
        }
    }

    pub(super) fn welcome(&mut self, auth: &Auth) {
        let proof = self.proof(auth).of_holder(&self.secret);
        self.say(&Event::Welcome(Welcome { proof, marks: marks() }));
    }

    /// Does all that a good holder does until it has let someone in.
    pub(super) fn let_in(&mut self) {
        self.send(&Preamble::OURS.write());
        self.preamble();
        self.challenge();
        let auth = self.auth();
        assert!(self.proof(&auth).check_supervisor(&self.secret, &auth.proof));
        self.welcome(&auth);
    }
}

pub(super) fn marks() -> Marks {
    Marks {
        phase: Phase::Running,
        epoch: 4,
        head: 9,
        acked: 3,
        accepted: 2,
        delivered: 1,
        agent: None,
        trouble: None,
    }
}
