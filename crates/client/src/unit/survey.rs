//! What is the case with a home's service and its holders, and what is to be done about it. Looking is thin; what follows
//! from what was seen is decided without looking again.

use std::path::Path;

use rekindle_holder::client::{Keeper as LockKeeper, LockState, inspect_all};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Manager, Unit, UnitStatus};
use crate::daemon_file::{DaemonState, find_daemon};
use crate::failure::Failure;
use crate::logout::{Facts, Whereabouts, facts_of, group_of};
use crate::problem::Problem;

/// What the unit file is, compared with what would be written today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// There is none.
    Missing,
    /// It says the same.
    Current,
    /// It says something else.
    Outdated,
}

/// A holder that lives, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderAt {
    pub id: String,
    pub pid: Option<i32>,
    pub cgroup: Option<String>,
    pub at: Whereabouts,
}

/// Everything that was seen.
#[derive(Debug, Clone)]
pub struct Survey {
    /// The unit's name.
    pub unit: String,
    /// Its file.
    pub path: std::path::PathBuf,
    /// How the file is.
    pub file: FileState,
    /// What the manager knows of the unit, or why there is no manager.
    pub manager: Result<UnitStatus, Problem>,
    /// The home's daemon.
    pub daemon: Option<u32>,
    /// The machine, and the daemon's control group, or that of whoever would start it.
    pub facts: Facts,
    /// Where holders are.
    pub holders: Vec<HolderAt>,
}

impl Survey {
    /// Looks at everything; changes nothing.
    pub fn of(home: &Path) -> Result<Survey, Failure> {
        let unit = Unit::of(home)?;
        let daemon = match find_daemon(home) {
            DaemonState::Lives(place) | DaemonState::Cut(place) | DaemonState::Unproven(place) => {
                Some(place.pid)
            }
            DaemonState::Leaves | DaemonState::Died | DaemonState::None => None,
        };
        let facts = facts_of(daemon);
        let manager = match Manager::find(&facts) {
            Ok(manager) => Ok(manager.status(&unit.name)?),
            Err(problem) => Err(problem),
        };
        let file = unit.file_state()?;
        let holders = holders(home, &unit.name);
        Ok(Survey { unit: unit.name, path: unit.path, file, manager, daemon, facts, holders })
    }

    /// Tells whether the daemon is the service's.
    pub fn is_daemon_ours(&self) -> bool {
        let main = self.manager.as_ref().ok().and_then(|shown| shown.main_pid);
        self.daemon.is_some() && main == self.daemon
    }

    /// Says where agents run, and what that means here: once for all that run in the same place.
    pub fn places(&self) -> Vec<String> {
        let mut counts: Vec<(&Whereabouts, u64)> = Vec::new();
        for holder in &self.holders {
            match counts.iter_mut().find(|(at, _)| **at == holder.at) {
                Some((_, count)) => *count += 1,
                None => counts.push((&holder.at, 1)),
            }
        }
        let (kills_logins, service_kills) = (self.facts.kills_logins, self.ends_everyone());
        counts.into_iter().map(|(at, count)| at.text(count, kills_logins, service_kills)).collect()
    }

    /// Tells whether whoever stops the service ends everyone in its group.
    fn ends_everyone(&self) -> bool {
        self.manager.as_ref().is_ok_and(UnitStatus::ends_everyone)
    }

    /// Returns what is not as it should be.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        match &self.manager {
            Err(absent) => problems.push(absent.clone()),
            Ok(shown) => self.unit_problems(shown, &mut problems),
        }
        if self.facts.systemd && !self.facts.lingers {
            let what = "lingering is not enabled: your service manager ends with your last login, and daemon and agents \
                        with it; after a restart of the machine the daemon starts only at your next login";
            problems.push(Problem::new("no_linger", what, "loginctl enable-linger"));
        }
        let ends = |holder: &&HolderAt| matches!(holder.at, Whereabouts::Login(_));
        let at_logout = self.holders.iter().filter(ends).count();
        if self.facts.kills_logins && at_logout > 0 {
            let what = format!(
                "{at_logout} of the agents belong to a login and end with it (KillUserProcesses=yes): \
                 they were started before the service was installed"
            );
            let remedy = "let them finish before you log out; new ones do not end at a logout";
            problems.push(Problem::new("ends_with_login", what, remedy));
        }
        problems
    }

    /// Adds what is wrong with the unit, as the manager shows it.
    fn unit_problems(&self, shown: &UnitStatus, problems: &mut Vec<Problem>) {
        let (name, path) = (&self.unit, self.path.display());
        let mut add = |code, what: String, remedy: &str| problems.push(Problem::new(code, what, remedy));
        if self.file == FileState::Missing {
            return add("not_installed", format!("{name} is not installed"), "rekindle service install");
        }
        if self.file == FileState::Outdated {
            let what = format!("{path} differs from what this version writes");
            add("outdated", what, "rekindle service install shows the changes and makes them");
        } else if shown.needs_reload || !shown.loaded {
            let what = format!("your service manager has not read the current {path}");
            add("not_reloaded", what, "systemctl --user daemon-reload");
        }
        if shown.enabled != "enabled" {
            let what = format!("{name} does not start automatically: it is not enabled");
            add("not_enabled", what, &format!("systemctl --user enable {name}"));
        }
        if shown.ends_everyone() {
            let what = format!(
                "{name} has KillMode={}: stopping it also ends the agents in its control group, those \
                 without a scope of their own",
                shown.kill_mode
            );
            let remedy = format!("systemctl --user cat {name} shows which file sets it: remove it there");
            add("kill_mode", what, &remedy);
        }
        match (self.daemon, shown.main_pid) {
            (Some(daemon), main) if main != Some(daemon) => {
                let what = format!("the daemon (process {daemon}) runs outside the service");
                add(
                    "daemon_outside",
                    what,
                    "rekindle restart moves it into the service; agents keep working",
                );
            }
            (None, None) => {
                let remedy =
                    format!("rekindle restart starts it; journalctl --user -u {name} has its output");
                add("not_active", format!("no daemon runs: {name} is {}", shown.active), &remedy);
            }
            _ => {}
        }
    }

    /// Says what becomes of daemon and agents when the daemon is stopped, at a logout, and at a restart of the machine.
    pub fn outlook(&self) -> [(&'static str, String); 3] {
        let facts = &self.facts;
        let other = self.holders.iter().find_map(|holder| match &holder.at {
            Whereabouts::Unit(unit) => Some(unit),
            _ => None,
        });
        let in_service = self.holders.iter().any(|holder| holder.at == Whereabouts::Service);
        let stop = match other {
            _ if in_service && self.ends_everyone() => {
                "the daemon stops, and agents in the service's control group end with it, because of its KillMode"
                    .into()
            }
            Some(unit) => {
                format!("the daemon stops, agents keep working; those in {unit} end if that is stopped")
            }
            None => "the daemon stops, agents keep working".into(),
        };
        let logout = match (facts.systemd, facts.lingers, facts.container) {
            (true, true, _) => "daemon and agents keep working: lingering is enabled",
            (true, false, _) => {
                "daemon and agents end with your last login, because lingering is not \
                                 enabled: loginctl enable-linger enables it"
            }
            (false, _, true) => "a logout ends nothing; everything ends with the container",
            (false, _, false) => "a logout ends nothing, as far as is known",
        };
        let reboot = match (
            self.manager.is_ok() && self.file != FileState::Missing,
            facts.lingers || !facts.systemd,
        ) {
            (true, true) => {
                "agents end; the daemon starts with the machine and continues what was interrupted"
            }
            (true, false) => {
                "agents end; the daemon starts with your next login and continues what was interrupted"
            }
            (false, _) => {
                "agents end; the next daemon continues what was interrupted, but nothing starts it automatically"
            }
        };
        [("stop", stop), ("logout", logout.into()), ("reboot", reboot.into())]
    }

    /// Returns it for programs.
    pub fn to_json(&self) -> Value {
        let shown = self.manager.as_ref().ok();
        let holders = self.holders.iter().map(|holder| {
            json!({"id": holder.id, "pid": holder.pid, "cgroup": holder.cgroup, "in": holder.at.code()})
        });
        let outlook: serde_json::Map<_, _> =
            self.outlook().into_iter().map(|(when, words)| (when.to_owned(), words.into())).collect();
        json!({
            "unit": self.unit,
            "path": self.path.to_string_lossy(),
            "file": self.file,
            "manager": self.manager.as_ref().err().map_or("reachable", |problem| problem.code),
            "enabled": shown.map(|shown| shown.enabled == "enabled"),
            "active": shown.map(|shown| shown.active.as_str()),
            "kill_mode": shown.map(|shown| shown.kill_mode.as_str()),
            "main_pid": shown.and_then(|shown| shown.main_pid),
            "daemon_pid": self.daemon,
            "daemon_in_service": self.is_daemon_ours(),
            "daemon_cgroup": self.daemon.map(|_| self.facts.cgroup.as_str()),
            "lingers": self.facts.lingers,
            "kill_user_processes": self.facts.kills_logins,
            "container": self.facts.container,
            "holders": holders.collect::<Vec<_>>(),
            "outlook": outlook,
            "to_do": self.problems(),
        })
    }
}

/// Returns the holders of a home that live, and where they are.
fn holders(home: &Path, service: &str) -> Vec<HolderAt> {
    let found = inspect_all(&home.join("holders")).unwrap_or_default();
    let alive = found.into_iter().filter_map(|seen| match seen.lock {
        LockState::Held { note, by: LockKeeper::Holder } => {
            let pid = note.map(|note| note.process.pid);
            let cgroup = pid.and_then(group_of);
            let at = Whereabouts::of(cgroup.as_deref(), &seen.holder_id, service);
            Some(HolderAt { id: seen.holder_id, pid, cgroup, at })
        }
        _ => None,
    });
    alive.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Survey {
        let shown = UnitStatus {
            loaded: true,
            active: "active".into(),
            enabled: "enabled".into(),
            main_pid: Some(7),
            needs_reload: false,
            kill_mode: "process".into(),
        };
        Survey {
            unit: "rekindle.service".into(),
            path: "/c/rekindle.service".into(),
            file: FileState::Current,
            manager: Ok(shown),
            daemon: Some(7),
            facts: Facts { systemd: true, lingers: true, ..Facts::default() },
            holders: Vec::new(),
        }
    }

    fn codes(survey: &Survey) -> Vec<&'static str> {
        survey.problems().iter().map(|one| one.code).collect()
    }

    #[test]
    fn what_is_good_needs_nothing_and_each_thing_that_is_not_is_told() {
        assert!(codes(&good()).is_empty() && good().is_daemon_ours());
        type Change = fn(&mut Survey);
        fn shown(survey: &mut Survey) -> &mut UnitStatus {
            survey.manager.as_mut().expect("a manager")
        }
        let cases: [(Change, &[&str]); 10] = [
            (|survey| survey.file = FileState::Missing, &["not_installed"]),
            (|survey| survey.file = FileState::Outdated, &["outdated"]),
            (|survey| shown(survey).needs_reload = true, &["not_reloaded"]),
            (|survey| shown(survey).enabled = "disabled".into(), &["not_enabled"]),
            (|survey| shown(survey).kill_mode = "control-group".into(), &["kill_mode"]),
            (|survey| survey.daemon = Some(8), &["daemon_outside"]),
            (|survey| shown(survey).main_pid = None, &["daemon_outside"]),
            (
                |survey| {
                    survey.daemon = None;
                    shown(survey).main_pid = None;
                },
                &["not_active"],
            ),
            (|survey| survey.facts.lingers = false, &["no_linger"]),
            (|survey| survey.manager = Err(Problem::new("container", "", "")), &["container"]),
        ];
        for (change, expected) in cases {
            let mut survey = good();
            change(&mut survey);
            assert_eq!(codes(&survey), expected);
        }
    }

    #[test]
    fn agents_that_belong_to_a_login_are_told_only_where_it_ends_them() {
        let mut survey = good();
        let at = Whereabouts::Login("session-3.scope".into());
        survey.holders.push(HolderAt { id: "h_1".into(), pid: Some(9), cgroup: None, at });
        assert!(codes(&survey).is_empty());
        survey.facts.kills_logins = true;
        assert_eq!(codes(&survey), ["ends_with_login"]);
        let outside = HolderAt { id: "h_2".into(), pid: None, cgroup: None, at: Whereabouts::NoUnit };
        survey.holders.extend([outside.clone(), HolderAt { id: "h_3".into(), ..outside }]);
        let places = survey.places();
        assert_eq!(places.len(), 2, "a place is told once: {places:?}");
        assert!(places[1].starts_with("2 agents run outside systemd"), "{places:?}");
    }

    #[test]
    fn what_is_to_come_depends_on_lingering() {
        let [_, logout, reboot] = good().outlook();
        assert!(logout.1.contains("keep working") && reboot.1.contains("with the machine"));
        let mut survey = good();
        survey.facts.lingers = false;
        let [_, logout, reboot] = survey.outlook();
        assert!(logout.1.contains("loginctl enable-linger") && reboot.1.contains("next login"));
        survey.file = FileState::Missing;
        assert!(survey.outlook()[2].1.contains("nothing starts it"));
    }
}
