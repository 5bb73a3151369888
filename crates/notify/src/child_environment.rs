//! The environment of programs that sinks run: a list of names, not everything that the daemon happens to have. Pure but for the seam.

use std::collections::BTreeMap;

use crate::machine::Machine;

/// Names that programs of a user's desktop need.
const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
];

/// Beginnings of such names.
const PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Returns what a program gets: the usual, and what is named.
pub(crate) fn child_environment(machine: &dyn Machine, named: &[String]) -> BTreeMap<String, String> {
    let is_passed = |name: &String| {
        NAMES.contains(&name.as_str())
            || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || named.contains(name)
    };
    let passed = machine.variable_names().into_iter().filter(is_passed);
    passed.filter_map(|name| Some((name.clone(), machine.variable(&name)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_machine::FakeMachine;

    #[test]
    fn only_what_is_usual_or_named_is_passed_on() {
        let mut machine = FakeMachine::new();
        for name in ["PATH", "LC_ALL", "XDG_RUNTIME_DIR", "AWS_SECRET_ACCESS_KEY", "NTFY_TOKEN", "LD_PRELOAD"]
        {
            machine.variables.insert(name.to_owned(), "x".to_owned());
        }
        let named = ["NTFY_TOKEN".to_owned(), "MISSING".to_owned()];
        let names: Vec<String> = child_environment(&machine, &named).into_keys().collect();
        assert_eq!(names, ["LC_ALL", "NTFY_TOKEN", "PATH", "XDG_RUNTIME_DIR"]);
    }
}
