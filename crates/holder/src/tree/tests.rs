//! Trees of real processes: what is found, what is not, and who is signalled.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// A shell in a group of its own; it and all it started are ended with it.
struct Shell {
    child: Child,
    mark: String,
    found: Vec<Identity>,
}

fn fresh_mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("h_test_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Shell {
    fn marked(script: &str) -> Shell {
        let mark = fresh_mark();
        let child = command(script).env(MARK, &mark).spawn().expect("a shell starts");
        Shell { child, mark, found: Vec::new() }
    }

    fn innocent(script: &str) -> Shell {
        let child = command(script).spawn().expect("a shell starts");
        Shell { child, mark: String::new(), found: Vec::new() }
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn identity(&self) -> Identity {
        Identity::of(self.pid()).expect("it was not collected")
    }

    fn tree(&self) -> Tree {
        Tree { mark: self.mark.clone(), ..Tree::default() }
    }

    /// Waits until as many are found.
    fn await_members(&mut self, tree: &Tree, count: usize) -> Vec<Identity> {
        let found = eventually(|| {
            let found = tree.members().expect("a list");
            (found.len() == count).then_some(found)
        });
        self.found.extend(found.iter().cloned());
        found
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let tree = Tree { group: Some(self.pid()), ..self.tree() };
        let _ = tree.signal(Signal::KILL);
        for one in &self.found {
            let _ = signal_exactly(one, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not happen in time");
        std::thread::yield_now();
    }
}

fn pids(identities: &[Identity]) -> Vec<i32> {
    identities.iter().map(|identity| identity.pid).collect()
}

#[test]
fn the_mark_finds_those_that_left_group_and_session_and_nobody_else() {
    let mut shell = Shell::marked("setsid sleep 1000 & exec sleep 1000");
    let innocent = Shell::innocent("exec sleep 1000");
    let tree = shell.tree();
    let found = eventually(|| {
        let found = tree.members().expect("a list");
        let sessions: BTreeSet<i32> =
            found.iter().filter_map(|member| Stat::read(member.pid).ok()).map(|stat| stat.session).collect();
        (found.len() == 2 && sessions.len() == 2).then_some(found)
    });
    assert!(pids(&found).contains(&shell.pid()));
    assert!(!pids(&found).contains(&innocent.pid()));

    let signalled = tree.signal(Signal::KILL).expect("signals");
    assert_eq!(signalled, found);
    eventually(|| tree.members().expect("a list").is_empty().then_some(()));
    assert_eq!(innocent.identity().presence().expect("readable"), Presence::Alive);
    let _ = shell.child.wait();
}

#[test]
fn part_of_a_mark_or_no_mark_at_all_finds_nobody() {
    let mut shell = Shell::marked("exec sleep 1000");
    let whole = shell.tree();
    shell.await_members(&whole, 1);
    let part = Tree { mark: shell.mark[..shell.mark.len() - 1].into(), ..whole.clone() };
    assert_eq!(part.members().expect("a list"), []);
    assert_eq!(Tree { mark: String::new(), ..whole }.members().expect("a list"), []);
}

#[test]
fn a_child_without_the_mark_is_found_by_its_parent() {
    let mut shell = Shell::marked("env -i setsid sleep 1000 & exec sleep 1000");
    let tree = shell.tree();
    let found = shell.await_members(&tree, 2);
    assert!(pids(&found).contains(&shell.pid()));
}

#[test]
fn the_ancestors_descendants_are_found_without_any_mark_and_it_is_not() {
    let mut shell = Shell::innocent("env -i setsid sh -c 'sleep 1000 & wait' & wait");
    let ancestor = shell.pid();
    let tree = Tree { mark: fresh_mark(), ancestor: Some(ancestor), ..Tree::default() };
    let found = shell.await_members(&tree, 2);
    assert!(!pids(&found).contains(&ancestor));
}

#[test]
fn a_group_counts_while_one_of_it_is_proven() {
    // The inner one has no mark, and its parent is gone: only the group is left to find it by.
    let mut shell = Shell::marked("(env -i sleep 1000 &); exec sleep 1000");
    let leader = shell.pid();
    let by_group = Tree { group: Some(leader), ..shell.tree() };
    shell.await_members(&by_group, 2);
    let tree = shell.tree();
    let by_mark = shell.await_members(&tree, 1);
    assert_eq!(pids(&by_mark), [leader]);
    let by_identity = Tree { mark: fresh_mark(), ..by_group.clone() };
    let known = |agent: Identity| Tree { agent: Some(agent), ..by_identity.clone() };
    assert_eq!(known(by_mark[0].clone()).members().expect("a list").len(), 2);

    // I9: nothing proves the same number for another holder.
    assert_eq!(by_identity.members().expect("a list"), []);
    assert_eq!(by_identity.signal(Signal::KILL).expect("signals"), []);
    let recycled = Identity { start_ticks: by_mark[0].start_ticks + 1, ..by_mark[0].clone() };
    assert_eq!(known(recycled).members().expect("a list"), []);
}

#[test]
fn of_a_dead_holder_group_and_session_together_are_proof() {
    // A leader of both that is gone, and one that has no mark and lost its parent.
    let mut command = Command::new("setsid");
    command.args(["sh", "-c", "env -i sleep 1000 &"]).stdin(Stdio::null()).stdout(Stdio::null());
    let child = command.stderr(Stdio::null()).spawn().expect("a shell starts");
    let mut shell = Shell { child, mark: fresh_mark(), found: Vec::new() };
    eventually(|| Stat::read(shell.pid()).expect("not collected").ended.then_some(()));
    let leader = shell.identity();
    let tree = Tree { group: Some(leader.pid), ..shell.tree() };
    let with = |agent: &Identity, holder: &Identity| Tree {
        agent: Some(agent.clone()),
        holder: Some(holder.clone()),
        ..tree.clone()
    };
    // I9: the number names a later process by now, or the boot is another one.
    let later = Identity { start_ticks: leader.start_ticks + 1, ..leader.clone() };
    let before = Identity { machine_boot: "another".into(), ..leader.clone() };
    for wrong in [&later, &before] {
        assert_eq!(with(wrong, wrong).members().expect("a list"), []);
    }
    shell.child.wait().expect("collected");
    assert_eq!(tree.members().expect("a list"), [], "a group alone is a number");
    let found = with(&leader, &leader).members().expect("a list");
    shell.found.extend(found.iter().cloned());
    assert_eq!(found.len(), 1);
    assert_eq!(Stat::read(found[0].pid).expect("it lives").group, leader.pid);
    let elsewhere = Identity { pid: 2, ..leader.clone() };
    assert_eq!(with(&leader, &elsewhere).members().expect("a list"), []);
}

#[test]
fn what_has_ended_and_was_not_collected_is_no_member() {
    let mut shell = Shell::marked("sleep 1000 & exec true");
    let leader = shell.pid();
    eventually(|| Stat::read(leader).expect("not collected").ended.then_some(()));
    let tree = Tree { group: Some(leader), ..shell.tree() };
    let found = shell.await_members(&tree, 1);
    assert_ne!(found[0].pid, leader);
    let zombie = shell.identity();
    assert!(!signal_exactly(&zombie, Signal::KILL).expect("an answer"));
}

#[test]
fn numbers_that_mean_everybody_mean_nobody() {
    for number in [-1, 0, 1] {
        let tree =
            Tree { mark: fresh_mark(), group: Some(number), ancestor: Some(number), ..Tree::default() };
        assert_eq!(tree.members().expect("a list"), []);
        let identity =
            Identity { pid: number, start_ticks: 0, machine_boot: machine_boot().expect("a boot") };
        assert!(signal_exactly(&identity, Signal::CONT).is_err());
    }
}

/// I9: a pid that belongs to another by now is not signalled.
#[test]
fn only_the_very_process_is_signalled() {
    let mut shell = Shell::innocent("exec sleep 1000");
    let identity = shell.identity();
    let recycled = Identity { start_ticks: identity.start_ticks + 1, ..identity.clone() };
    let before = Identity { machine_boot: "another".into(), ..identity.clone() };
    for wrong in [recycled, before] {
        assert!(!signal_exactly(&wrong, Signal::KILL).expect("an answer"));
    }
    assert_eq!(identity.presence().expect("readable"), Presence::Alive);
    assert!(signal_exactly(&identity, Signal::KILL).expect("an answer"));
    let _ = shell.child.wait();
    assert!(!signal_exactly(&identity, Signal::KILL).expect("an answer"));
}

#[test]
fn a_cgroup_is_read_with_those_below_it() {
    let (one, two) = (Shell::innocent("exec sleep 1000"), Shell::innocent("exec sleep 1000"));
    let dir = tempfile::tempdir().expect("a directory");
    let below = dir.path().join("below");
    std::fs::create_dir(&below).expect("made");
    std::fs::write(dir.path().join("cgroup.procs"), format!("{}\n0\n{}\n", one.pid(), std::process::id()))
        .expect("written");
    std::fs::write(below.join("cgroup.procs"), format!("{}\n", two.pid())).expect("written");
    let tree = Tree { mark: fresh_mark(), cgroup: Some(dir.path().into()), ..Tree::default() };
    let mut expected = [one.pid(), two.pid()];
    expected.sort_unstable();
    assert_eq!(pids(&tree.members().expect("a list")), expected);
    let gone = Tree { cgroup: Some(dir.path().join("gone")), ..tree };
    assert_eq!(gone.members().expect("a list"), []);
}
