//! Situations of the scheduler one by one, and what holds in all of them.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const NONE: &[String] = &[];
const HOUR: i64 = AGES_EVERY_MS as i64;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn task(number: u128) -> TaskId {
    TaskId::from_ulid(number)
}

fn work(agent: &'static str, directory: &'static str) -> Work<'static> {
    Work { agent, directory: Path::new(directory), is_shared: false, labels: NONE }
}

fn pending(number: u128, directory: &'static str) -> Pending<'static> {
    Pending {
        id: task(number),
        priority: 0,
        created_at: at(0),
        eligible_at: at(0),
        hold: None,
        deadline: None,
        work: work("claude", directory),
    }
}

fn limits(total: usize) -> Limits {
    Limits { total, agents: BTreeMap::new(), labels: BTreeMap::new(), none_before: None }
}

fn open(number: u128, work: Work<'static>, is_task: bool) -> OpenRun<'static> {
    OpenRun { by: By::Run(RunId::from_ulid(number)), work, is_task }
}

/// Returns which tasks begin, by their numbers.
fn begun(pending: Vec<Pending<'_>>, open: &[OpenRun<'_>], limits: &Limits, now: i64) -> Vec<u128> {
    let decision = decide(pending, open, limits, at(now));
    decision.begin.iter().filter_map(TaskId::to_ulid).collect()
}

#[test]
fn the_most_urgent_begin_first_then_the_oldest() {
    let urgent = |number, priority| Pending { priority, ..pending(number, "/") };
    let older = Pending { created_at: at(-5), ..pending(4, "/") };
    let all = vec![urgent(1, -3), urgent(2, 7), urgent(3, 0), older];
    let shared = |task: Pending<'static>| Pending { work: Work { is_shared: true, ..task.work }, ..task };
    let all: Vec<_> = all.into_iter().map(shared).collect();
    assert_eq!(begun(all.clone(), &[], &limits(4), 0), [2, 4, 3, 1]);
    assert_eq!(begun(all.clone(), &[], &limits(2), 0), [2, 4]);
    assert_eq!(begun(all, &[], &limits(0), 0), [0; 0]);
}

#[test]
fn an_hour_of_waiting_counts_as_one_more() {
    let old = Pending { priority: 0, ..pending(1, "/a") };
    let new =
        |priority| Pending { priority, created_at: at(HOUR), eligible_at: at(HOUR), ..pending(2, "/b") };
    assert_eq!(begun(vec![new(1), old.clone()], &[], &limits(1), 2 * HOUR), [1], "two hours and one");
    assert_eq!(begun(vec![new(2), old.clone()], &[], &limits(1), 2 * HOUR), [2]);
    // What is held back does not age, also if a clock says that it became eligible later than now.
    let held = Pending { hold: Some(Hold::Until(at(2 * HOUR))), ..old };
    assert_eq!(begun(vec![new(1), held], &[], &limits(1), 2 * HOUR), [2]);
    let later = Pending { eligible_at: at(9 * HOUR), ..pending(1, "/a") };
    assert_eq!(begun(vec![later], &[], &limits(1), HOUR), [1]);
}

#[test]
fn nothing_begins_while_the_budget_of_the_day_is_used_up() {
    let limits = Limits { none_before: Some(at(HOUR)), ..limits(2) };
    let held = Pending { hold: Some(Hold::After(task(9))), ..pending(2, "/b") };
    let decision = decide(vec![pending(1, "/a"), held], &[], &limits, at(5));
    let whys: Vec<_> = decision.wait.iter().map(|waiting| waiting.why).collect();
    assert_eq!(whys, [Why::DayBudget(at(HOUR)), Why::Held(Hold::After(task(9)))]);
    assert_eq!((decision.begin, decision.look_again), (vec![], Some(at(HOUR))));
    let tomorrow = decide(vec![pending(1, "/a")], &[], &limits, at(HOUR));
    assert_eq!(tomorrow.begin, [task(1)]);
}

#[test]
fn a_task_waits_for_what_is_named() {
    let labelled = ["gpu".to_owned()];
    let running = Work { labels: &labelled, ..work("codex", "/busy/inside") };
    let open = [OpenRun { by: By::Run(RunId::from_ulid(1)), work: running, is_task: true }];
    let limits = Limits {
        total: 2,
        agents: BTreeMap::from([("codex".to_owned(), 1)]),
        labels: BTreeMap::from([("gpu".to_owned(), 1)]),
        none_before: None,
    };
    let names = ["TOKEN".to_owned()];
    let missing = Hold::MissingVariables(&names);
    let cases: [(Pending<'_>, Why<'_>); 7] = [
        (pending(1, "/busy"), Why::Directory(By::Run(RunId::from_ulid(1)))),
        (pending(2, "/busy/inside"), Why::Directory(By::Run(RunId::from_ulid(1)))),
        (Pending { work: work("codex", "/a"), ..pending(3, "/") }, Why::Agent("codex")),
        (
            Pending { work: Work { labels: &labelled, ..work("x", "/a") }, ..pending(4, "/") },
            Why::Label("gpu"),
        ),
        (Pending { hold: Some(Hold::Until(at(10))), ..pending(5, "/a") }, Why::Held(Hold::Until(at(10)))),
        (Pending { hold: Some(Hold::After(task(9))), ..pending(6, "/a") }, Why::Held(Hold::After(task(9)))),
        (Pending { hold: Some(missing), ..pending(7, "/a") }, Why::Held(missing)),
    ];
    for (pending, why) in cases {
        let id = pending.id;
        let decision = decide(vec![pending], &open, &limits, at(5));
        assert_eq!((decision.begin, decision.wait), (vec![], vec![Waiting { id, why }]));
    }
    // One of them keeps no other back, and whoever begins is in the way of those behind.
    let both =
        vec![pending(1, "/busy"), pending(2, "/free"), pending(3, "/free/below"), pending(4, "/other")];
    let decision = decide(both, &open, &limits, at(5));
    assert_eq!(decision.begin, [task(2)]);
    let whys: Vec<_> = decision.wait.iter().map(|waiting| waiting.why).collect();
    assert_eq!(whys, [Why::Directory(By::Run(RunId::from_ulid(1))), Why::Total, Why::Total]);
}

#[test]
fn a_shared_task_works_where_others_do_and_is_in_the_way_of_those_that_are_not() {
    let shared = Work { is_shared: true, ..work("claude", "/a") };
    let busy = [open(1, work("claude", "/a"), false)];
    let both = vec![Pending { work: shared, ..pending(1, "/a") }, pending(2, "/a")];
    assert_eq!(begun(both, &busy, &limits(9), 0), [1]);
    assert_eq!(begun(vec![pending(2, "/a")], &[open(1, shared, true)], &limits(9), 0), [0; 0]);
}

#[test]
fn only_runs_of_tasks_count_against_the_limits() {
    let plain = [open(1, work("claude", "/a"), false), open(2, work("claude", "/b"), false)];
    assert_eq!(begun(vec![pending(1, "/c")], &plain, &limits(1), 0), [1]);
    let of_task = [open(1, work("claude", "/a"), true)];
    assert_eq!(begun(vec![pending(1, "/c")], &of_task, &limits(1), 0), [0; 0]);
}

#[test]
fn what_can_never_begin_fails_and_the_next_look_is_when_something_becomes_due() {
    let late = Pending { deadline: Some(at(5)), ..pending(1, "/a") };
    let orphan = Pending { hold: Some(Hold::DependencyFailed(task(9))), ..pending(2, "/b") };
    let held = Pending { hold: Some(Hold::Until(at(70))), deadline: Some(at(90)), ..pending(3, "/c") };
    let blocked = Pending { deadline: Some(at(60)), ..pending(4, "/d") };
    let busy = [open(1, work("claude", "/d"), false)];
    let limits = limits(9);
    let decision = decide(vec![late, orphan, held, blocked], &busy, &limits, at(5));
    assert_eq!(decision.fail, [(task(1), Failed::Deadline), (task(2), Failed::Dependency(task(9)))]);
    assert_eq!((decision.begin, decision.wait.len(), decision.look_again), (vec![], 2, Some(at(60))));
}

/// The least urgent task, while the most urgent ones come every hour and there is room for one.
#[test]
fn nobody_starves() {
    let humble = Pending { priority: -100, ..pending(1, "/a") };
    let mut hour = 0;
    let began = loop {
        let newcomer = Pending {
            priority: 100,
            created_at: at(hour * HOUR),
            eligible_at: at(hour * HOUR),
            ..pending(1000 + hour as u128, "/b")
        };
        if begun(vec![humble.clone(), newcomer], &[], &limits(1), hour * HOUR) == [1] {
            break hour;
        }
        hour += 1;
        assert!(hour < 1_000, "it never begins");
    };
    assert_eq!(began, 200);
}

const DIRECTORIES: [&str; 6] = ["/", "/a", "/a/b", "/a/b/c", "/ab", "/z"];
const AGENTS: [&str; 3] = ["claude", "codex", "gemini"];

prop_compose! {
    fn any_work(labels: &'static [Vec<String>; 3])(
        agent in 0..AGENTS.len(), directory in 0..DIRECTORIES.len(), is_shared in prop::bool::weighted(0.2), label in 0..3_usize,
    ) -> Work<'static> {
        Work { agent: AGENTS[agent], directory: Path::new(DIRECTORIES[directory]), is_shared, labels: &labels[label] }
    }
}

fn labels() -> &'static [Vec<String>; 3] {
    static LABELS: std::sync::OnceLock<[Vec<String>; 3]> = std::sync::OnceLock::new();
    LABELS.get_or_init(|| [vec![], vec!["x".into()], vec!["x".into(), "y".into()]])
}

fn is_in_the_way(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

proptest! {
    /// Whatever waits and whatever is open: limits hold, nobody gets a directory that another works in, those that begin are the
    /// first by rank that can, and nobody is forgotten.
    #[test]
    fn limits_directories_and_ranks_hold(
        waiting in prop::collection::vec((any_work(labels()), -3_i8..4, 0_i64..4, 0_u8..6), 0..24),
        running in prop::collection::vec((any_work(labels()), any::<bool>()), 0..6),
        total in 0_usize..6, per_agent in 0_usize..3, per_label in 0_usize..3,
    ) {
        let now = at(4 * HOUR);
        let all: Vec<Pending<'_>> = waiting.iter().zip(0..).map(|((work, priority, hours, hold), number)| Pending {
            priority: *priority,
            eligible_at: at(hours * HOUR),
            hold: (*hold == 0).then_some(Hold::After(task(99))),
            work: *work,
            ..pending(number, "/")
        }).collect();
        let open: Vec<OpenRun<'_>> =
            running.iter().zip(0..).map(|((work, is_task), number)| self::open(number, *work, *is_task)).collect();
        let limits = Limits {
            total,
            agents: BTreeMap::from([("claude".to_owned(), per_agent)]),
            labels: BTreeMap::from([("x".to_owned(), per_label)]),
            none_before: None,
        };
        let decision = decide(all.clone(), &open, &limits, now);

        let mut told: Vec<TaskId> = decision.begin.clone();
        told.extend(decision.wait.iter().map(|waiting| waiting.id));
        prop_assert_eq!(told.iter().collect::<HashSet<_>>().len(), all.len());
        prop_assert_eq!(told.len(), all.len());

        let of = |id: &TaskId| all.iter().find(|task| task.id == *id).expect("one of them");
        let mut taken: Vec<(Work<'_>, bool)> = open.iter().map(|run| (run.work, run.is_task)).collect();
        let mut before: Option<(Reverse<i64>, TaskId)> = None;
        for id in &decision.begin {
            let task = of(id);
            prop_assert!(task.hold.is_none());
            if !task.work.is_shared {
                prop_assert!(!taken.iter().any(|(work, _)| is_in_the_way(work.directory, task.work.directory)));
            }
            taken.push((task.work, true));
            let place = (Reverse(rank(task, now)), task.id);
            prop_assert!(before.is_none_or(|before| before < place));
            before = Some(place);
        }
        let count = |counts: &dyn Fn(&Work<'_>) -> bool| taken.iter().filter(|(work, task)| *task && counts(work)).count();
        let already = |counts: &dyn Fn(&Work<'_>) -> bool| open.iter().filter(|run| run.is_task && counts(&run.work)).count();
        let any: &dyn Fn(&Work<'_>) -> bool = &|_| true;
        let claude: &dyn Fn(&Work<'_>) -> bool = &|work| work.agent == "claude";
        let labelled: &dyn Fn(&Work<'_>) -> bool = &|work| work.labels.iter().any(|label| label == "x");
        for (counts, most) in [(any, total), (claude, per_agent), (labelled, per_label)] {
            prop_assert!(count(counts) <= most.max(already(counts)));
        }
        // Nobody waits for nothing.
        for waiting in &decision.wait {
            let task = of(&waiting.id);
            let blocked = task.hold.is_some()
                || count(any) >= total
                || (claude(&task.work) && count(claude) >= per_agent)
                || (labelled(&task.work) && count(labelled) >= per_label)
                || taken.iter().any(|(work, _)| is_in_the_way(work.directory, task.work.directory));
            prop_assert!(blocked, "{:?}", waiting);
        }
    }
}

/// Work that takes several turns: a task has one, a pipeline run as many as it has steps.
struct Job {
    number: u128,
    created: i64,
    steps: u32,
    work: Work<'static>,
    /// Since when it waits, and when what it does ends.
    eligible: i64,
    ends: Option<i64>,
}

proptest! {
    /// Tasks and the steps of runs share the places: there are never more than may be, and everybody comes to an end.
    #[test]
    fn neither_tasks_nor_steps_wait_for_ever(
        jobs in prop::collection::vec((0_i64..40, 1_u32..5, 0_usize..4, 1_i64..6), 1..14),
        total in 1_usize..4, per_agent in 1_usize..3,
    ) {
        let directories = ["/a", "/b", "/b/c", "/d"];
        let mut jobs: Vec<Job> = jobs.iter().zip(1..).map(|((created, steps, place, _), number)| Job {
            number, created: *created, steps: *steps, work: work("claude", directories[*place]), eligible: *created, ends: None,
        }).collect();
        let limits = Limits { agents: BTreeMap::from([("claude".to_owned(), per_agent)]), ..limits(total) };
        let mut begun: Vec<u128> = Vec::new();
        for now in 0..1_000_i64 {
            for job in &mut jobs {
                if job.ends.is_some_and(|end| end <= now) {
                    (job.ends, job.steps, job.eligible) = (None, job.steps - 1, now);
                }
            }
            jobs.retain(|job| job.steps > 0);
            if jobs.is_empty() {
                break;
            }
            // A run that has begun keeps its directory between its steps.
            let has_begun = |job: &Job| begun.contains(&job.number);
            let waiting: Vec<Pending<'_>> = jobs.iter().filter(|job| job.created <= now && job.ends.is_none()).map(|job| Pending {
                created_at: at(job.created),
                eligible_at: at(job.eligible),
                work: Work { is_shared: has_begun(job), ..job.work },
                ..pending(job.number, "/")
            }).collect();
            let open: Vec<OpenRun<'_>> = jobs.iter().filter(|job| job.ends.is_some() || has_begun(job)).map(|job| OpenRun {
                by: By::Task(task(job.number)), work: job.work, is_task: job.ends.is_some(),
            }).collect();
            let decision = decide(waiting, &open, &limits, at(now));
            for id in &decision.begin {
                let number = id.to_ulid().expect("a number");
                let job = jobs.iter_mut().find(|job| job.number == number).expect("one of them");
                job.ends = Some(now + 1 + i64::from(job.steps) % 3);
                begun.push(number);
            }
            let running: Vec<&Job> = jobs.iter().filter(|job| job.ends.is_some()).collect();
            prop_assert!(running.len() <= total.min(per_agent));
            for (n, one) in running.iter().enumerate() {
                for other in &running[..n] {
                    prop_assert!(!is_in_the_way(one.work.directory, other.work.directory), "one writes to a directory at a time");
                }
            }
        }
        prop_assert!(jobs.is_empty(), "{} wait for ever", jobs.len());
    }
}
