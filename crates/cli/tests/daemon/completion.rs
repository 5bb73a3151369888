//! What shells complete, by a real bash with the script that we print.

use std::path::Path;
use std::process::Command;

use rekindle_holder::identity::Identity;
use rekindle_holder::tree::signal_exactly;
use rustix::process::Signal;

use crate::lab::{Lab, REKINDLE};
use crate::ran::{Stdin, ran};

/// Returns an id without what all ids begin with.
fn bare(id: &str) -> &str {
    id.strip_prefix("sess_").expect("a session")
}

#[test]
fn shells_get_their_completions() {
    let lab = Lab::without_daemon();
    for (shell, word) in [
        ("bash", "complete -o"),
        ("zsh", "if [[ $funcstack[1] == _rekindle ]]"),
        ("fish", "complete --keep-order"),
    ] {
        let script = lab.ran(&["completions", shell]).exits(0);
        assert!(script.out.contains(word) && script.out.contains("REKINDLE_COMPLETE"), "{shell}: {script:?}");
    }
    lab.ran(&["completions", "nonsense"]).exits(2);
    let offered = completed(&lab, &["rekindle", "att"]);
    assert_eq!(offered, ["attach"]);
    assert!(
        !completed(&lab, &["rekindle", ""]).contains(&"demo-agent".into()),
        "what help hides is not offered"
    );
    assert_eq!(
        completed(&lab, &["rekindle", "attach", ""]),
        Vec::<String>::new(),
        "there is no daemon to ask"
    );
    assert!(!lab.home().exists(), "nothing is made for it, and no daemon is started");
}

/// Returns what a real bash offers behind these words.
fn completed(lab: &Lab, words: &[&str]) -> Vec<String> {
    let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let (last, index) = (words.last().copied().unwrap_or_default(), words.len() - 1);
    let script = format!(
        "source <(rekindle completions bash)\nCOMP_WORDS=({line}); COMP_CWORD={index}; COMP_TYPE=9\n\
         _clap_complete_rekindle rekindle '{last}' ''\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    );
    let path = Path::new(REKINDLE).parent().expect("a directory").display().to_string();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    let ours = lab.rekindle(&[]);
    command
        .args(["--norc", "-c", &script])
        .envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("PATH", path).env("REKINDLE_HOME", lab.home());
    let offered = ran(&mut command, Stdin::Nothing).exits(0);
    // Options are offered everywhere.
    offered.out.lines().filter(|line| !line.is_empty() && !line.starts_with('-')).map(str::to_owned).collect()
}

#[test]
fn ids_are_completed_while_a_daemon_lives() {
    let mut lab = Lab::new();
    let id = lab.run("ask may I?");
    lab.wait_status(&id, "waiting");
    assert_eq!(completed(&lab, &["rekindle", "attach", ""]), [bare(&id)]);
    assert_eq!(completed(&lab, &["rekindle", "attach", &bare(&id)[..6]]), [bare(&id)]);
    assert_eq!(completed(&lab, &["rekindle", "log", "sess_"]), [id.as_str()]);
    let wait = lab.get("/api/waits")["waits"][0]["wait_id"].as_str().expect("a wait").to_owned();
    assert_eq!(completed(&lab, &["rekindle", "answer", "wait_"]), [wait]);
    assert_eq!(completed(&lab, &["rekindle", "attach", "zz"]), Vec::<String>::new());
    // A daemon that does not answer is not waited for.
    let stopped = Identity::of(lab.daemon_pid()).expect("it lives");
    signal_exactly(&stopped, Signal::STOP).expect("stopped");
    assert_eq!(completed(&lab, &["rekindle", "attach", ""]), Vec::<String>::new());
    lab.kill();
}
