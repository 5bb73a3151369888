//! SQLite: the suite, and what only a file can be.

use rekindle_taskdb::{DbError, Sql, Sqlite, TaskDb};

use crate::conformance;

#[test]
fn sqlite_does_what_a_database_of_tasks_must() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tasks.db");
    conformance::all(|| Box::new(Sqlite::open(&path).expect("opened")));
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tasks.db");
    drop(TaskDb::open(Box::new(Sqlite::open(&path).expect("opened"))).expect("made"));
    let mut sql = Sqlite::open(&path).expect("opened");
    sql.run("UPDATE rekindle_schema SET version = 99").expect("changed");
    drop(sql);
    let before = std::fs::read(&path).expect("there");
    let refused = TaskDb::open(Box::new(Sqlite::open(&path).expect("opened"))).err();
    assert!(matches!(refused, Some(DbError::Newer { found: 99, .. })), "{refused:?}");
    assert_eq!(std::fs::read(&path).expect("there").len(), before.len());
}

#[test]
fn a_file_that_is_no_database_is_told_from_one_that_cannot_be_reached() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("tasks.db");
    std::fs::write(&path, "this is no database, however long it is ".repeat(100)).expect("written");
    let opened = Sqlite::open(&path).and_then(|sql| TaskDb::open(Box::new(sql)));
    let damaged = opened.err().expect("it is no database");
    assert!(matches!(damaged, DbError::Damaged(_)), "{damaged:?}");
    let nowhere = Sqlite::open(&directory.path().join("nowhere/tasks.db"));
    assert!(matches!(nowhere, Err(DbError::Unreachable(_))));
}
