//! A supervisor that comes back and takes over everything that lives: looks at each directory, connects with a new
//! epoch, is let in. Raw: a look at each process, a bare connection, and one sync of a small file for each.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rekindle_holder::client::{Control, Keeper, LockState, inspect};
use rekindle_holder::identity::Stat;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, pidfd_open};

use crate::context::{Context, progress};
use crate::measure::{interleave, millis};
use crate::rig::{Holder, PATIENCE, Rig};
use crate::table::{Row, Target, Unit};

/// As many at a time as a supervisor looks at.
const THREADS: usize = 16;

/// What a holder writes when someone takes command, about.
const RECORD: [u8; 120] = [b'x'; 120];

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (count, rounds) = context.pick((1_000, 5), (100, 3));
    allow_files(4 * count as u64 + 100);
    let rig = Rig::new(context)?;
    let raw = Raw::create(&rig, count)?;
    progress(&format!("starting {count} holders"));
    let holders = in_threads(THREADS, count, |_| {
        let (holder, commander) = rig.hold()?;
        drop(commander);
        Ok(holder)
    })?;
    let mut epoch = 1;
    let mut rows = Vec::new();
    for (threads, how) in [(1, "one by one"), (THREADS, "16 at a time")] {
        let what = format!("take over {count} holders, {how}");
        let raw = || raw.look(&holders, threads);
        let [time] = interleave(&what, rounds, raw, || {
            settle(&holders)?;
            epoch += 1;
            ours(&holders, epoch, threads)
        })?;
        rows.push(Row::compared(what, Unit::Millis, &time, Target::RatioAtMost(2.0)));
    }
    settle(&holders)?;
    progress(&format!("ending {count} holders"));
    epoch += 1;
    let controls = in_threads(THREADS, count, |index| holders[index].connect(epoch))?;
    let pairs: Vec<_> =
        holders.into_iter().zip(controls).map(|pair| std::sync::Mutex::new(Some(pair))).collect();
    let (millis, ended) = millis(|| {
        in_threads(THREADS, count, |index| {
            let pair = pairs[index].lock().ok().and_then(|mut pair| pair.take());
            pair.map_or(Ok(()), |(holder, control)| holder.end(control))
        })
    });
    ended?;
    rows.push(Row::alone(format!("… end {count} holders, 16 at a time"), Unit::Millis, millis, Target::None));
    Ok(rows)
}

/// Lets this process have so many files open, if it may.
fn allow_files(count: u64) {
    let Rlimit { current, maximum } = rustix::process::getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < count) {
        let current = Some(maximum.map_or(count, |most| most.min(count)));
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
}

/// Does something for each number below `count`, so many at a time; the results are in order.
fn in_threads<T: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let one = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(done);
            }
            match work(index) {
                Ok(result) => done.push((index, result)),
                Err(error) => {
                    next.store(count, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(one)).collect();
        let mut all = one();
        for other in others {
            let found = other.join().expect("a worker does not panic");
            all = all.and_then(|mut all| {
                all.extend(found?);
                Ok(all)
            });
        }
        all
    })?;
    all.sort_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

/// Waits until every holder has noticed that nobody commands it, and has written that down.
fn settle(holders: &[Holder]) -> anyhow::Result<()> {
    let begin = Instant::now();
    for holder in holders {
        let alone =
            || inspect(&holder.dir).status.there().is_some_and(|status| status.detached_since.is_some());
        while !alone() {
            ensure!(begin.elapsed() < PATIENCE, "a holder does not notice that it is alone");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(())
}

/// Takes over all holders, and lets go of them when that is done and timed.
fn ours(holders: &[Holder], epoch: u64, threads: usize) -> anyhow::Result<[f64; 1]> {
    let (millis, controls) = millis(|| {
        in_threads(threads, holders.len(), |index| -> anyhow::Result<Control> {
            let holder = &holders[index];
            let seen = inspect(&holder.dir);
            let lives = matches!(seen.lock, LockState::Held { by: Keeper::Holder, .. });
            ensure!(lives, "a holder has ended: {:?}", seen.exit);
            holder.connect(epoch)
        })
    });
    ensure!(controls?.len() == holders.len(), "some holders were not taken over");
    Ok([millis])
}

/// A socket to connect to, and a file for each holder.
struct Raw {
    socket: PathBuf,
    listener: UnixListener,
    files: Vec<File>,
}

impl Raw {
    fn create(rig: &Rig, count: usize) -> anyhow::Result<Raw> {
        let socket = rig.socket();
        let listener = UnixListener::bind(&socket).context("cannot make the raw socket")?;
        let make = |index: usize| -> anyhow::Result<File> {
            let path = rig.path().join(format!("raw-{index}"));
            let mut file = OpenOptions::new().create(true).append(true).open(path)?;
            file.write_all(&RECORD)?;
            Ok(file)
        };
        let files = (0..count).map(make).collect::<anyhow::Result<Vec<File>>>()?;
        rustix::fs::sync();
        Ok(Raw { socket, listener, files })
    }

    fn look(&self, holders: &[Holder], threads: usize) -> anyhow::Result<[f64; 1]> {
        let (millis, looked) = millis(|| {
            in_threads(threads, holders.len(), |index| {
                let pid = holders[index].id() as i32;
                let process = Pid::from_raw(pid).context("no pid")?;
                let process = pidfd_open(process, PidfdFlags::empty())?;
                std::hint::black_box((process, Stat::read(pid)?.start_ticks));
                let ours = UnixStream::connect(&self.socket)?;
                let (theirs, _) = self.listener.accept()?;
                (&self.files[index]).write_all(&RECORD)?;
                self.files[index].sync_data()?;
                Ok((ours, theirs))
            })
        });
        looked?;
        Ok([millis])
    }
}
