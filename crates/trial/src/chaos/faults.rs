//! The strikes, carried out: who is killed, stopped or replaced, and what is seen of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::Failure;
use rekindle_domain::time::Clock;
use rekindle_holder::client::inspect_all;
use rekindle_holder::identity::machine_boot;
use rekindle_holder::tree::signal_exactly;
use rekindle_seeded::Rng;
use rustix::process::Signal;

use super::oracle::Sight;
use super::plan::{Fault, Strike};
use super::power_cut;
use super::processes::{HeldAgent, Processes};
use crate::damage::{Kind, harm};
use crate::ground::look::lines;
use crate::ground::{is_alive, kill};

/// How long someone is looked for who could be struck.
const SOMEONE: Duration = Duration::from_millis(600);

/// How long a daemon that is to die at a step has for coming by it.
const COMES_BY: Duration = Duration::from_millis(1500);

/// Steps among which one is chosen to die at.
const STEPS: u64 = 60;

/// What struck, as far as it counts for sessions.
#[derive(Debug, Default)]
pub(super) struct Toll {
    /// Deaths of one session's holder or agent.
    pub(super) own: BTreeMap<String, usize>,
    /// Deaths of everybody.
    pub(super) all: usize,
    pub(super) power_cut: bool,
}

impl Toll {
    pub(super) fn of(&self, session: &str) -> usize {
        self.all + self.own.get(session).copied().unwrap_or(0)
    }
}

/// Strikes; says why not if it could not. A daemon lives when it is over.
pub(super) fn strike(
    processes: &mut Processes,
    strike: &Strike,
    toll: &mut Toll,
) -> Result<Result<(), String>, Failure> {
    let mut rng = Rng::new(strike.pick);
    let gap = |processes: &Processes| processes.cancel.pause(strike.gap_ms);
    match strike.fault {
        Fault::KillDaemon => {
            processes.kill();
            gap(processes);
        }
        Fault::Restart => {
            processes.leave();
            gap(processes);
        }
        Fault::KillHolder | Fault::KillAgent => {
            let wants_agent = strike.fault == Fault::KillAgent;
            let Some(pair) = someone(processes, &mut rng, wants_agent) else {
                return Ok(Err("nobody was there to be killed".into()));
            };
            *toll.own.entry(pair.session).or_default() += 1;
            kill(pair.agent.as_ref().filter(|_| wants_agent).unwrap_or(&pair.holder));
        }
        Fault::KillAll => {
            toll.all += 1;
            processes.kill_all();
            gap(processes);
        }
        Fault::CrashPoint if cfg!(debug_assertions) => crash_at(processes, 1 + rng.below(STEPS)),
        Fault::CrashPoint => return Ok(Err("this build has no steps to die at; a debug build has".into())),
        Fault::SecondDaemon => second_daemon(processes)?,
        Fault::Takeover => takeover(processes),
        Fault::SilentHolder => return silent_holder(processes, strike, &mut rng),
        Fault::Reboot => {
            toll.all += 1;
            processes.kill_all();
            as_if_rebooted(&processes.home);
        }
        Fault::PowerCut => {
            toll.all += 1;
            toll.power_cut = true;
            let moment = SystemClock.now();
            processes.kill_all();
            power_cut::cut(&processes.home, moment, &mut rng)
                .map_err(|error| Failure::failed("power_cut", error))?;
            as_if_rebooted(&processes.home);
        }
        Fault::CachesLost => caches_lost(processes, rng.chance(1, 2))?,
        Fault::DamagedCopy | Fault::LivingCopy | Fault::FullDisk | Fault::FewDescriptors => {
            return Ok(Err("it is not for a home that is in use".into()));
        }
    }
    processes.start();
    Ok(Ok(()))
}

/// Waits for someone to strike, and chooses.
fn someone(processes: &Processes, rng: &mut Rng, wants_agent: bool) -> Option<HeldAgent> {
    let mut pairs = processes.cancel.wait_for(SOMEONE, || {
        let mut pairs = processes.pairs();
        pairs.retain(|pair| !wants_agent || pair.agent.is_some());
        (!pairs.is_empty()).then_some(pairs)
    })?;
    let at = rng.index(pairs.len());
    Some(pairs.swap_remove(at))
}

/// Has a daemon die between two of its effects, if it comes by so many of them.
fn crash_at(processes: &mut Processes, step: u64) {
    processes.kill();
    let place = format!("*#{step}");
    // It may die before it is ready, which is as good.
    if processes.try_start(&[], &[("REKINDLE_CRASH_AT", Path::new(&place))]).is_ok() {
        let _ = processes.cancel.wait_for(COMES_BY, || (!processes.lives()).then_some(()));
    }
    processes.kill();
}

fn second_daemon(processes: &mut Processes) -> Result<(), Failure> {
    if !processes.start() {
        return Ok(());
    }
    let first = processes.daemon().cloned();
    let refused = match processes.try_start(&[], &[]) {
        Err(failure) => failure.code() == "home_in_use",
        Ok(()) => false,
    };
    let first_serves = processes.serves()? && processes.daemon() == first.as_ref();
    processes.sights.push(Sight::SecondDaemon { refused, first_serves });
    Ok(())
}

fn takeover(processes: &mut Processes) {
    if let Some(daemon) = processes.daemon() {
        // One that has died needs no stopping, and is taken over from as well.
        let _ = signal_exactly(daemon, Signal::STOP);
    }
    let old = processes.daemon().cloned();
    if let Err(failure) = processes.try_start(&["--takeover"], &[]) {
        processes.sights.push(Sight::NoDaemon { why: format!("takeover: {}", failure.message()) });
    }
    if let Some(old) = old.filter(|old| Some(old) != processes.daemon()) {
        kill(&old);
    }
}

/// A holder hangs while a daemon starts: it is waited for, neither cut off nor replaced.
fn silent_holder(
    processes: &mut Processes,
    strike: &Strike,
    rng: &mut Rng,
) -> Result<Result<(), String>, Failure> {
    let Some(pair) = someone(processes, rng, true) else {
        return Ok(Err("nobody was there to be stopped".into()));
    };
    let stopped = signal_exactly(&pair.holder, Signal::STOP).unwrap_or(false);
    processes.kill();
    let known = |processes: &Processes| lines(&processes.home, &pair.session).unwrap_or_default();
    let count = |lines: &[String], kind: &str| {
        let kind = format!("\"kind\":\"{kind}\"");
        lines.iter().filter(|line| line.contains(&kind)).count()
    };
    let before = known(processes);
    let healthy = stopped && pair.agent.as_ref().is_some_and(is_alive);
    processes.cancel.pause(strike.gap_ms);
    let started = processes.start();
    if started {
        // It looks at every holder at its start; this one does not answer in the time it gets.
        processes.cancel.pause(500);
    }
    let after = known(processes);
    let still = is_alive(&pair.holder) && pair.agent.as_ref().is_some_and(is_alive);
    let _ = signal_exactly(&pair.holder, Signal::CONT);
    if healthy && started && still {
        let more = |kind: &str| count(&after, kind) > count(&before, kind);
        let sight = Sight::SilentHolder { cut: more("run.interrupted"), replaced: more("agent.launching") };
        processes.sights.push(sight);
    }
    Ok(Ok(()))
}

/// Makes what dead holders left look as if the machine was started again since.
fn as_if_rebooted(home: &Path) {
    let Ok(boot) = machine_boot() else { return };
    let another = boot.replace(char::is_alphanumeric, "0");
    for seen in inspect_all(&home.join("holders")).unwrap_or_default() {
        for file in [seen.dir.launch(), seen.dir.lock()] {
            // Written over in place: the lock's own inode is part of what it says. One that is not there says nothing.
            if let Ok(text) = std::fs::read_to_string(&file) {
                let _ = std::fs::write(&file, text.replace(&boot, &another));
            }
        }
    }
}

/// Everything that can be derived goes; the logs say all of it again.
fn caches_lost(processes: &mut Processes, in_order: bool) -> Result<(), Failure> {
    if in_order {
        processes.leave()
    } else {
        processes.kill()
    }
    let sessions = sessions(&processes.home)?;
    let read = |processes: &Processes| -> Vec<Vec<String>> {
        sessions.iter().map(|session| lines(&processes.home, session).unwrap_or_default()).collect()
    };
    let before = read(processes);
    harm(&processes.home, Kind::DeleteCaches, None, 0).map_err(|error| Failure::failed("caches", error))?;
    if !processes.start() {
        return Ok(());
    }
    let asker = processes.asker()?;
    let shown = |session: &String| asker.get(&format!("/api/sessions/{session}")).is_some();
    let served: Vec<bool> = sessions.iter().map(shown).collect();
    let after = read(processes);
    let kept = before.iter().zip(&after).zip(served);
    let kept = kept.filter(|((before, after), served)| after.starts_with(before) && *served).count();
    processes.sights.push(Sight::CachesLost { sessions: sessions.len(), kept });
    Ok(())
}

/// Lists the sessions of a home by their logs.
pub(super) fn sessions(home: &Path) -> Result<Vec<String>, Failure> {
    let disk = std::sync::Arc::new(rekindle_store::disk::RealDisk);
    let offline = rekindle_store::offline::Offline::open(disk, home)?;
    let sessions = offline.sessions().map_err(|error| Failure::failed("sessions", error))?;
    Ok(sessions.iter().map(ToString::to_string).collect())
}
