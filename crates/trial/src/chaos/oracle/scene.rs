//! I1, I2, I9, I10, I12, I13, I14: what was seen of daemons and homes as wholes.

use super::super::matrix::Check;
use super::shortage::{self, Shortage};

/// Something that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Sight {
    /// A daemon came after another.
    Successor { before: u64, epoch: u64, ready_ms: u64 },
    /// A second daemon wanted a home that has one.
    SecondDaemon { refused: bool, first_serves: bool },
    /// A holder did not answer while a daemon started: what was recorded of its session meanwhile.
    SilentHolder { cut: bool, replaced: bool },
    /// Caches went; how many sessions there were before, and how many are as they were.
    CachesLost { sessions: usize, kept: usize },
    /// The check of the home: why it is whole, or what is wrong.
    Doctor(Result<String, String>),
    /// A copy of the home was damaged: what was done to it, and how it was served.
    DamagedCopy(Copy),
    /// Something ran out for a while: how one moment of it was served.
    Shortage(Shortage),
    /// Commands were given a copy of the home: what they did to the home itself.
    LivingCopy { commands: Vec<String>, logs: usize, same: usize, serves: bool, agents: usize, alive: usize },
    /// Sessions were removed; how many were there all the same.
    Removed { sessions: usize, left: usize },
    /// Everybody was told to end; how many processes were left.
    Left { processes: usize },
    /// A daemon died although nobody killed it.
    DiedByItself,
    /// A daemon does not come up any more; why.
    NoDaemon { why: String },
}

/// How a damaged copy was served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Copy {
    pub(in super::super) damage: String,
    pub(in super::super) starts: bool,
    /// Sessions that nothing was done to, and how many of them are served as they were.
    pub(in super::super) whole: usize,
    pub(in super::super) served: usize,
    /// What was done has to be said, and whether it was.
    pub(in super::super) must_say: bool,
    pub(in super::super) says: bool,
    /// Something new can be begun.
    pub(in super::super) takes_more: bool,
}

/// How long a daemon may take until it answers, on a machine that is busy with much else.
const READY_MS: u64 = 20_000;

/// Judges one of them.
pub(in super::super) fn judge_sight(sight: &Sight) -> Vec<Check> {
    match sight {
        Sight::Successor { before, epoch, ready_ms } => vec![
            Check::that(9, epoch > before, || {
                format!("a daemon commands under {epoch}, and {before} was before")
            }),
            Check::that(14, *ready_ms <= READY_MS, || format!("a daemon took {ready_ms} ms to be ready")),
        ],
        Sight::SecondDaemon { refused, first_serves } => vec![
            Check::that(9, *refused, || "two daemons own one home".into()),
            Check::that(9, *first_serves, || "the first daemon does not serve any more".into()),
        ],
        Sight::SilentHolder { cut, replaced } => vec![
            Check::that(9, !cut, || "a run was cut because its holder did not answer".into()),
            Check::that(9, !replaced, || "an agent was replaced because its holder did not answer".into()),
        ],
        Sight::CachesLost { sessions, kept } => vec![Check::that(2, kept == sessions, || {
            format!("without caches {kept} of {sessions} sessions are as they were")
        })],
        Sight::Doctor(found) => {
            vec![Check::that(2, found.is_ok(), || found.clone().err().unwrap_or_default())]
        }
        Sight::DamagedCopy(copy) => damaged_copy(copy),
        Sight::Shortage(shortage) => shortage::judge(shortage),
        Sight::LivingCopy { commands, logs, same, serves, agents, alive } => {
            let commands = commands.join(", ");
            vec![
                Check::that(9, same == logs, || {
                    format!("{commands} on a copy changed {} of {logs} sessions of the home", logs - same)
                }),
                Check::that(9, *serves, || format!("{commands} on a copy ended the daemon of the home")),
                Check::that(9, alive == agents, || {
                    format!("{commands} on a copy ended {} of {agents} agents of the home", agents - alive)
                }),
            ]
        }
        Sight::Removed { sessions, left } => vec![Check::that(13, *left == 0, || {
            format!("{left} of {sessions} removed sessions are still there")
        })],
        Sight::Left { processes } => vec![Check::that(13, *processes == 0, || {
            format!("everything was stopped, and {processes} processes live")
        })],
        Sight::DiedByItself => {
            vec![Check::that(10, false, || {
                "a daemon died although nobody killed it; its log may say why".into()
            })]
        }
        Sight::NoDaemon { why } => vec![Check::that(10, false, || format!("no daemon comes up: {why}"))],
    }
}

fn damaged_copy(copy: &Copy) -> Vec<Check> {
    let damage = &copy.damage;
    let mut checks = vec![Check::that(10, copy.starts, || format!("{damage}: no daemon starts"))];
    if copy.starts {
        checks.push(Check::that(10, copy.served == copy.whole, || {
            format!("{damage}: {} of {} whole sessions are served", copy.served, copy.whole)
        }));
        checks.push(Check::that(10, copy.takes_more, || format!("{damage}: nothing new can be begun")));
    }
    if copy.must_say {
        checks.push(Check::that(12, copy.says, || format!("{damage}: nobody says so")));
    }
    checks
}
