//! Dead holders made by hand: torn, broken and empty journals, and agents that outlived their holder.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use super::super::testing::{Home, eventually, out, out_part};
use super::*;
use crate::dir::ExitReason;
use crate::identity::Presence;
use crate::journal::Part;
use crate::stamp::Stamp;
use crate::tree::MARK;

fn start() -> Ctl {
    Ctl::Start { instance: "boot_1".into(), epoch: 1 }
}

fn check(fill: impl FnOnce(&Home, &HolderDir)) -> Harvest {
    let home = Home::new();
    let dir = home.holder("h_harvested");
    home.write_lock_note(&dir, 0);
    fill(&home, &dir);
    harvest(&dir).expect("a harvest")
}

#[test]
fn one_that_never_got_a_start_is_known_for_certain() {
    for (fill, last) in [
        (&(|_: &Home, _: &HolderDir| {}) as &dyn Fn(&Home, &HolderDir), 0),
        (&|home: &Home, dir: &HolderDir| drop(home.journal(dir)), 0),
        (
            &|home: &Home, dir: &HolderDir| {
                let attach = Ctl::Attach { instance: "boot_1".into(), epoch: 1 };
                home.journal(dir).ctl(&attach).expect("appended");
            },
            1,
        ),
    ] {
        let found = check(fill);
        assert_eq!((found.started, found.last_seq, found.damage), (Started::Never, last, None));
        assert!(found.tree_gone && found.exit.is_none() && found.left.is_empty());
    }
}

#[test]
fn what_is_journaled_tells_how_far_the_start_came() {
    let failed = Ctl::StartFailed { error: "no such file".into() };
    let started = Ctl::Started { pid: i32::MAX, start_ticks: 1 };
    for (said, expected) in [
        (vec![start()], Started::Asked),
        (vec![start(), started], Started::Yes),
        (vec![start(), failed], Started::Failed("no such file".into())),
    ] {
        let found = check(|home, dir| {
            let mut journal = home.journal(dir);
            said.iter().for_each(|ctl| {
                journal.ctl(ctl).expect("appended");
            });
        });
        assert_eq!((found.started, found.last_seq), (expected, said.len() as u64));
    }
}

#[test]
fn a_journal_whose_beginning_was_removed_had_an_agent() {
    let found = check(|home, dir| {
        let mut journal = home.journal(dir);
        for _ in 0..3 {
            journal.ctl(&Ctl::Detach { reason: "test".into() }).expect("appended");
            journal.rotate().expect("another segment");
        }
        journal.trim(3);
        assert!(!dir.journal().join("00000001.log").exists());
    });
    assert_eq!(found.started, Started::Yes);
}

#[test]
fn a_torn_tail_is_left_out_without_complaint() {
    let found = check(|home, dir| {
        let mut journal = home.journal(dir);
        journal.ctl(&start()).expect("appended");
        out(&mut journal, b"whole");
        out(&mut journal, b"torn away");
        let path = dir.journal().join("00000001.log");
        let len = std::fs::metadata(&path).expect("there").len();
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opened");
        file.set_len(len - 4).expect("cut");
    });
    assert_eq!((found.last_seq, found.damage), (2, None));
}

#[test]
fn damage_in_the_middle_leaves_the_part_before_it() {
    let found = check(|home, dir| {
        let mut journal = home.journal(dir);
        journal.ctl(&start()).expect("appended");
        out(&mut journal, b"before");
        out(&mut journal, b"broken");
        out_part(&mut journal, Part::Whole, b"behind");
        home.spoil(dir, b"broken");
    });
    assert_eq!((found.last_seq, found.started), (2, Started::Yes));
    assert!(found.damage.is_some());
    let found = check(|home, dir| {
        let mut journal = home.journal(dir);
        journal.ctl(&start()).expect("appended");
        out(&mut journal, b"behind");
        home.spoil(dir, b"boot_1");
    });
    assert_eq!((found.last_seq, found.started), (0, Started::Unknown));
}

#[test]
fn how_it_ended_is_found_and_rubbish_is_told() {
    let note = ExitNote {
        code: Some(3),
        signal: None,
        reason: ExitReason::AgentExit,
        actor: None,
        detail: None,
        last_seq: 9,
        drained: true,
        left: Vec::new(),
        cpu_ms: 1,
        stderr_tail: String::new(),
        at: Stamp(0).to_string(),
    };
    let found = check(|_, dir| {
        std::fs::write(dir.exit(), serde_json::to_vec(&note).expect("plain")).expect("written");
    });
    assert_eq!((found.exit, found.exit_unreadable), (Some(note), None));
    let found = check(|_, dir| std::fs::write(dir.exit(), "{").expect("written"));
    assert!(found.exit.is_none() && found.exit_unreadable.is_some());
}

#[test]
fn a_living_holder_is_not_harvested() {
    let home = Home::new();
    let dir = home.holder("h_1");
    let lock = DirLock::take(&dir).expect("free");
    assert!(matches!(harvest(&dir), Err(HarvestError::Lock(LockError::Held { .. }))));
    assert!(harvest_under(&lock).is_ok());
}

/// An agent that outlived its holder, and a child of it that left its group; gone when this is.
struct Survivor {
    home: Home,
    dir: HolderDir,
    child: Child,
    tree: Tree,
}

impl Survivor {
    fn new(name: &str) -> Survivor {
        let home = Home::new();
        let id = format!("h_{name}_{}", std::process::id());
        let dir = home.holder(&id);
        home.write_lock_note(&dir, 0);
        let mut command = Command::new("sh");
        command.args(["-c", "setsid sleep 1000 & exec sleep 1000"]).env(MARK, &id).process_group(0);
        let child = command.spawn().expect("started");
        let pid = child.id() as i32;
        let tree = Tree { mark: id, group: Some(pid), ..Tree::default() };
        eventually(|| (tree.members().expect("a list").len() == 2).then_some(()));
        let agent = Identity::of(pid).expect("it lives");
        let mut journal = home.journal(&dir);
        journal.ctl(&start()).expect("appended");
        journal.ctl(&Ctl::Started { pid, start_ticks: agent.start_ticks }).expect("appended");
        Survivor { home, dir, child, tree }
    }

    fn agent(&self) -> Identity {
        Identity::of(self.child.id() as i32).expect("not collected")
    }
}

impl Drop for Survivor {
    fn drop(&mut self) {
        let _ = self.tree.signal(Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn survivors_are_killed_and_proven_gone() {
    let survivor = Survivor::new("swept");
    let found = harvest(&survivor.dir).expect("a harvest");
    assert!(found.tree_gone && found.left.is_empty() && !found.copied);
    assert_eq!(found.agent, Some(survivor.agent()));
    assert_eq!(survivor.agent().presence().expect("readable"), Presence::Gone);
    assert_eq!(survivor.tree.members().expect("a list"), []);
}

/// I9: in a copied home, or after a restart of the machine, nobody is signalled.
#[test]
fn a_copy_or_another_boot_signals_nobody() {
    let survivor = Survivor::new("copied");
    survivor.home.write_lock_note(&survivor.dir, 1);
    let found = harvest(&survivor.dir).expect("a harvest");
    assert!(found.copied && !found.tree_gone);
    assert_eq!(found.left.len(), 2);

    survivor.home.write_lock_note(&survivor.dir, 0);
    survivor.home.change_launch(&survivor.dir, |launch| launch.machine_boot = "another".into());
    harvest(&survivor.dir).expect("a harvest");
    survivor.home.write_launch(&survivor.dir);
    survivor.home.change_lock_note(&survivor.dir, |note| note.process.machine_boot = "another".into());
    harvest(&survivor.dir).expect("a harvest");
    assert_eq!(survivor.tree.members().expect("a list").len(), 2);
}
