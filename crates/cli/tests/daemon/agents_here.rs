//! Which agent is run when none is named: programs on a search path of our own, each of them the demo agent.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::lab::{Lab, REKINDLE};
use crate::pty::Pty;
use crate::ran::{Ran, Stdin, ran};

/// Makes programs that are agents of these names.
fn install(lab: &Lab, programs: &[&str]) {
    programs.iter().for_each(|program| install_one(lab, program, ""));
}

/// Makes a program of this name that is the demo agent with these arguments.
pub(crate) fn install_one(lab: &Lab, program: &str, arguments: &str) {
    let (bin, state) = (lab.path("bin"), lab.path("state"));
    std::fs::create_dir_all(&bin).expect("a directory");
    let (path, new) = (bin.join(program), bin.join("new"));
    let script = format!("#!/bin/sh\nexec {REKINDLE} demo-agent --state {} {arguments}\n", state.display());
    std::fs::write(&new, script).expect("a program");
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).expect("executable");
    std::fs::rename(new, path).expect("installed");
}

fn command(lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = lab.rekindle(arguments);
    command.env("PATH", lab.path("bin")).env_remove("REKINDLE_CONFIG").env_remove("XDG_CONFIG_HOME");
    command
}

/// Runs a command of ours where only those programs are found.
pub(crate) fn run(lab: &Lab, arguments: &[&str]) -> Ran {
    ran(&mut command(lab, arguments), Stdin::HeldOpen)
}

#[test]
fn without_any_agent_it_is_said_how_to_get_one() {
    let lab = Lab::without_daemon();
    let told = run(&lab, &["run", "say hello"]).exits(2).tells("no known agent is installed");
    let told = told.tells("npm install -g").tells("rekindle demo").tells("rekindle run TEXT -- COMMAND");
    assert_eq!(told.out, "");
    assert!(!lab.home().exists(), "nothing is started for it");
    assert_eq!(run(&lab, &["run", "hello", "--json"]).exits(2).error_code(), "no_agent");
}

#[test]
fn the_only_agent_is_taken() {
    let lab = Lab::new();
    install(&lab, &["codex-acp"]);
    assert_eq!(run(&lab, &["run", "say hello"]).exits(0).out, "hello\n");
    assert_eq!(lab.show(&lab.only_session())["agent"], "codex");
}

#[test]
fn of_several_one_is_named_set_or_asked_for() {
    let lab = Lab::new();
    install(&lab, &["claude-agent-acp", "codex-acp"]);
    run(&lab, &["run", "say hello"])
        .exits(2)
        .tells("claude, codex")
        .tells("--agent claude")
        .tells("config.toml");
    assert_eq!(run(&lab, &["run", "say hello", "--agent", "codex"]).exits(0).out, "hello\n");
    let config = lab.path(".config/rekindle");
    std::fs::create_dir_all(&config).expect("a directory");
    std::fs::write(config.join("config.toml"), "agent = \"codex\"\n").expect("a file");
    assert_eq!(run(&lab, &["run", "say hello"]).exits(0).out, "hello\n");
    std::fs::write(config.join("config.toml"), "agent = \n").expect("a file");
    run(&lab, &["run", "say hello"]).exits(2).tells("config.toml, line 1");
    std::fs::remove_file(config.join("config.toml")).expect("removed");
    let mut path = lab.path("bin").into_os_string();
    path.push(":/usr/bin:/bin");
    let mut terminal = Pty::start(command(&lab, &["run", "say hello"]).env("PATH", path), 80);
    terminal.see("Which agent?");
    terminal.see("1-");
    terminal.press("codex\n");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
    assert!(terminal.text().contains("agent = \"codex\"") && terminal.text().contains("\nhello\n"));
}

#[test]
fn an_agent_that_lacks_only_its_adapter_is_run_once_a_person_lets_it_be_downloaded() {
    let lab = Lab::new();
    install(&lab, &["claude", "npx"]);
    run(&lab, &["run", "say hello"])
        .exits(2)
        .tells("claude is installed")
        .tells("rekindle run -a claude TEXT");
    let mut path = lab.path("bin").into_os_string();
    path.push(":/usr/bin:/bin");
    let at_terminal = || {
        let mut command = command(&lab, &["run", "say hello"]);
        command.env("PATH", &path);
        let mut terminal = Pty::start(&command, 80);
        terminal.see("Download it with npx now? [y/N]");
        terminal
    };
    let mut terminal = at_terminal();
    terminal.press("\n");
    assert_eq!(terminal.end(), Some(2), "{}", terminal.text());
    let mut terminal = at_terminal();
    terminal.press("y\n");
    assert_eq!(terminal.end(), Some(0), "{}", terminal.text());
    assert!(terminal.text().contains("npx downloads it") && terminal.text().contains("\nhello\n"));
    assert_eq!(lab.show(&lab.only_session())["agent"], "claude", "the first answer began none");
}

#[test]
fn what_an_agent_offers_is_listed_by_what_has_to_be_given() {
    let lab = Lab::without_daemon();
    install_one(&lab, "codex-acp", "--models field");
    let told = run(&lab, &["agents", "codex", "--models", "--modes"]).exits(0);
    let told = told.shows("modes: default, the default; yolo");
    told.shows("models: demo-small, the default; demo-large");
    let json = run(&lab, &["agents", "codex", "--models", "--json"]).exits(0).json();
    assert_eq!(json["agents"][0]["probed"]["offers"]["models"][1]["id"], "demo-large");
}
