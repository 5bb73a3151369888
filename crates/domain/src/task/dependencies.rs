//! Dependencies between tasks that are asked for together: they must not wait for each other in a circle. A task that was there
//! before cannot wait for one that comes later, so that no other circles are possible.

use std::collections::{HashMap, HashSet};

use super::scheduler::Failed;
use super::state::TasksState;
use crate::event::{Dependency, DependencyCondition};
use crate::id::TaskId;

/// Finds tasks that wait for each other in a circle, and returns their places in the list, in the order of waiting.
pub fn find_cycle(tasks: &[TaskId], waits_for: &[Vec<TaskId>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnTheWay,
        Done,
    }
    let places: HashMap<TaskId, usize> = tasks.iter().enumerate().map(|(at, id)| (*id, at)).collect();
    let mut marks = vec![Mark::New; tasks.len()];
    for start in 0..tasks.len() {
        // The way from where we began, each with how many of those that it waits for were gone through.
        let mut way: Vec<(usize, usize)> = Vec::new();
        if marks[start] == Mark::New {
            marks[start] = Mark::OnTheWay;
            way.push((start, 0));
        }
        while let Some((at, passed)) = way.last_mut() {
            let Some(next) = waits_for.get(*at).and_then(|waits| waits.get(*passed)) else {
                marks[*at] = Mark::Done;
                way.pop();
                continue;
            };
            *passed += 1;
            match places.get(next).map(|next| (*next, marks[*next])) {
                None | Some((_, Mark::Done)) => {}
                Some((next, Mark::New)) => {
                    marks[next] = Mark::OnTheWay;
                    way.push((next, 0));
                }
                Some((next, Mark::OnTheWay)) => {
                    let from = way.iter().position(|(at, _)| *at == next).unwrap_or(0);
                    return Some(way[from..].iter().map(|(at, _)| *at).collect());
                }
            }
        }
    }
    None
}

/// Returns tasks that fail, and behind each those that wait for it to be completed, which fail with it, directly or through others.
pub fn with_dependents(state: &TasksState, failing: Vec<(TaskId, Failed)>) -> Vec<(TaskId, Failed)> {
    let mut known: HashSet<TaskId> = failing.iter().map(|(task, _)| *task).collect();
    let (mut found, mut next) = (failing, 0);
    while let Some((task, _)) = found.get(next).copied() {
        next += 1;
        let wants_it =
            |one: &Dependency| one.task_id == task && one.condition == DependencyCondition::Completed;
        let dependents = state.dependents(task).filter_map(|dependent| state.get(dependent));
        let failed = dependents.filter(|dependent| dependent.unmet.iter().any(wants_it));
        for dependent in failed.filter(|dependent| known.insert(dependent.id)) {
            found.push((dependent.id, Failed::Dependency(task)));
        }
    }
    found
}

/// Returns the tasks that failed because one did, directly or through others, those first that are closer to it. `failed` has the
/// task because of which each failed.
pub fn failed_with(task: TaskId, failed: &HashMap<TaskId, TaskId>) -> Vec<TaskId> {
    let mut by: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
    for (dependent, on) in failed {
        by.entry(*on).or_default().push(*dependent);
    }
    let (mut found, mut next) = (Vec::new(), by.remove(&task).unwrap_or_default());
    while !next.is_empty() {
        next.sort_unstable();
        let behind = next.iter().filter_map(|dependent| by.remove(dependent)).flatten().collect();
        found.append(&mut next);
        next = behind;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(waits: &[&[u32]]) -> Option<Vec<usize>> {
        let id = |n: u32| TaskId::from_ulid(u128::from(n) + 1);
        let tasks: Vec<TaskId> = (0..waits.len() as u32).map(id).collect();
        let waits: Vec<Vec<TaskId>> = waits.iter().map(|on| on.iter().copied().map(id).collect()).collect();
        find_cycle(&tasks, &waits)
    }

    #[test]
    fn circles_are_found_and_named() {
        for (waits, expected) in [
            (&[][..], None),
            (&[&[][..], &[0], &[0, 1], &[99]][..], None),
            (&[&[0][..]][..], Some(vec![0])),
            (&[&[1][..], &[2], &[0]][..], Some(vec![0, 1, 2])),
            (&[&[1][..], &[2], &[3], &[1]][..], Some(vec![1, 2, 3])),
            (&[&[1, 2][..], &[3], &[3], &[]][..], None),
        ] {
            assert_eq!(cycle(waits), expected, "{waits:?}");
        }
    }

    #[test]
    fn whoever_failed_with_a_task_is_found_through_others_and_in_order() {
        let id = |n: u128| TaskId::from_ulid(n);
        let failed =
            HashMap::from([(id(2), id(1)), (id(3), id(1)), (id(9), id(3)), (id(5), id(9)), (id(7), id(6))]);
        assert_eq!(failed_with(id(1), &failed), [id(2), id(3), id(9), id(5)]);
        assert_eq!(failed_with(id(4), &failed), []);
        let circle = HashMap::from([(id(1), id(2)), (id(2), id(1))]);
        assert_eq!(failed_with(id(1), &circle), [id(2), id(1)]);
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let ids: Vec<TaskId> = (0..100_000_u128).map(TaskId::from_ulid).collect();
        let waits: Vec<Vec<TaskId>> = ids.iter().skip(1).map(|id| vec![*id]).chain([Vec::new()]).collect();
        assert_eq!(find_cycle(&ids, &waits), None);
    }
}
