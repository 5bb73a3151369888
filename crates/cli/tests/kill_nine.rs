//! `kill -9` of a real process that appends at full speed, five hundred times: whatever it was told is there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_store::disk::RealDisk;
use rekindle_store::offline::Offline;
use rekindle_store::{Completion, Want};
use rekindle_testkit::made::dev_program;

const ROUNDS: u32 = 500;
/// A fresh home now and then keeps what is checked short, and makes creation a part of what is killed.
const ROUNDS_PER_HOME: u32 = 50;

/// One line the writer printed: an append it was told is recorded.
struct Ack {
    session: SessionId,
    last_seq: u64,
    last_hash: String,
}

fn parse(line: &str) -> Option<Ack> {
    let mut words = line.strip_prefix("ack ")?.split(' ');
    let session = words.next()?.parse().ok()?;
    let (_first, last_seq) = (words.next()?, words.next()?.parse().ok()?);
    let last_hash = words.next()?.to_owned();
    words.next().map(|_| Ack { session, last_seq, last_hash })
}

/// Runs the writer until it has been killed and returns what it was told.
fn write_and_kill(home: &Path, lifetime: Duration) -> Vec<Ack> {
    let mut writer = Command::new(dev_program(env!("CARGO_BIN_EXE_rekindle")))
        .args(["append", "--sessions", "6", "--persist", "mixed", "--seconds", "60", "--home"])
        .arg(home)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the writer starts");
    let stdout = writer.stdout.take().expect("a pipe");
    let (started, wait) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut acks = Vec::new();
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = started.send(());
            // The last line may be cut in the pipe; then nobody was told.
            acks.extend(parse(&line));
        }
        acks
    });
    // Some rounds are killed while the home is being opened, before anything was acknowledged.
    if lifetime > Duration::from_millis(5) {
        let told = wait.recv_timeout(Duration::from_secs(20));
        if told.is_err() {
            let ended = writer.try_wait();
            let mut said = String::new();
            let _ = writer.kill();
            let _ = writer.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
            panic!("the writer acknowledges nothing: {ended:?}: {said}");
        }
    }
    let until = Instant::now() + lifetime;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    writer.kill().expect("it can be killed");
    writer.wait().expect("it is gone");
    reader.join().expect("the reader ends")
}

/// Checks that the home is whole and has everything that was acknowledged.
fn check(home: &Path, acks: &[Ack]) -> Result<(), String> {
    let offline = Offline::open(Arc::new(RealDisk), home).map_err(|error| error.to_string())?;
    if !offline.wal_damage.is_empty() {
        return Err(format!("the write-ahead log is called damaged: {:?}", offline.wal_damage));
    }
    for (session, pending) in &offline.pending {
        if let Completion::Damaged(damage) = pending {
            return Err(format!("{session} is called damaged: {damage:?}"));
        }
    }
    let mut newest: BTreeMap<SessionId, Vec<&Ack>> = BTreeMap::new();
    for ack in acks {
        newest.entry(ack.session).or_default().push(ack);
    }
    for (session, acks) in newest {
        let loaded = offline.load(session, Want::Everything).map_err(|error| error.to_string())?;
        if let Some(damage) = loaded.damage {
            return Err(format!("{session} is damaged: {damage:?}"));
        }
        let reader = offline.reader(session).map_err(|error| error.to_string())?;
        let first = acks.iter().map(|ack| ack.last_seq).min().unwrap_or(1);
        let offset = reader.find(first).map_err(|error| error.to_string())?;
        let mut lines = reader.forward(offset.ok_or(format!("{session}: record {first} is missing"))?);
        let mut hashes = BTreeMap::new();
        while let Some(line) = lines.next().map_err(|error| error.to_string())? {
            if let Ok(line) = Line::parse(line.bytes) {
                let hash = line.hash.map(|hash| hash.to_string()).unwrap_or_default();
                if hashes.insert(line.seq, hash).is_some() {
                    return Err(format!("{session}: record {} comes twice", line.seq));
                }
            }
        }
        for ack in acks {
            if hashes.get(&ack.last_seq) != Some(&ack.last_hash) {
                return Err(format!("{session}: acknowledged record {} is missing or another", ack.last_seq));
            }
        }
    }
    Ok(())
}

// I1, I3, I14
#[test]
fn killed_five_hundred_times_nothing_acknowledged_is_missing() {
    let mut directory = tempfile::tempdir().expect("a directory");
    // Chosen by the round: early kills hit the start, late ones checkpoints and snapshots.
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        if round % ROUNDS_PER_HOME == 0 {
            directory = tempfile::tempdir().expect("a directory");
        }
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let lifetime = Duration::from_micros(noise >> 33 & 0x7fff);
        let home = directory.path().join("home");
        let acks = write_and_kill(&home, lifetime);
        acknowledged += acks.len();
        if home.join("home.json").exists() {
            check(&home, &acks)
                .unwrap_or_else(|why| panic!("round {round}, killed after {lifetime:?}: {why}"));
        } else {
            assert!(acks.is_empty(), "round {round}: acknowledged without a home");
        }
    }
    assert!(acknowledged > ROUNDS as usize, "only {acknowledged} appends were acknowledged");
    println!("{ROUNDS} kills, {acknowledged} acknowledged appends, all there");
}
