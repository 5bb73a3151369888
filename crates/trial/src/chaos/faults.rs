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
use super::power;
use super::troupe::{Pair, Troupe};
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
    troupe: &mut Troupe,
    strike: &Strike,
    toll: &mut Toll,
) -> Result<Result<(), String>, Failure> {
    let mut rng = Rng::new(strike.pick);
    let gap = |troupe: &Troupe| troupe.leaving.pause(strike.gap_ms);
    match strike.fault {
        Fault::KillDaemon => {
            troupe.kill();
            gap(troupe);
        }
        Fault::Restart => {
            troupe.leave();
            gap(troupe);
        }
        Fault::KillHolder | Fault::KillAgent => {
            let wants_agent = strike.fault == Fault::KillAgent;
            let Some(pair) = someone(troupe, &mut rng, wants_agent) else {
                return Ok(Err("nobody was there to be killed".into()));
            };
            *toll.own.entry(pair.session).or_default() += 1;
            kill(pair.agent.as_ref().filter(|_| wants_agent).unwrap_or(&pair.holder));
        }
        Fault::KillAll => {
            toll.all += 1;
            troupe.kill_all();
            gap(troupe);
        }
        Fault::CrashPoint if cfg!(debug_assertions) => crash_at(troupe, 1 + rng.below(STEPS)),
        Fault::CrashPoint => return Ok(Err("this build has no steps to die at; a debug build has".into())),
        Fault::SecondDaemon => second_daemon(troupe)?,
        Fault::Takeover => takeover(troupe),
        Fault::SilentHolder => return silent_holder(troupe, strike, &mut rng),
        Fault::Reboot => {
            toll.all += 1;
            troupe.kill_all();
            as_if_rebooted(&troupe.home);
        }
        Fault::PowerCut => {
            toll.all += 1;
            toll.power_cut = true;
            let moment = SystemClock.now();
            troupe.kill_all();
            power::cut(&troupe.home, moment, &mut rng)
                .map_err(|error| Failure::failed("power_cut", error))?;
            as_if_rebooted(&troupe.home);
        }
        Fault::CachesLost => caches_lost(troupe, rng.chance(1, 2))?,
        Fault::DamagedCopy | Fault::LivingCopy | Fault::FullDisk | Fault::FewDescriptors => {
            return Ok(Err("it is not for a home that is in use".into()));
        }
    }
    troupe.start();
    Ok(Ok(()))
}

/// Waits for someone to strike, and chooses.
fn someone(troupe: &Troupe, rng: &mut Rng, wants_agent: bool) -> Option<Pair> {
    let mut pairs = troupe.leaving.wait_for(SOMEONE, || {
        let mut pairs = troupe.pairs();
        pairs.retain(|pair| !wants_agent || pair.agent.is_some());
        (!pairs.is_empty()).then_some(pairs)
    })?;
    let at = rng.index(pairs.len());
    Some(pairs.swap_remove(at))
}

/// Has a daemon die between two of its effects, if it comes by so many of them.
fn crash_at(troupe: &mut Troupe, step: u64) {
    troupe.kill();
    let place = format!("*#{step}");
    // It may die before it is ready, which is as good.
    if troupe.try_start(&[], &[("REKINDLE_CRASH_AT", Path::new(&place))]).is_ok() {
        let _ = troupe.leaving.wait_for(COMES_BY, || (!troupe.lives()).then_some(()));
    }
    troupe.kill();
}

fn second_daemon(troupe: &mut Troupe) -> Result<(), Failure> {
    if !troupe.start() {
        return Ok(());
    }
    let first = troupe.daemon().cloned();
    let refused = match troupe.try_start(&[], &[]) {
        Err(failure) => failure.code() == "home_in_use",
        Ok(()) => false,
    };
    let first_serves = troupe.serves()? && troupe.daemon() == first.as_ref();
    troupe.sights.push(Sight::SecondDaemon { refused, first_serves });
    Ok(())
}

fn takeover(troupe: &mut Troupe) {
    if let Some(daemon) = troupe.daemon() {
        // One that has died needs no stopping, and is taken over from as well.
        let _ = signal_exactly(daemon, Signal::STOP);
    }
    let old = troupe.daemon().cloned();
    if let Err(failure) = troupe.try_start(&["--takeover"], &[]) {
        troupe.sights.push(Sight::NoDaemon { why: format!("takeover: {}", failure.message()) });
    }
    if let Some(old) = old.filter(|old| Some(old) != troupe.daemon()) {
        kill(&old);
    }
}

/// A holder hangs while a daemon starts: it is waited for, neither cut off nor replaced.
fn silent_holder(troupe: &mut Troupe, strike: &Strike, rng: &mut Rng) -> Result<Result<(), String>, Failure> {
    let Some(pair) = someone(troupe, rng, true) else {
        return Ok(Err("nobody was there to be stopped".into()));
    };
    let stopped = signal_exactly(&pair.holder, Signal::STOP).unwrap_or(false);
    troupe.kill();
    let known = |troupe: &Troupe| lines(&troupe.home, &pair.session).unwrap_or_default();
    let count = |lines: &[String], kind: &str| {
        let kind = format!("\"kind\":\"{kind}\"");
        lines.iter().filter(|line| line.contains(&kind)).count()
    };
    let before = known(troupe);
    let healthy = stopped && pair.agent.as_ref().is_some_and(is_alive);
    troupe.leaving.pause(strike.gap_ms);
    let started = troupe.start();
    if started {
        // It looks at every holder at its start; this one does not answer in the time it gets.
        troupe.leaving.pause(500);
    }
    let after = known(troupe);
    let still = is_alive(&pair.holder) && pair.agent.as_ref().is_some_and(is_alive);
    let _ = signal_exactly(&pair.holder, Signal::CONT);
    if healthy && started && still {
        let more = |kind: &str| count(&after, kind) > count(&before, kind);
        let sight = Sight::SilentHolder { cut: more("run.interrupted"), replaced: more("agent.launching") };
        troupe.sights.push(sight);
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
fn caches_lost(troupe: &mut Troupe, in_order: bool) -> Result<(), Failure> {
    if in_order {
        troupe.leave()
    } else {
        troupe.kill()
    }
    let sessions = sessions(&troupe.home)?;
    let read = |troupe: &Troupe| -> Vec<Vec<String>> {
        sessions.iter().map(|session| lines(&troupe.home, session).unwrap_or_default()).collect()
    };
    let before = read(troupe);
    harm(&troupe.home, Kind::DeleteCaches, None, 0).map_err(|error| Failure::failed("caches", error))?;
    if !troupe.start() {
        return Ok(());
    }
    let asker = troupe.asker()?;
    let shown = |session: &String| asker.get(&format!("/api/sessions/{session}")).is_some();
    let served: Vec<bool> = sessions.iter().map(shown).collect();
    let after = read(troupe);
    let kept = before.iter().zip(&after).zip(served);
    let kept = kept.filter(|((before, after), served)| after.starts_with(before) && *served).count();
    troupe.sights.push(Sight::CachesLost { sessions: sessions.len(), kept });
    Ok(())
}

/// Lists the sessions of a home by their logs.
pub(super) fn sessions(home: &Path) -> Result<Vec<String>, Failure> {
    let disk = std::sync::Arc::new(rekindle_store::disk::RealDisk);
    let offline = rekindle_store::offline::Offline::open(disk, home)?;
    let sessions = offline.sessions().map_err(|error| Failure::failed("sessions", error))?;
    Ok(sessions.iter().map(ToString::to_string).collect())
}
