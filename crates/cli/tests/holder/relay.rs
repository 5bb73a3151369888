//! Someone between a supervisor and a holder who changes what they say to each other: how another version of either
//! would sound.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};

use rekindle_holder::dir::{HolderDir, Launch};
use rekindle_holder::wire::{Decoder, Frame, PREAMBLE_LEN};

use crate::lab::{Held, Lab};

/// What is done to one direction.
#[derive(Clone)]
pub(crate) struct Change {
    /// To the preamble.
    pub(crate) preamble: fn(&mut [u8; PREAMBLE_LEN]),
    /// What is said before each frame that passes; the first one is number 0.
    pub(crate) before: fn(usize) -> Option<Frame>,
}

impl Change {
    /// Lets everything pass as it is.
    pub(crate) const NOTHING: Change = Change { preamble: |_| {}, before: |_| None };
}

/// A holder's directory whose socket is the relay's.
pub(crate) fn relay(lab: &Lab, held: &Held, of_supervisor: Change, of_holder: Change) -> HolderDir {
    let front = HolderDir::new(lab.path("front"));
    std::fs::create_dir_all(front.path()).expect("a directory");
    let mut launch: Launch = HolderDir::read(&held.dir.launch()).expect("a launch");
    let holder = std::mem::replace(&mut launch.socket, lab.path("run/relay.sock"));
    std::fs::write(front.launch(), serde_json::to_vec(&launch).expect("plain")).expect("written");
    std::fs::copy(held.dir.secret(), front.secret()).expect("copied");
    let _ = std::fs::remove_file(&launch.socket);
    let listener = UnixListener::bind(&launch.socket).expect("bound");
    std::thread::spawn(move || {
        while let Ok((supervisor, _)) = listener.accept() {
            let holder = UnixStream::connect(&holder).expect("the holder listens");
            pass_on(&supervisor, &holder, of_supervisor.clone());
            pass_on(&holder, &supervisor, of_holder.clone());
        }
    });
    front
}

/// Carries one direction until it ends.
fn pass_on(from: &UnixStream, to: &UnixStream, change: Change) {
    let mut from = from.try_clone().expect("a descriptor");
    let mut to = to.try_clone().expect("a descriptor");
    std::thread::spawn(move || {
        let mut preamble = [0; PREAMBLE_LEN];
        if from.read_exact(&mut preamble).is_ok() {
            (change.preamble)(&mut preamble);
            let _ = to.write_all(&preamble);
            pass_frames(&mut from, &mut to, &change);
        }
        let _ = to.shutdown(Shutdown::Write);
    });
}

fn pass_frames(from: &mut UnixStream, to: &mut UnixStream, change: &Change) {
    let (mut decoder, mut bytes, mut count) = (Decoder::default(), vec![0; 64 << 10], 0);
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        decoder.push(&bytes[..read]);
        let mut out = Vec::new();
        while let Some(frame) = decoder.next_frame().expect("frames") {
            if let Some(another) = (change.before)(count) {
                another.write(&mut out);
            }
            frame.write(&mut out);
            count += 1;
        }
        if to.write_all(&out).is_err() {
            return;
        }
    }
}
