//! One round: visitors in their sessions, strikes in between; then rest, where everything is judged, and what strikes a home
//! apart.

use std::path::Path;

use rekindle_client::failure::Failure;
use rekindle_lab::TempHome;
use serde_json::{Value, json};

use super::copied_home::command_a_copy;
use super::damaged_copy::damage_a_copy;
use super::descriptors;
use super::faults::{Toll, strike};
use super::follower::Follower;
use super::full_disk;
use super::ledger::Ledger;
use super::matrix::Matrix;
use super::newest_records::newest_records;
use super::oracle::{Sight, judge_sight};
use super::plan::{Fault, Round, Strike, Visit};
use super::processes::Processes;
use super::retrying_client::{CancelToken, PATIENCE, RetryingClient};
use super::visitor::Visitor;
use crate::ground::look::{agent, doctor};

/// How often it is looked whether the daemon lives and the visitors are done.
const WATCH: u64 = 25;

/// Deaths of daemons that nobody killed, after which there is no point in going on.
const MOST_DEATHS: usize = 2;

/// Where it all happens, and what came of it so far.
pub(super) struct Field<'a> {
    pub(super) ground: &'a TempHome,
    pub(super) processes: Processes,
    pub(super) matrix: Matrix,
    /// Sessions of the round before: they rest, and are removed after this one.
    old: Vec<String>,
}

/// What a visitor comes back with.
pub(super) struct Visited {
    pub(super) id: Option<String>,
    pub(super) ledger: Ledger,
    pub(super) follower: Option<Follower>,
}

impl<'a> Field<'a> {
    pub(super) fn new(ground: &'a TempHome, processes: Processes) -> Field<'a> {
        Field { ground, processes, matrix: Matrix::default(), old: Vec::new() }
    }

    /// Plays a round; `tell` is told what strikes.
    pub(super) fn play(&mut self, round: &Round, tell: &mut dyn FnMut(Fault)) -> Result<(), Failure> {
        self.processes.start();
        let called_off = self.processes.cancel.child();
        let visitors = round.visits.iter().map(|visit| self.visitor(visit, &called_off));
        let visitors = visitors.collect::<Result<Vec<_>, _>>()?;
        let (mut toll, mut witnesses) = (Toll::default(), Vec::new());
        let home = self.ground.home();
        let visited = std::thread::scope(|scope| {
            let threads: Vec<_> =
                visitors.iter().map(|visitor| scope.spawn(|| visit(visitor, &home))).collect();
            let struck = self.strike_all(round, &mut toll, &mut witnesses, tell);
            self.watch_over(&called_off, || threads.iter().all(|thread| thread.is_finished()));
            let visited: Vec<Visited> =
                threads.into_iter().map(|thread| thread.join().expect("a visitor does not panic")).collect();
            struck.map(|()| visited)
        })?;
        if called_off.is_cancelled() {
            self.judge_sights(round.number);
            return Ok(());
        }
        self.rest(round.number, &visited, &toll, &witnesses)?;
        if let Some(strike) = &round.quiet {
            tell(strike.fault);
            self.strike_apart(strike)?;
        }
        self.clear(&visited)?;
        self.judge_sights(round.number);
        Ok(())
    }

    fn visitor<'v>(&self, visit: &'v Visit, cancel: &CancelToken) -> Result<Visitor<'v>, Failure> {
        let (ground, cancel) = (self.ground, cancel.clone());
        let barriers = ground.at("barriers");
        let request = request(ground, &visit.tag, visit.forgetful)?;
        let asker = RetryingClient::new(&self.processes.home, cancel.clone())?;
        Ok(Visitor { asker, cancel, visit, request, barriers })
    }

    /// Sees to it that there is a daemon until all visitors are done. One that dies by itself breaks a promise; if they do so
    /// again and again the visitors are called off.
    fn watch_over(&mut self, called_off: &CancelToken, done: impl Fn() -> bool) {
        let mut deaths = 0;
        while !done() && !called_off.is_cancelled() {
            if !self.processes.lives() {
                deaths += 1;
                self.processes.sights.push(Sight::DiedByItself);
                if deaths > MOST_DEATHS || !self.processes.start() {
                    called_off.cancel();
                }
            }
            self.processes.cancel.pause(WATCH);
        }
    }

    fn strike_all(
        &mut self,
        round: &Round,
        toll: &mut Toll,
        witnesses: &mut Vec<(String, u64, String)>,
        tell: &mut dyn FnMut(Fault),
    ) -> Result<(), Failure> {
        for one in &round.strikes {
            if !self.processes.cancel.pause(one.after_ms) {
                return Ok(());
            }
            tell(one.fault);
            witnesses.extend(newest_records(&self.ground.home()));
            match strike(&mut self.processes, one, toll)? {
                Ok(()) => self.matrix.struck(one.fault),
                Err(why) => self.matrix.skip(one.fault, why),
            }
            self.processes.start();
        }
        Ok(())
    }

    /// Strikes a home apart.
    fn strike_apart(&mut self, strike: &Strike) -> Result<(), Failure> {
        let (home, runtime) = (self.ground.home(), self.ground.runtime());
        let request = request(self.ground, "apart", false)?;
        let struck = match strike.fault {
            Fault::DamagedCopy => {
                // Everybody goes in order: nobody of the copy may be mistaken for somebody who lives.
                self.processes.dismiss()?;
                self.processes.sights.push(Sight::Left { processes: self.ground.living() });
                let copy = self.ground.at("copy");
                damage_a_copy(&home, &copy, runtime, &request, &mut self.processes, strike.pick)?;
                Ok(())
            }
            Fault::LivingCopy => {
                command_a_copy(&home, &self.ground.at("copy"), runtime, &mut self.processes, strike.pick)?
            }
            Fault::FewDescriptors => {
                let (few, told) = (self.ground.at("few"), self.ground.at("told-apart"));
                descriptors::limit(&few, runtime, &request, told, &mut self.processes, strike.pick)?;
                Ok(())
            }
            _ => {
                let (tiny, told) = (self.ground.at("tiny"), self.ground.at("told-apart"));
                full_disk::fill(&tiny, runtime, &request, told, &mut self.processes, strike.pick)?
            }
        };
        match struck {
            Ok(()) => self.matrix.struck(strike.fault),
            Err(why) => self.matrix.skip(strike.fault, why),
        }
        self.processes.start();
        Ok(())
    }

    /// Removes the sessions of the round before, so that a long run needs no more room than a short one.
    fn clear(&mut self, visited: &[Visited]) -> Result<(), Failure> {
        let own = visited.iter().filter_map(|one| one.id.clone()).collect();
        let old = std::mem::replace(&mut self.old, own);
        if old.is_empty() || self.processes.cancel.is_cancelled() {
            return Ok(());
        }
        let asker = self.processes.asker()?;
        for id in &old {
            asker.insist("DELETE", &format!("/api/sessions/{id}?force=1"), None, None);
        }
        let log = |id: &String| self.ground.home().join(format!("sessions/{id}.messages.jsonl"));
        let gone = || old.iter().all(|id| !log(id).exists()).then_some(());
        let _ = self.processes.cancel.wait_for(PATIENCE / 4, gone);
        let left = old.iter().filter(|id| log(id).exists()).count();
        self.processes.sights.push(Sight::Removed { sessions: old.len(), left });
        Ok(())
    }

    /// Ends everybody, and judges what is left.
    pub(super) fn close(&mut self, number: u64) -> Result<(), Failure> {
        self.processes.start();
        self.processes.dismiss()?;
        self.processes.sights.push(Sight::Left { processes: self.ground.living() });
        self.processes.sights.push(Sight::Doctor(doctor(&self.ground.home())?));
        self.judge_sights(number);
        Ok(())
    }

    fn judge_sights(&mut self, number: u64) {
        if self.processes.cancel.is_cancelled() {
            return;
        }
        for sight in std::mem::take(&mut self.processes.sights) {
            self.matrix.take(number, "the home", judge_sight(&sight));
        }
    }
}

fn visit(visitor: &Visitor<'_>, home: &Path) -> Visited {
    let mut ledger = Ledger::default();
    let id = visitor.create(&mut ledger);
    let follower = id.clone().map(|id| {
        let follower = Follower::begin(home.to_owned(), id.clone(), visitor.cancel.clone());
        visitor.stay(&id, &mut ledger);
        follower
    });
    Visited { id, ledger, follower }
}

/// Returns the request for a session, but for its prompt; its title says whose it is.
fn request(ground: &TempHome, tag: &str, forgetful: bool) -> Result<Value, Failure> {
    let barriers = ground.at("barriers").display().to_string();
    let mut more = vec!["--barriers", barriers.as_str()];
    if forgetful {
        more.extend(["--no-load", "--no-resume"]);
    }
    let told = ground.at(&format!("told-{tag}"));
    let command = agent(&ground.at("memory"), &told, &more)?;
    let work = ground.at("work");
    Ok(json!({"title": tag, "working_dir": work, "agent": {"profile": "acp", "command": command}}))
}
