//! Control groups: nobody of an agent's leaves its own unseen, and where memory runs out the holder outlives it. Only root,
//! or one to whom a group was given, can make them; elsewhere there is nothing to show, and each test says so.

use std::path::{Path, PathBuf};

use rekindle_holder::client::{Prepared, harvest, inspect, start};
use rekindle_holder::dir::ExitReason;
use rekindle_holder::identity::{Identity, Presence};

use crate::lab::{Held, Lab, env, limits, wait_for};

/// Leaves session, group, parents and mark behind: only the control group still knows it.
const FUGITIVE: &str = "(env -i setsid sleep 300 >/dev/null 2>&1 </dev/null &); echo ready; cat";

fn cgroup_of(held: &Held) -> Option<PathBuf> {
    let cgroup = inspect(&held.dir).status.there().and_then(|status| status.cgroup.clone());
    if cgroup.is_none() {
        eprintln!("no control group can be made here: nothing is shown");
    }
    cgroup
}

/// The processes of a group.
fn members(cgroup: &Path) -> Vec<Identity> {
    let pids = std::fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    pids.lines().filter_map(|pid| Identity::of(pid.parse().ok()?).ok()).collect()
}

/// Starts the fugitive and waits until it has fled: no process of the tree but the agent and its child has the mark.
fn with_fugitive(lab: &Lab) -> Option<(Held, PathBuf, Vec<Identity>)> {
    let (held, control) = lab.shell(FUGITIVE, limits());
    let cgroup = cgroup_of(&held)?;
    held.wait_for_line("ready");
    let fled = wait_for("the fugitive", || {
        let marked = held.tree();
        let fled: Vec<_> = members(&cgroup).into_iter().filter(|one| !marked.contains(one)).collect();
        let asleep = |one: &Identity| {
            std::fs::read_to_string(format!("/proc/{}/comm", one.pid)).is_ok_and(|name| name == "sleep\n")
        };
        (fled.len() == 1 && fled.iter().all(asleep)).then_some(fled)
    });
    drop(control);
    Some((held, cgroup, fled))
}

#[test]
fn an_agent_is_born_in_a_group_of_its_own_and_the_holder_stays_outside() {
    let lab = Lab::new();
    let (mut held, mut control) = lab.shell("cat", limits());
    let Some(cgroup) = cgroup_of(&held) else { return };
    assert!(cgroup.ends_with(format!("rekindle-{}", held.holder_id)), "{}", cgroup.display());
    let agent = control.status().expect("answered").agent.expect("an agent");
    let inside = members(&cgroup);
    assert!(inside.contains(&agent), "{inside:?}");
    assert!(inside.iter().all(|one| one.pid != held.pid()), "{inside:?}");
    control.close_input(0).expect("decided");
    held.ended();
    assert!(!cgroup.exists(), "it goes with the agent");
}

// I4, I9
#[test]
fn a_grandchild_that_left_everything_is_found_by_its_group_after_the_holders_death() {
    let lab = Lab::new();
    let Some((mut held, cgroup, fled)) = with_fugitive(&lab) else { return };
    held.kill();
    let left = harvest(&held.dir).expect("a dead holder");
    assert!(left.tree_gone, "{:?}", left.left);
    for one in fled {
        assert_eq!(one.presence().expect("readable"), Presence::Gone);
    }
    assert!(!cgroup.exists(), "nobody is left, and nothing");
}

// I13
#[test]
fn a_grandchild_that_left_everything_is_ended_with_its_agent() {
    let lab = Lab::new();
    let Some((mut held, cgroup, fled)) = with_fugitive(&lab) else { return };
    held.control(2).close_input(0).expect("decided");
    let exit = held.ended();
    assert_eq!((exit.code, exit.left.len()), (Some(0), 0));
    for one in fled {
        assert_eq!(one.presence().expect("readable"), Presence::Gone);
    }
    assert!(!cgroup.exists());
}

/// A group with a bound on memory, of either kind of hierarchy.
struct Bound(PathBuf);

impl Bound {
    fn make(name: &str, bytes: u64) -> Option<Bound> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let made = mounts.lines().find_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let file = match kind.split(' ').next()? {
                "cgroup2" => "memory.max",
                "cgroup" if kind.ends_with(",memory") => "memory.limit_in_bytes",
                _ => return None,
            };
            let path = Path::new(mount.split(' ').nth(4)?).join(name);
            std::fs::create_dir(&path).ok()?;
            let bound = Bound(path);
            // What does not fit is not to be swapped out, where that can be said at all.
            let _ = std::fs::write(bound.0.join("memory.swap.max"), "0");
            let _ = std::fs::write(bound.0.join("memory.swappiness"), "0");
            std::fs::write(bound.0.join(file), bytes.to_string()).ok().map(|()| bound)
        });
        if made.is_none() {
            eprintln!("no group with a bound on memory can be made here: nothing is shown");
        }
        made
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

// I12: both are in the same bounded group, and the kernel is to choose the agent.
#[test]
fn an_agent_that_takes_all_memory_is_killed_and_the_holder_lives_to_tell() {
    let lab = Lab::new();
    let name = format!("rekindle-test-{}", std::process::id());
    let Some(bound) = Bound::make(&name, 48 << 20) else { return };
    let greedy = "echo '{\"said\":1}'; read go; x=$(head -c 500000000 /dev/zero | tr '\\0' x); echo survived";
    let prepared = lab.prepare(&["sh", "-c", greedy], limits());
    let enter = format!("echo $$ > '{}'", bound.0.join("cgroup.procs").display());
    let executable = crate::storage::holder_after(&lab, &prepared.executable, &enter);
    let bounded = Prepared { executable, ..prepared.clone() };
    let spawned = start(&bounded).expect("a holder");
    let mut held = Held { dir: prepared.dir, holder_id: prepared.launch.holder_id.clone(), spawned };
    let mut control = held.control(1);
    control.start(env()).expect("the agent starts");
    let inside = std::fs::read_to_string(bound.0.join("cgroup.procs")).expect("members");
    assert!(inside.lines().any(|pid| pid == held.pid().to_string()), "the holder is bounded too");
    control.input(1, "prompt", b"go\n").expect("accepted");
    let exit = held.ended();
    assert_eq!((exit.code, exit.signal), (None, Some(9)), "killed");
    assert_eq!((exit.reason, exit.left.len()), (ExitReason::AgentExit, 0));
    assert_eq!(held.lines(), ["{\"said\":1}"], "and everything before is kept");
}
