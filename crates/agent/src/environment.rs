//! What of an environment an agent is given: a list of names, not everything that happens to be there. Pure.

use std::ffi::{OsStr, OsString};

/// Names that every agent is given.
const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "TZ",
    "TMPDIR",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
];

/// Beginnings of names that every agent is given.
const PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Ends of names that every agent is given, in capitals or not.
const SUFFIXES: &[&str] = &["_PROXY"];

/// Tells whether a variable is for an agent that also needs names with these beginnings.
pub fn is_for_agents(name: &OsStr, prefixes: &[&str]) -> bool {
    // A name that is no text is on no list.
    let Some(name) = name.to_str() else { return false };
    let upper = name.to_ascii_uppercase();
    NAMES.contains(&name)
        || PREFIXES.iter().chain(prefixes).any(|prefix| name.starts_with(prefix))
        || SUFFIXES.iter().any(|suffix| upper.ends_with(suffix))
}

/// Returns the part of an environment that an agent is given.
pub fn for_agent(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    prefixes: &[&str],
) -> Vec<(OsString, OsString)> {
    environment.into_iter().filter(|(name, _)| is_for_agents(name, prefixes)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn only_what_is_on_the_list_is_passed_on() {
        for (name, passed) in [
            ("PATH", true),
            ("LC_ALL", true),
            ("XDG_STATE_HOME", true),
            ("https_proxy", true),
            ("NO_PROXY", true),
            ("ANTHROPIC_API_KEY", true),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("MY_ANTHROPIC_KEY", false),
            ("LD_PRELOAD", false),
            ("path", false),
        ] {
            assert_eq!(is_for_agents(OsStr::new(name), &["ANTHROPIC_"]), passed, "{name}");
        }
    }

    #[test]
    fn the_guide_has_the_list() {
        let page = include_str!("../../../docs/guide/agents.md");
        let (_, section) = page.split_once("\n## Variables\n").expect("a section about variables");
        let rows = section
            .lines()
            .skip_while(|line| !line.starts_with('|'))
            .take_while(|line| line.starts_with('|'));
        // What single agents get is in their table.
        let general: String = rows.filter(|row| !row.starts_with("| its own |")).collect();
        let told: BTreeSet<&str> = general.split('`').skip(1).step_by(2).collect();
        let listed: BTreeSet<&str> = [NAMES, PREFIXES, SUFFIXES].concat().into_iter().collect();
        assert_eq!(told, listed);
    }
}
