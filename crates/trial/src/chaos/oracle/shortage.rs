//! I1, I5, I8, I12, I14: a home that lacks something for a while, room on its disk or descriptors. What was acknowledged is
//! shown, told and kept while it lasts; what cannot go on says why, and goes on by itself when it is over.

use serde_json::Value;

use super::super::matrix::Check;
use super::text;

/// When a home was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Moment {
    /// While it lacked something.
    During,
    /// Still, by a daemon that came after one that was killed.
    Killed,
    /// When it lacked nothing any more, by the same daemon.
    Over,
    /// Then, by another daemon.
    Restarted,
}

/// Something that the daemon said yes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Acknowledged {
    Title(String),
    /// A message, and how often its agent was given it.
    Message {
        message_id: String,
        told: usize,
    },
}

/// A session as it was served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Shown {
    pub(in super::super) id: String,
    pub(in super::super) acknowledged: Vec<Acknowledged>,
    /// Its records, as `/log` has them.
    pub(in super::super) log: Vec<Value>,
    /// The newest record that a subscriber has heard.
    pub(in super::super) heard: u64,
    /// What the daemon says of it; null if it does not answer.
    pub(in super::super) view: Value,
    /// Records in the file of its log.
    pub(in super::super) in_file: usize,
}

/// How a home was served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Shortage {
    /// What was lacking, in a few words.
    pub(in super::super) lack: &'static str,
    pub(in super::super) moment: Moment,
    pub(in super::super) sessions: Vec<Shown>,
    /// What was refused: status and body.
    pub(in super::super) refusals: Vec<(u16, String)>,
}

/// How the system names what ran out.
const LACKS: [&str; 2] = ["(os error 24)", "(os error 11)"];

pub(super) fn judge(shortage: &Shortage) -> Vec<Check> {
    let mut checks: Vec<Check> = shortage.sessions.iter().flat_map(|one| session(shortage, one)).collect();
    for (status, body) in &shortage.refusals {
        // Full, not now, or the lack itself by name.
        let named = *status == 500 && LACKS.iter().any(|lack| body.contains(lack));
        checks.push(Check::that(12, named || matches!(status, 503 | 507), || {
            format!("{}: a request was refused with {status}: {body}", shortage.words())
        }));
    }
    checks
}

impl Acknowledged {
    fn words(&self) -> String {
        match self {
            Acknowledged::Title(title) => format!("the title {:.20}…", title),
            Acknowledged::Message { message_id, .. } => format!("the message {message_id}"),
        }
    }
}

impl Shortage {
    fn words(&self) -> String {
        let when = match self.moment {
            Moment::During => "while it lasted",
            Moment::Killed => "while it lasted, after kill -9 of the daemon",
            Moment::Over => "when it was over, without a restart",
            Moment::Restarted => "when it was over, after a restart",
        };
        format!("{}, {when}", self.lack)
    }
}

fn session(shortage: &Shortage, shown: &Shown) -> Vec<Check> {
    let words = || format!("{}: {}", shortage.words(), shown.id);
    let last = shown.log.last().and_then(|record| record["seq"].as_u64()).unwrap_or(0);
    let mut checks = vec![
        Check::that(8, shown.view["last_seq"].as_u64() == Some(last), || {
            format!("{}: the status is of record {}, /log ends at {last}", words(), shown.view["last_seq"])
        }),
        Check::that(12, shown.heard == last, || {
            format!("{}: a subscriber heard up to record {} of {last}", words(), shown.heard)
        }),
    ];
    for one in &shown.acknowledged {
        checks.push(Check::that(1, is_in(one, &shown.log), || {
            format!("{}: acknowledged and not in /log, which ends at {last}: {}", words(), one.words())
        }));
        if let Acknowledged::Message { message_id, told } = one {
            checks.push(Check::that(5, *told <= 1, || {
                format!("{}: an agent was given {message_id} {told} times", words())
            }));
        }
    }
    let failed: Vec<&str> = shown
        .log
        .iter()
        .filter(|record| record["kind"] == "run.failed")
        .map(|record| text(&record["error"]))
        .collect();
    checks.push(Check::that(12, failed.is_empty(), || {
        format!("{}: a run failed for it: {}", words(), failed.join("; "))
    }));
    let unanswered = unanswered(shown);
    match shortage.moment {
        Moment::During | Moment::Killed => {
            checks.push(Check::that(12, unanswered == 0 || is_explained(&shown.view), || {
                format!("{}: {unanswered} messages wait, and nothing says why", words())
            }));
        }
        Moment::Over | Moment::Restarted => {
            checks.push(Check::that(14, unanswered == 0, || {
                let (status, held) = (&shown.view["status"], &shown.view["held"]);
                format!("{}: {unanswered} messages are not answered: status {status}, held {held}", words())
            }));
            checks.push(Check::that(12, shown.in_file == shown.log.len(), || {
                format!("{}: {} of {} records are in its file", words(), shown.in_file, shown.log.len())
            }));
            checks.push(Check::that(8, shown.view["health"]["state"] == "ok", || {
                format!("{}: its health is {}", words(), shown.view["health"])
            }));
        }
    }
    checks
}

fn is_in(one: &Acknowledged, log: &[Value]) -> bool {
    log.iter().any(|record| match one {
        Acknowledged::Title(title) => record["title"] == **title,
        Acknowledged::Message { message_id, .. } => {
            record["kind"] == "message.user" && record["message_id"] == **message_id
        }
    })
}

/// Returns how many messages were acknowledged whose run has not completed.
pub(in super::super) fn unanswered(shown: &Shown) -> usize {
    let completed = |message: &str| {
        let begun = |record: &&Value| record["kind"] == "run.started" && record["message_id"] == message;
        let run = shown.log.iter().find(begun).map(|record| &record["run_id"]);
        let ended = |run: &Value| {
            shown.log.iter().any(|record| record["kind"] == "run.completed" && record["run_id"] == *run)
        };
        run.is_some_and(ended)
    };
    let messages = shown.acknowledged.iter().filter_map(|one| match one {
        Acknowledged::Message { message_id, .. } => Some(message_id),
        Acknowledged::Title(_) => None,
    });
    messages.filter(|message| !completed(message)).count()
}

/// Tells whether a session says why it does not go on.
pub(in super::super) fn is_explained(view: &Value) -> bool {
    view["held"].is_string() || view["health"]["state"] == "degraded"
}
