//! To whom a process belongs, by its control group, and with whom it therefore ends. Pure.

use rekindle_holder::client::scope_name;

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

    /// Says where it is, and what that means: logins, and the daemon's service, may end everyone in their group or not.
    pub fn text(&self, kills_logins: bool, service_kills: bool) -> String {
        match self {
            Whereabouts::OwnScope => "its own scope: it stays when the daemon is stopped or replaced".into(),
            Whereabouts::Service if service_kills => {
                "the service's group: it ends when the service is stopped, because of its KillMode".into()
            }
            Whereabouts::Service => {
                "the service's group: it stays, because only the main process is ended (KillMode=process)"
                    .into()
            }
            Whereabouts::Login(unit) if kills_logins => format!("{unit}: it ends when you log out"),
            Whereabouts::Login(unit) => {
                format!("{unit}: it stays when you log out, because KillUserProcesses=no")
            }
            Whereabouts::Unit(unit) => {
                format!("{unit}: whoever stops that ends it too, unless it says KillMode=process")
            }
            Whereabouts::NoUnit => "no unit's group: no service manager ends it".into(),
            Whereabouts::Unknown => "unknown: its control group cannot be read".into(),
        }
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
        assert!(Whereabouts::Login("s".into()).text(true, false).contains("ends"));
        assert!(Whereabouts::Login("s".into()).text(false, false).contains("stays"));
        assert!(Whereabouts::Service.text(false, true).contains("ends"));
        assert!(Whereabouts::Service.text(false, false).contains("stays"));
    }
}
