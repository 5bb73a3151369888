//! What both databases must do alike.

use rekindle_domain::event::{Event, TaskKind, TaskStatus};
use rekindle_taskdb::{Sql, TaskDb, TaskPage, TaskQuery};

use crate::records::{STREAM, at, day, id, owner, write_events};
use crate::{pipelines, sessions};

/// Everything that a database says of a home.
fn everything(db: &mut TaskDb, home: &str) -> String {
    let query = TaskQuery { home_id: Some(home.into()), limit: 10_000, ..TaskQuery::default() };
    let TaskPage { tasks, .. } = db.list(&query).expect("listed");
    let mut told = String::new();
    for task in tasks {
        let history = db.transitions(task.task_id).expect("asked");
        for (line, n) in history.iter().zip(1..) {
            assert_eq!(line.n, n, "without a gap");
        }
        assert_eq!(history.len(), task.transitions as usize);
        told.push_str(&format!("{task:?}\n{history:?}\n"));
    }
    told.push_str(&format!("{:?}", db.stats(home, at(1_000)).expect("counted")));
    told
}

/// The suite: `connect` opens the same empty database again and again.
pub(crate) fn all(mut connect: impl FnMut() -> Box<dyn Sql>) {
    let mut db = TaskDb::open(connect()).expect("made");
    let (mine, other, events) = (owner("home-a"), owner("home-b"), day(40));
    assert_eq!(db.cursor("home-a", STREAM).expect("asked"), None);
    write_events(&mut db, &mine, &events, 7);
    let whole = everything(&mut db, "home-a");
    assert_eq!(
        db.cursor("home-a", STREAM).expect("asked").map(|cursor| cursor.seq),
        Some(events.len() as u64)
    );

    // Again, from the beginning, all at once: the same rows.
    db.forget("home-a").expect("forgotten");
    assert_eq!(db.cursor("home-a", STREAM).expect("asked"), None);
    write_events(&mut db, &mine, &events, 1_000);
    assert_eq!(everything(&mut db, "home-a"), whole);
    drop(db);
    let mut db = TaskDb::open(connect()).expect("opened again");
    assert_eq!(everything(&mut db, "home-a"), whole);

    questions(&mut db);
    sessions::all(&mut db);
    pipelines::all(&mut db);

    // Another home writes its own, and each sees only its own if it asks so.
    write_events(&mut db, &other, &renamed(&events), 50);
    assert_eq!(everything(&mut db, "home-a"), whole);
    let everybody = db.list(&TaskQuery { limit: 1_000, ..TaskQuery::default() }).expect("listed");
    assert_eq!(everybody.tasks.len(), 80);

    // What ended long ago goes, and the counts with it.
    let gone = db.remove_ended("home-a", at(50), at(0)).expect("removed");
    let left = everything(&mut db, "home-a");
    assert!(gone > 0 && left.len() < whole.len());
    let stats = db.stats("home-a", at(1_000)).expect("counted");
    assert_eq!(stats.statuses.values().sum::<u64>(), 40 - gone);
    assert_eq!(db.remove_ended("home-a", at(50), at(0)).expect("removed"), 0);
}

/// The same records of other tasks.
fn renamed(events: &[Event<'static>]) -> Vec<Event<'static>> {
    let mut events = events.to_vec();
    for event in &mut events {
        let task = match event {
            Event::TaskCreated(record) => &mut record.task_id,
            Event::TaskClaimed(record) => &mut record.task_id,
            Event::TaskWaiting(record) => &mut record.task_id,
            Event::TaskRequeued(record) => &mut record.task_id,
            Event::TaskChanged(record) => &mut record.task_id,
            Event::TaskCancelRequested(record) => &mut record.task_id,
            Event::TaskEnded(record) => &mut record.task_id,
            _ => continue,
        };
        *task = rekindle_domain::id::TaskId::from_ulid(task.to_ulid().expect("minted") + (1 << 90));
    }
    events
}

fn questions(db: &mut TaskDb) {
    let all = TaskQuery { limit: 1_000, ..TaskQuery::default() };
    let mut count = |query: TaskQuery| db.list(&query).expect("listed").tasks.len();
    let with = |change: &dyn Fn(&mut TaskQuery)| {
        let mut query = all.clone();
        change(&mut query);
        query
    };
    for (expected, query) in [
        (40, all.clone()),
        (10, with(&|query| query.statuses = vec![TaskStatus::Completed])),
        (5, with(&|query| query.statuses = vec![TaskStatus::WaitingInput])),
        (15, with(&|query| query.statuses = vec![TaskStatus::Completed, TaskStatus::Running])),
        (20, with(&|query| query.agent = Some("codex".into()))),
        (14, with(&|query| query.label = Some("ci".into()))),
        (14, with(&|query| query.label = Some("a_b%".into()))),
        (0, with(&|query| query.label = Some("c".into()))),
        (14, with(&|query| query.directory = Some("/work/0".into()))),
        (40, with(&|query| query.directory = Some("/work/".into()))),
        (0, with(&|query| query.directory = Some("/wor".into()))),
        (40, with(&|query| query.words = Some("100% \"QUOTED\"".into()))),
        (1, with(&|query| query.words = Some("task 39:".into()))),
        (0, with(&|query| query.words = Some("task_39".into()))),
        (40, with(&|query| query.kind = Some(TaskKind::Task))),
        (0, with(&|query| query.kind = Some(TaskKind::Run))),
        (1, with(&|query| query.parent = Some(id(0)))),
        (40, with(&|query| query.prefix = Some("task_0".parse().expect("the beginning of an id")))),
        (1, with(&|query| query.prefix = Some(id(7)))),
        (0, with(&|query| query.prefix = Some("task_7zz".parse().expect("the beginning of an id")))),
    ] {
        assert_eq!(count(query.clone()), expected, "{query:?}");
    }
    // Pages, the newest first, each task once.
    let mut seen = Vec::new();
    let mut before = None;
    for _ in 0..10 {
        let page = db.list(&TaskQuery { limit: 9, before, ..TaskQuery::default() }).expect("listed");
        seen.extend(page.tasks.iter().map(|task| task.task_id));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, (0..40).rev().map(id).collect::<Vec<_>>());
    let found = db.tasks(&[id(3), id(5), id(99)]).expect("asked");
    assert_eq!(found.len(), 2);
    let waits: Vec<_> = found.iter().flat_map(|row| &row.after).map(|one| one.task_id).collect();
    assert_eq!(waits, [id(4)]);
    let stats = db.stats("home-a", at(1_000)).expect("counted");
    assert_eq!(stats.statuses[&TaskStatus::Completed], 10);
    assert_eq!(stats.agents["claude"].values().sum::<u64>(), 20);
    assert_eq!(stats.day.ended[&TaskStatus::Failed], 5);
    assert!(stats.day.median_ms.is_some_and(|median| Some(median) <= stats.day.p90_ms));
}
