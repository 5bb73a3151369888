//! A supervisor that comes back and takes over everything that lives: looks at each directory, connects with a new
//! epoch, is let in. Raw: as many bare processes; a look at each, a connection, and its word that one small record of
//! that is on disk. No directory to read, no proof, no epoch.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rekindle_holder::client::{Control, Keeper, LockState, inspect};
use rekindle_holder::identity::Stat;
use rekindle_holder::wire::Mode;
use rekindle_lab::Process;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, pidfd_open};

use crate::actors;
use crate::context::{Context, progress};
use crate::measure::{interleave, millis};
use crate::rig::{Holder, PATIENCE, Rig, instance};
use crate::table::{Row, Target, Unit};

/// As many at a time as a supervisor looks at.
const THREADS: usize = 16;

/// What the end of a thousand holders may take, in milliseconds.
const END_AT_MOST: f64 = 1_500.0;

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
        let raw = || raw.take_over(threads);
        let [time] = interleave(&what, rounds, raw, || {
            settle(&holders)?;
            epoch += 1;
            ours(&holders, epoch, threads)
        })?;
        // Side by side, a thousand processes and their supervisor share the same processors: told, without a goal.
        let target = if threads == 1 { Target::RatioAtMost(2.0) } else { Target::None };
        rows.push(Row::compared(what, Unit::Millis, &time, target));
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
    rows.push(Row::alone(
        format!("… end {count} holders, 16 at a time"),
        Unit::Millis,
        millis,
        Target::AtMost(END_AT_MOST),
    ));
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
            let launch = seen.launch.there().context("a holder's directory is unreadable")?;
            let control =
                Control::connect_to(&holder.dir, launch, Mode::Control, &instance(epoch), epoch, PATIENCE)?;
            Ok(control)
        })
    });
    ensure!(controls?.len() == holders.len(), "some holders were not taken over");
    Ok([millis])
}

/// Bare processes, each with its socket.
struct Raw {
    processes: Vec<(Process, PathBuf)>,
}

impl Raw {
    fn create(rig: &Rig, count: usize) -> anyhow::Result<Raw> {
        let start = |index: usize| {
            let (socket, file) = (rig.socket(index), rig.path().join(format!("raw-{index}")));
            let mut command = actors::bare_process(&socket, &file)?;
            let mut process = Process::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
            let mut output = process.stdout.take().context("the process has no output")?;
            output.read_exact(&mut [0; 6]).context("a bare process did not begin")?;
            Ok((process, socket))
        };
        Ok(Raw { processes: in_threads(THREADS, count, start)? })
    }

    fn take_over(&self, threads: usize) -> anyhow::Result<[f64; 1]> {
        let (millis, taken) = millis(|| {
            in_threads(threads, self.processes.len(), |index| {
                let (process, socket) = &self.processes[index];
                let pid = process.id() as i32;
                let handle = pidfd_open(Pid::from_raw(pid).context("no pid")?, PidfdFlags::empty())?;
                std::hint::black_box(Stat::read(pid)?.start_ticks);
                let mut stream = UnixStream::connect(socket)?;
                stream.read_exact(&mut [0])?;
                Ok((handle, stream))
            })
        });
        taken?;
        Ok([millis])
    }
}
