//! `kill -9` of a real process that appends at full speed, five hundred times: whatever it was told is there.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_store::disk::RealDisk;
use rekindle_store::layout::segment_number;
use rekindle_store::offline::Offline;
use rekindle_store::{Completion, Want};
use rekindle_testkit::made::dev_program;

/// Several homes keep what is checked short, and make creation a part of what is killed.
const HOMES: u32 = 20;
const ROUNDS_PER_HOME: u32 = 25;
/// So small that most of the writers come by a checkpoint before they are killed; and each start and each check reads a whole one.
const SEGMENT_BYTES: &str = "16384";

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

/// When a writer is killed: when so many appends were acknowledged, and a moment later.
#[derive(Debug, Clone, Copy)]
struct Death {
    acks: usize,
    later: Duration,
}

impl Death {
    /// Chooses by some noise: some die while the home is being opened, before anything was acknowledged, the others as they append,
    /// make checkpoints and snapshots. How far they come does not depend on how busy the machine is.
    fn choose(noise: u64) -> Death {
        let micros = |most: u64| Duration::from_micros(((noise >> 20 & 0xffff) * most) >> 16);
        match (noise >> 40) as usize % 200 {
            ..32 => Death { acks: 0, later: micros(30_000) },
            acks => Death { acks, later: micros(1000) },
        }
    }
}

/// Runs the writer until it has been killed and returns what it was told.
fn write_and_kill(home: &Path, death: Death) -> Vec<Ack> {
    let mut writer = Command::new(dev_program(env!("CARGO_BIN_EXE_rekindle")))
        .args(["append", "--sessions", "6", "--persist", "mixed", "--seconds", "60"])
        .args(["--segment-bytes", SEGMENT_BYTES, "--home"])
        .arg(home)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the writer starts");
    let stdout = writer.stdout.take().expect("a pipe");
    let (acknowledged, wait) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut acks = Vec::new();
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = acknowledged.send(());
            // The last line may be cut in the pipe; then nobody was told.
            acks.extend(parse(&line));
        }
        acks
    });
    for _ in 0..death.acks {
        let told = wait.recv_timeout(Duration::from_secs(20));
        if told.is_err() {
            let ended = writer.try_wait();
            let mut said = String::new();
            let _ = writer.kill();
            let _ = writer.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
            panic!("the writer acknowledges nothing: {ended:?}: {said}");
        }
    }
    let until = Instant::now() + death.later;
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

/// Returns the number of the newest segment of the write-ahead log.
fn newest_segment(home: &Path) -> u64 {
    let entries = std::fs::read_dir(home.join("wal")).into_iter().flatten().flatten();
    entries.filter_map(|entry| segment_number(entry.file_name().to_str()?)).max().unwrap_or(0)
}

/// Has writers killed in one home, one after the other; returns how many appends were acknowledged and checkpoints made.
fn kill_writers(number: u32) -> (usize, u64) {
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("home");
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(number) + 1);
    let mut acknowledged = 0;
    for round in 0..ROUNDS_PER_HOME {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let death = Death::choose(noise);
        let acks = write_and_kill(&home, death);
        acknowledged += acks.len();
        if home.join("home.json").exists() {
            check(&home, &acks)
                .unwrap_or_else(|why| panic!("home {number}, round {round}, {death:?}: {why}"));
        } else {
            assert!(acks.is_empty(), "home {number}, round {round}: acknowledged without a home");
        }
    }
    // Each start begins a segment, and so does each checkpoint.
    (acknowledged, newest_segment(&home).saturating_sub(ROUNDS_PER_HOME.into()))
}

// I1, I3, I14
#[test]
fn killed_five_hundred_times_nothing_acknowledged_is_missing() {
    let (next, acknowledged, checkpoints) = (AtomicU32::new(0), AtomicUsize::new(0), AtomicU64::new(0));
    let work = || {
        while let Some(number) = Some(next.fetch_add(1, Relaxed)).filter(|number| *number < HOMES) {
            let (acks, made) = kill_writers(number);
            acknowledged.fetch_add(acks, Relaxed);
            checkpoints.fetch_add(made, Relaxed);
        }
    };
    // Most of the time a writer starts, or waits for the disk: another can be killed meanwhile.
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let (rounds, acknowledged) = (HOMES * ROUNDS_PER_HOME, acknowledged.into_inner());
    let checkpoints = checkpoints.into_inner();
    assert!(acknowledged > rounds as usize, "only {acknowledged} appends were acknowledged");
    assert!(checkpoints > u64::from(rounds / 4), "only {checkpoints} checkpoints were made");
    println!("{rounds} kills, {acknowledged} acknowledged appends, {checkpoints} checkpoints: all there");
}
