//! To whom a process belongs, by its control group, and with whom it therefore ends. Pure.

use rekindle_holder::client::scope_name;
use rekindle_terminal::output::plural;

/// Who keeps what is in a control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeper {
    /// A login.
    Login,
    /// The user's own service manager.
    Manager,
    /// Someone else, or nobody.
    Another,
}

/// Returns who keeps what is in a control group.
pub fn keeper(cgroup: &str) -> Keeper {
    let within = |what: fn(&str) -> bool| cgroup.split('/').any(what);
    if within(|unit| unit.starts_with("session-") && unit.ends_with(".scope")) {
        Keeper::Login
    } else if within(|unit| unit.starts_with("user@") && unit.ends_with(".service")) {
        Keeper::Manager
    } else {
        Keeper::Another
    }
}

/// Where a holder is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whereabouts {
    /// In a scope of its own.
    OwnScope,
    /// In the group of the daemon's service, which ends its main process only.
    Service,
    /// In the group of a login.
    Login(String),
    /// In the group of some other unit.
    Unit(String),
    /// In no unit's group.
    NoUnit,
    /// Nobody can tell.
    Unknown,
}

impl Whereabouts {
    /// Decides where a holder is, by its control group.
    pub fn of(cgroup: Option<&str>, holder_id: &str, service: &str) -> Whereabouts {
        let Some(cgroup) = cgroup else { return Whereabouts::Unknown };
        let own = scope_name(holder_id);
        let mut units = cgroup.split('/').filter(|one| one.ends_with(".scope") || one.ends_with(".service"));
        match units.next_back() {
            Some(unit) if unit == own => Whereabouts::OwnScope,
            Some(unit) if unit == service => Whereabouts::Service,
            Some(unit) if keeper(cgroup) == Keeper::Login => Whereabouts::Login(unit.to_owned()),
            Some(unit) => Whereabouts::Unit(unit.to_owned()),
            None => Whereabouts::NoUnit,
        }
    }

    /// Returns a word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Whereabouts::OwnScope => "own_scope",
            Whereabouts::Service => "service",
            Whereabouts::Login(_) => "login",
            Whereabouts::Unit(_) => "unit",
            Whereabouts::NoUnit => "none",
            Whereabouts::Unknown => "unknown",
        }
    }

    /// Says where so many agents run, and what therefore stops them: logins and the daemon's service may stop everyone in their group or
    /// not.
    pub fn text(&self, count: u64, kills_logins: bool, service_kills: bool) -> String {
        let (agents, run, them) = match count {
            1 => ("1 agent".to_owned(), "runs", "it"),
            _ => (plural(count, "agent"), "run", "them"),
        };
        let what = match self {
            Whereabouts::OwnScope => {
                let scopes = if count == 1 { "a scope of its own" } else { "scopes of their own" };
                format!("in {scopes}; stopping the daemon does not stop {them}")
            }
            Whereabouts::Service if service_kills => {
                format!("in the service's group; stopping the service stops {them}, because of its KillMode")
            }
            Whereabouts::Service => {
                format!(
                    "in the service's group; stopping the service does not stop {them} (KillMode=process)"
                )
            }
            Whereabouts::Login(unit) if kills_logins => format!("in {unit}; logging out stops {them}"),
            Whereabouts::Login(unit) => {
                format!("in {unit}; logging out does not stop {them} (KillUserProcesses=no)")
            }
            Whereabouts::Unit(unit) => {
                format!("in {unit}; stopping that stops {them}, unless it has KillMode=process")
            }
            Whereabouts::NoUnit => format!("outside systemd; logging out does not stop {them}"),
            Whereabouts::Unknown => {
                format!("in a control group that cannot be read; what stops {them} is not known")
            }
        };
        format!("{agents} {run} {what}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_somewhere() {
        let manager = "/user.slice/user-1000.slice/user@1000.service";
        let login = "/user.slice/user-1000.slice/session-3.scope";
        for (cgroup, expected) in [
            (format!("{manager}/app.slice/rekindle-h_1.scope"), Whereabouts::OwnScope),
            (
                format!("{manager}/app.slice/rekindle-h_2.scope"),
                Whereabouts::Unit("rekindle-h_2.scope".into()),
            ),
            (format!("{manager}/app.slice/rekindle.service"), Whereabouts::Service),
            (format!("{manager}/app.slice/rekindle.service/rekindle-h_1"), Whereabouts::Service),
            (format!("{manager}/app.slice/term.scope"), Whereabouts::Unit("term.scope".into())),
            (format!("{manager}/init.scope"), Whereabouts::Unit("init.scope".into())),
            (login.into(), Whereabouts::Login("session-3.scope".into())),
            ("/system.slice/ci.service".into(), Whereabouts::Unit("ci.service".into())),
            ("/".into(), Whereabouts::NoUnit),
            ("/docker/0a1b".into(), Whereabouts::NoUnit),
        ] {
            assert_eq!(Whereabouts::of(Some(&cgroup), "h_1", "rekindle.service"), expected, "{cgroup}");
        }
        assert_eq!(Whereabouts::of(None, "h_1", "rekindle.service"), Whereabouts::Unknown);
        let login = Whereabouts::Login("s".into());
        assert_eq!(login.text(1, true, false), "1 agent runs in s; logging out stops it");
        assert!(login.text(1, false, false).contains("does not stop"));
        assert!(Whereabouts::Service.text(2, false, true).contains("stopping the service stops them"));
        assert!(Whereabouts::Service.text(2, false, false).contains("does not stop them"));
        let outside = "15 agents run outside systemd; logging out does not stop them";
        assert_eq!(Whereabouts::NoUnit.text(15, true, true), outside);
    }
}
