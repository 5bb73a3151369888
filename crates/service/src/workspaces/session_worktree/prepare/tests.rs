//! Preparations of real worktrees.

use std::os::unix::fs::symlink;

use rekindle_domain::event::DirtyPolicy;

use super::*;
use crate::workspaces::session_worktree::lab::Lab;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn files_that_git_ignores_are_copied_and_nothing_else() {
    let Some(lab) = Lab::new() else { return };
    lab.0.write(".gitignore", "*.log\n.env*\nsecret/\nlinked\n");
    lab.0.commit("more is ignored");
    for path in [".env", "below/.env.local", "secret/key", "other.log", "new"] {
        lab.0.write(path, path);
    }
    lab.0.write("secret/deep/key", "deep");
    symlink("/etc/passwd", lab.0.root().join(".env.link")).expect("linked");
    let outside = lab.0.place().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join(".env"), "outside").expect("written");
    symlink(&outside, lab.0.root().join("linked")).expect("linked");
    let wanted = lab.wanted("one", DirtyPolicy::Ignore);
    let preparation =
        Preparation { copy: words(&["**/.env*", "secret/**", "new", "linked/.env"]), setup: Vec::new() };
    let root = Path::new(&wanted.directory).join("below");
    let added = lab.add_prepared(&wanted, &root, &preparation).expect("made");
    assert_eq!(added.copied, 4);
    for path in [".env", "below/.env.local", "secret/key"] {
        assert_eq!(lab.read(&wanted, path).as_deref(), Some(path));
    }
    for path in ["other.log", "new", ".env.link", "linked"] {
        assert_eq!(lab.read(&wanted, path), None, "{path}");
    }
    let outside = Preparation { copy: words(&["../outside/.env"]), setup: Vec::new() };
    let two = lab.wanted("two", DirtyPolicy::Ignore);
    let error = lab.add_prepared(&two, &root, &outside).expect_err("refused").to_string();
    assert!(error.contains("[worktree] copy") && error.contains("outside repository"), "{error}");
}

#[test]
fn a_command_prepares_it_and_what_it_said_is_told() {
    let Some(lab) = Lab::new() else { return };
    let wanted = lab.wanted("one", DirtyPolicy::Refuse);
    let root = Path::new(&wanted.directory).join("below");
    let setup = |line: &str| Preparation { copy: Vec::new(), setup: words(&["sh", "-c", line]) };
    let failed = |line: &str| lab.add_prepared(&wanted, &root, &setup(line)).expect_err("failed").to_string();
    let error = failed("echo first; echo why >&2; exit 3");
    let command = "the setup of worktrees, `sh -c echo first; echo why >&2; exit 3`,";
    assert_eq!(error, format!("{command} failed: exit status: 3: why"));
    assert!(failed("exit 4").ends_with("failed: exit status: 4"));
    let none = Preparation { copy: Vec::new(), setup: words(&["/no/such/program"]) };
    let error = lab.add_prepared(&wanted, &root, &none).expect_err("failed").to_string();
    assert!(error.contains("/no/such/program"), "{error}");
    // The next one begins anew: nothing of those is there.
    let line = "pwd > ../made; echo \"$SECRET\" >> ../made; umask >> ../made; seq 100000; echo done";
    let added = lab.add_prepared(&wanted, &root, &setup(line)).expect("made");
    let made = lab.read(&wanted, "made").expect("made");
    assert_eq!(made, format!("{}\n\n0022\n", root.display()), "in its directory, with nothing of ours");
    let told = added.setup.expect("run");
    assert!(told.output.ends_with("100000\ndone\n") && told.output.len() <= 4096, "{}", told.output);
    assert_eq!(told.command[2], line);
    // Once it is made it is not run again.
    assert_eq!(lab.add_prepared(&wanted, &root, &setup("exit 1")).expect("there").setup, None);
}

#[test]
fn a_command_is_ended_with_everything_it_started_when_the_daemon_leaves() {
    let Some(lab) = Lab::new() else { return };
    let wanted = lab.wanted("one", DirtyPolicy::Refuse);
    let root = Path::new(&wanted.directory).join("below");
    let begun = root.join("begun");
    let line = "sleep 600 & echo $! > begun.part; mv begun.part begun; wait";
    let preparation = Preparation { copy: Vec::new(), setup: words(&["sh", "-c", line]) };
    let env = std::env::vars().filter(|(name, _)| name == "PATH").collect();
    let around = Surroundings { env: &env, umask: 0o022, is_stopping: &|| begun.exists() };
    let added = lab.0.workspaces.add_session_worktree(&wanted, &root, &preparation, &around);
    assert!(added.expect_err("stopped").to_string().contains("is shutting down"));
    let child: i32 = fs::read_to_string(&begun).expect("begun").trim().parse().expect("a number");
    let is_gone = || match fs::read_to_string(format!("/proc/{child}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.contains(") Z "),
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_gone() {
        assert!(Instant::now() < deadline, "it goes on");
        std::thread::sleep(LOOK);
    }
}
