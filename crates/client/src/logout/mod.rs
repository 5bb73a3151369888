//! Whether agents outlive whoever logs out. Nothing of ours can keep a process alive that the machine is told to end
//! with a login: people are told so before it happens. The decision is pure; what it is made from is in `facts`.

mod facts;
mod whereabouts;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

pub use facts::{facts_of, group_of};
pub use whereabouts::{Keeper, Whereabouts, keeper};

use rekindle_terminal::output;

use crate::problem::Problem;

/// What is known of the place where agents run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The machine's first process is systemd.
    pub systemd: bool,
    /// This is a container.
    pub container: bool,
    /// The user's services stay when nobody is logged in.
    pub lingers: bool,
    /// What belongs to a login is ended with it.
    pub kills_logins: bool,
    /// The control group of the daemon, or of whoever would start it.
    pub cgroup: String,
}

/// Says what would end agents although nobody does anything to them, if anything would.
pub fn danger(facts: &Facts) -> Option<Problem> {
    let login = Problem::new(
        "ends_with_login",
        "this machine ends your processes when you log out (KillUserProcesses=yes), agents included",
        "run loginctl enable-linger, then rekindle service \
         install: what is started from then on survives a logout",
    );
    let last_login = Problem::new(
        "ends_with_last_login",
        "your services end with your last login, and agents with them: lingering is not enabled",
        "loginctl enable-linger",
    );
    let container = Problem::new(
        "ends_with_container",
        "this is a container: when its first process ends, every agent ends with it",
        "keep the container's first process running for as long as agents work, and the home on a volume: \
         what was interrupted continues from there",
    );
    match keeper(&facts.cgroup) {
        _ if !facts.systemd => facts.container.then_some(container),
        Keeper::Login => facts.kills_logins.then_some(login),
        Keeper::Manager => (!facts.lingers).then_some(last_login),
        Keeper::Another => None,
    }
}

/// Decides whether a holder lives longer in a scope of the user's service manager than beside its daemon: that manager
/// ends with the last login of a user who does not linger, and what a login has left behind may not.
pub fn scopes_are_safer(facts: &Facts) -> bool {
    let manager_stays = !facts.systemd || facts.lingers;
    manager_stays
        || match keeper(&facts.cgroup) {
            Keeper::Login => facts.kills_logins,
            Keeper::Manager => true,
            Keeper::Another => false,
        }
}

/// Says what would end agents, once for each home: to a person, who may do something about it.
pub fn warn_once(home: &Path, daemon: u32) {
    let Some(Problem { code, what, remedy }) = danger(&facts_of(Some(daemon))) else { return };
    // Beside the daemon's log; in the home itself only what belongs there is welcome.
    let logs = home.join("logs");
    let told = logs.join("logout-told");
    if fs::read(&told).is_ok_and(|before| before == code.as_bytes()) {
        return;
    }
    // What cannot be written down is told again.
    let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(&logs);
    let _ = note(&told, code);
    let width = output::stderr_width().unwrap_or(usize::MAX);
    for (word, text) in [("warning:", what), ("hint:", remedy)] {
        anstream::eprintln!("{}", output::wrap(&format!("{word} {text}"), width, "", "  "));
    }
}

fn note(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_agents_when_someone_logs_out() {
        let login = "/user.slice/user-1000.slice/session-3.scope";
        let service = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-terminal.scope";
        let machine = Facts { systemd: true, ..Facts::default() };
        let at = |cgroup: &str, kills_logins: bool, lingers: bool| Facts {
            cgroup: cgroup.into(),
            kills_logins,
            lingers,
            ..machine.clone()
        };
        let container = Facts { container: true, ..Facts::default() };
        for (facts, expected) in [
            (at(login, true, false), Some("ends_with_login")),
            (at(login, true, true), Some("ends_with_login")),
            (at(login, false, false), None),
            (at(login, false, true), None),
            (at(service, false, false), Some("ends_with_last_login")),
            (at(service, true, false), Some("ends_with_last_login")),
            (at(service, false, true), None),
            (at(service, true, true), None),
            (at("/system.slice/rekindle.service", true, false), None),
            (at("/", true, false), None),
            (at("", true, false), None),
            (container.clone(), Some("ends_with_container")),
            (Facts { cgroup: login.into(), kills_logins: true, ..Facts::default() }, None),
            (Facts { systemd: true, cgroup: "/".into(), ..container.clone() }, None),
            (Facts { container: true, ..at(login, true, false) }, Some("ends_with_login")),
            (Facts::default(), None),
        ] {
            assert_eq!(danger(&facts).map(|danger| danger.code), expected, "{facts:?}");
        }
    }

    #[test]
    fn holders_are_moved_only_to_where_they_live_longer() {
        let login = "/user.slice/user-1000.slice/session-3.scope";
        let service = "/user.slice/user-1000.slice/user@1000.service/app.slice/rekindle.service";
        for (systemd, lingers, kills_logins, cgroup, expected) in [
            (true, false, false, login, false),
            (true, false, true, login, true),
            (true, true, false, login, true),
            (true, false, false, service, true),
            (true, false, false, "/system.slice/ci.service", false),
            (true, true, false, "/system.slice/ci.service", true),
            (false, false, false, "/", true),
        ] {
            let cgroup = cgroup.to_owned();
            let facts = Facts { systemd, lingers, kills_logins, cgroup, ..Facts::default() };
            assert_eq!(scopes_are_safer(&facts), expected, "{facts:?}");
        }
    }
}
