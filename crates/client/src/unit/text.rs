//! What the unit file says. Pure: the same executable, home and path give the same text.

/// What a file of ours is known by; systemd passes over it.
const SECTION: &str = "[X-Rekindle]";

/// How the line begins that names the home.
const HOME: &str = "Home=";

/// How the line begins that agents are found by.
const PATH: &str = "Environment=\"PATH=";

/// Returns the line that agents are found by.
pub(super) fn path_line(path: &str) -> String {
    format!("{PATH}{}\"", escaped(path))
}

/// Returns that line of a unit file.
pub(super) fn path_line_of(text: &str) -> Option<&str> {
    text.lines().find(|line| line.starts_with(PATH))
}

/// Tells whether a unit file is ours.
pub fn is_ours(text: &str) -> bool {
    text.lines().any(|line| line == SECTION)
}

/// Tells whether a unit file is ours, and for this home.
pub(super) fn is_for(text: &str, home: &str) -> bool {
    is_ours(text) && text.lines().filter_map(|line| line.strip_prefix(HOME)).any(|one| one == escaped(home))
}

/// Returns a whole unit file.
pub(super) fn unit_text(name: &str, executable: &str, home: &str, path_line: &str) -> String {
    // The path of a program is taken as it is; only behind it a dollar begins a variable.
    let (executable, argument) = (escaped(executable), escaped(home).replace('$', "$$"));
    let home = escaped(home);
    format!(
        r#"# Written by `rekindle service install`. Put settings of your own beside it: systemctl --user edit {name}

[Unit]
Description=Rekindle daemon: runs coding agents in the background and continues them after a crash
Documentation=man:rekindle(1)
# Versions of systemd without RestartSteps give up after 20 starts in ten minutes; the others keep trying, once a minute.
StartLimitIntervalSec=600
StartLimitBurst=20

[Service]
Type=notify
ExecStart="{executable}" --home "{argument}" serve
# Agents are found by the PATH of the shell that installed this.
{path_line}
# Agents outlive the daemon: only the daemon's own process is stopped, and an agent that runs out of memory ends alone.
KillMode=process
OOMPolicy=continue
Delegate=yes
# A daemon that was stopped stays stopped. Exit code 2 says that the home cannot be used: trying again changes nothing.
Restart=on-failure
RestartPreventExitStatus=2
RestartSec=1
RestartSteps=6
RestartMaxDelaySec=60
TimeoutStartSec=300
TimeoutStopSec=30

[Install]
WantedBy=default.target

{SECTION}
{HOME}{home}
"#
    )
}

/// Writes a text for the inside of quotes in a unit file.
fn escaped(text: &str) -> String {
    let quoted = text.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%");
    quoted.replace('\n', r"\n").replace('\r', r"\r").replace('\t', r"\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_to_systemd_is_taken_for_what_it_is() {
        let path = path_line("/bin:/a b:/100%:/$x");
        assert_eq!(path, "Environment=\"PATH=/bin:/a b:/100%%:/$x\"");
        let text = unit_text("r.service", "/opt/$a \"b\"/rekindle", "/h/50%$x\\y\nz", &path);
        let start = "ExecStart=\"/opt/$a \\\"b\\\"/rekindle\" --home \"/h/50%%$$x\\\\y\\nz\" serve";
        assert!(text.lines().any(|line| line == start), "{text}");
        assert_eq!(path_line_of(&text), Some(path.as_str()));
        assert!(is_for(&text, "/h/50%$x\\y\nz") && !is_for(&text, "/h") && !is_for(&text, "/h/50%%"));
        assert!(!is_ours("[Service]\nExecStart=/bin/rekindle serve\n"));
    }

    #[test]
    fn the_settings_that_keep_agents_alive_are_there() {
        let text = unit_text("r.service", "/bin/rekindle", "/h", &path_line("/bin"));
        for line in ["Type=notify", "KillMode=process", "OOMPolicy=continue", "Restart=on-failure"] {
            assert_eq!(text.lines().filter(|one| *one == line).count(), 1, "{line}");
        }
        assert!(text.contains("[Install]\nWantedBy=default.target\n"));
    }

    #[test]
    fn a_stranger_reads_what_the_service_is_and_where_to_read_on() {
        let text = unit_text("r.service", "/bin/rekindle", "/h", &path_line("/bin"));
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
        let description = value("Description=").unwrap_or_default();
        for word in ["daemon", "coding agents", "crash"] {
            assert!(description.contains(word), "{description}");
        }
        // systemctl shows it in one line.
        assert!(description.len() <= 90, "{description}");
        assert_eq!(value("Documentation=").as_deref(), Some("man:rekindle(1)"));
    }

    #[test]
    fn the_unit_of_packages_has_the_same_settings() {
        let is_theirs = |line: &&str| line.starts_with("ExecStart=") || line.starts_with("Environment=");
        let settings = |text: &str| {
            let lines = text.lines().take_while(|line| *line != SECTION);
            let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#') && !is_theirs(line));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let packaged = include_str!("../../../../ops/systemd/rekindle.service");
        assert_eq!(
            settings(packaged),
            settings(&unit_text("r", "/usr/bin/rekindle", "/h", &path_line("/bin")))
        );
        assert!(packaged.contains("\nExecStart=/usr/bin/rekindle serve\n"));
        assert!(!is_ours(packaged), "`service uninstall` leaves it alone");
    }
}
