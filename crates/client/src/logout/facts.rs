//! What a machine's files say about logging out. Thin: everything that cannot be read is taken for harmless.

use std::fs;
use std::path::{Path, PathBuf};

use super::Facts;

/// Where systemd looks for its settings; what comes later counts more.
const SETTINGS: [&str; 4] = ["usr/lib/systemd", "usr/local/lib/systemd", "run/systemd", "etc/systemd"];

/// Looks at this machine, for the daemon with this process, or for one that we would start.
pub fn facts_of(daemon: Option<u32>) -> Facts {
    let uid = rustix::process::geteuid().as_raw();
    let variable = || std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
    read(Path::new("/"), daemon, uid, variable().as_deref())
}

fn read(root: &Path, daemon: Option<u32>, uid: u32, named: Option<&str>) -> Facts {
    let text =
        |path: &str| fs::read(root.join(path)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let there = |path: &str| root.join(path).exists();
    let user = text("etc/passwd").ok().and_then(|users| name_of(&users, uid));
    let user = user.as_deref().or(named).unwrap_or_default();
    let process = daemon.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
    let cgroup = group_in(root, &process).unwrap_or_default();
    let first = text("proc/1/environ").unwrap_or_default();
    let marked =
        first.split('\0').any(|one| one.strip_prefix("container=").is_some_and(|what| !what.is_empty()));
    Facts {
        systemd: text("proc/1/comm").is_ok_and(|name| name.trim() == "systemd"),
        container: marked || there(".dockerenv") || there("run/.containerenv"),
        lingers: !user.is_empty() && there(&format!("var/lib/systemd/linger/{user}")),
        kills_logins: kills_logins(&settings(root), user),
        cgroup,
    }
}

/// Returns the control group of a process; none if it cannot be told.
pub fn group_of(pid: i32) -> Option<String> {
    group_in(Path::new("/"), &pid.to_string())
}

fn group_in(root: &Path, process: &str) -> Option<String> {
    fs::read_to_string(root.join(format!("proc/{process}/cgroup"))).ok().map(|groups| group(&groups))
}

/// Returns a user's name as the list of users has it.
fn name_of(users: &str, uid: u32) -> Option<String> {
    let is = |line: &&str| line.split(':').nth(2).and_then(|id| id.parse().ok()) == Some(uid);
    Some(users.lines().find(is)?.split(':').next()?.to_owned())
}

/// Returns the control group that systemd gave a process: in the one tree, or in its own of several.
fn group(groups: &str) -> String {
    let of = |begin: &str| groups.lines().find_map(|line| line.split_once(begin).map(|(_, path)| path));
    let unified = groups.lines().find_map(|line| line.strip_prefix("0::")).filter(|path| *path != "/");
    unified.or_else(|| of(":name=systemd:")).unwrap_or("/").to_owned()
}

/// Reads the settings of logins: the files first, then what is dropped in beside them, by name.
fn settings(root: &Path) -> Vec<String> {
    let places = SETTINGS.map(|place| root.join(place));
    let mut dropped: Vec<PathBuf> = places
        .iter()
        .filter_map(|place| fs::read_dir(place.join("logind.conf.d")).ok())
        .flat_map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())))
        .filter(|path| path.extension().is_some_and(|extension| extension == "conf"))
        .collect();
    dropped.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    let files = places.iter().map(|place| place.join("logind.conf")).chain(dropped);
    files.filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Tells whether what a user's login has started is ended with it. What is only a comment in the settings is what holds
/// without them: distributions differ there.
fn kills_logins(settings: &[String], user: &str) -> bool {
    let lines = || settings.iter().flat_map(|text| text.lines()).map(str::trim).rev();
    let value = |name: &str| {
        let set = lines().find_map(|line| assigned(line, name));
        let commented = || lines().find_map(|line| assigned(line.strip_prefix('#')?.trim(), name));
        set.or_else(commented).map(str::to_owned)
    };
    let yes =
        |value: String| matches!(value.to_lowercase().as_str(), "yes" | "true" | "on" | "1" | "y" | "t");
    let names = |value: Option<String>, user: &str| {
        value.is_some_and(|value| value.split_whitespace().any(|name| name == user))
    };
    let only = value("KillOnlyUsers").filter(|value| !value.is_empty());
    let excluded = value("KillExcludeUsers").or_else(|| Some("root".into()));
    value("KillUserProcesses").is_some_and(yes)
        && !names(excluded, user)
        && (only.is_none() || names(only, user))
}

fn assigned<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (left, right) = line.split_once('=')?;
    (left.trim() == name).then(|| right.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_count_by_their_order_and_comments_by_default() {
        let kills = |texts: &[&str], user: &str| {
            kills_logins(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), user)
        };
        for (texts, user, expected) in [
            (&[][..], "me", false),
            (&["[Login]\n#KillUserProcesses=no\n"], "me", false),
            (&["[Login]\n#KillUserProcesses=yes\n"], "me", true),
            (&["[Login]\n KillUserProcesses = Yes\n"], "me", true),
            (&["#KillUserProcesses=yes", "KillUserProcesses=no"], "me", false),
            (&["KillUserProcesses=no", "KillUserProcesses=yes"], "me", true),
            (&["KillUserProcesses=yes", "#KillUserProcesses=no"], "me", true),
            (&["KillUserProcesses=yes"], "root", false),
            (&["KillUserProcesses=yes\nKillExcludeUsers="], "root", true),
            (&["KillUserProcesses=yes\nKillExcludeUsers=root me"], "me", false),
            (&["KillUserProcesses=yes\nKillOnlyUsers=guest"], "me", false),
            (&["KillUserProcesses=yes\nKillOnlyUsers=guest me"], "me", true),
        ] {
            assert_eq!(kills(texts, user), expected, "{texts:?} {user}");
        }
    }

    #[test]
    fn a_machine_is_read_from_its_files() {
        let root = tempfile::tempdir().expect("a directory");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        };
        assert_eq!(read(root.path(), None, 1000, None), Facts::default(), "of nothing nothing is feared");
        put("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\n");
        put("proc/1/comm", "systemd\n");
        put("proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n");
        put("proc/77/cgroup", "1:name=systemd:/user.slice/user@1000.service\n0::/\n");
        put("etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=no\n");
        put("usr/lib/systemd/logind.conf.d/20-kill.conf", "[Login]\nKillUserProcesses=yes\n");
        put("etc/systemd/logind.conf.d/note.txt", "KillUserProcesses=no\n");
        let facts = read(root.path(), None, 1000, Some("someone"));
        let cgroup = "/user.slice/user-1000.slice/session-3.scope".to_owned();
        let expected = Facts { systemd: true, kills_logins: true, cgroup, ..Facts::default() };
        assert_eq!(facts, expected);
        assert_eq!(read(root.path(), Some(77), 1000, None).cgroup, "/user.slice/user@1000.service");
        put("etc/systemd/logind.conf.d/30-kill.conf", "KillUserProcesses=no\n");
        put("var/lib/systemd/linger/me", "");
        put("proc/1/environ", "PATH=/bin\0container=lxc\0");
        let facts = read(root.path(), None, 1000, None);
        assert!(facts.lingers && facts.container && !facts.kills_logins, "{facts:?}");
        assert!(!read(root.path(), None, 1001, None).lingers);
        assert!(
            read(root.path(), None, 1001, Some("me")).lingers,
            "someone who is in no list has a name too"
        );
    }
}
