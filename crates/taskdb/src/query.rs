//! Questions for lists of tasks: what narrows them, and a page at a time, the newest first.

use rekindle_domain::event::{TaskKind, TaskStatus};
use rekindle_domain::id::{SessionId, TaskId};

use crate::row::TaskRow;
use crate::sql::Value;

/// What a list of tasks is narrowed by.
#[derive(Debug, Clone, Default)]
pub struct TaskQuery {
    /// Only with one of these statuses; with any if there are none.
    pub statuses: Vec<TaskStatus>,
    /// Only of this kind.
    pub kind: Option<TaskKind>,
    /// Only with this label.
    pub label: Option<String>,
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only in this directory, or below it.
    pub directory: Option<String>,
    /// Only with these words in their title.
    pub words: Option<String>,
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only parts of this task.
    pub parent: Option<TaskId>,
    /// Only those whose id begins with this.
    pub prefix: Option<TaskId>,
    /// Only of this home; of every one that writes to the database without it.
    pub home_id: Option<String>,
    /// Only those before this one: the last of the page before.
    pub before: Option<TaskId>,
    /// Most that are given.
    pub limit: usize,
}

/// A page of tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskPage {
    /// The tasks, the newest first.
    pub tasks: Vec<TaskRow>,
    /// The last of them, if there are more behind it.
    pub next: Option<TaskId>,
}

impl TaskQuery {
    /// Returns the conditions of a statement, and their values.
    pub(crate) fn conditions(&self) -> (String, Vec<Value<'static>>) {
        let mut values = Vec::new();
        let mut given = |value: String| {
            values.push(Value::Text(value.into()));
            format!("${}", values.len())
        };
        let mut conditions = vec!["TRUE".to_owned()];
        if !self.statuses.is_empty() {
            let statuses: Vec<String> =
                self.statuses.iter().map(|status| given(status.as_str().into())).collect();
            conditions.push(format!("status IN ({})", statuses.join(", ")));
        }
        let same = [
            ("kind", self.kind.map(|kind| kind.as_str().to_owned())),
            ("agent_name", self.agent.clone()),
            ("session_id", self.session.map(|session| session.to_string())),
            ("parent_id", self.parent.map(|parent| parent.to_string())),
            ("home_id", self.home_id.clone()),
        ];
        for (column, value) in same {
            conditions.extend(value.map(|value| format!("{column} = {}", given(value))));
        }
        if let Some(label) = &self.label {
            let quoted = serde_json::to_string(label).unwrap_or_default();
            conditions.push(format!("@text_of_json(labels) LIKE {} ESCAPE '~'", given(contains(&quoted))));
        }
        if let Some(directory) = &self.directory {
            let directory = directory.trim_end_matches('/');
            let below = format!("{}/%", escape(directory));
            let (same, below) = (given(directory.to_owned()), given(below));
            conditions.push(format!("(working_dir = {same} OR working_dir LIKE {below} ESCAPE '~')"));
        }
        if let Some(words) = &self.words {
            conditions
                .push(format!("lower(title) LIKE {} ESCAPE '~'", given(contains(&words.to_lowercase()))));
        }
        if let Some(prefix) = self.prefix {
            // Nothing in an id comes behind a tilde.
            let (from, to) = (given(prefix.to_string()), given(format!("{prefix}~")));
            conditions.push(format!("task_id >= {from} AND task_id < {to}"));
        }
        if let Some(before) = self.before {
            conditions.push(format!("task_id < {}", given(before.to_string())));
        }
        (conditions.join(" AND "), values)
    }
}

/// Returns the pattern of a text that has another in it.
fn contains(text: &str) -> String {
    format!("%{}%", escape(text))
}

/// Takes away what `%`, `_` and `~` mean in a pattern.
fn escape(text: &str) -> String {
    text.replace('~', "~~").replace('%', "~%").replace('_', "~_")
}
