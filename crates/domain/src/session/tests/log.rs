//! A log for tests, written and read line by line exactly as a real one, and arbitrary legal ones.

use std::fmt;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;

use super::script::{at, draft};
use crate::chain::Link;
use crate::id::SessionId;
use crate::line::{Draft, Envelope, Line, write};
use crate::session::Replay;
use crate::time::Timestamp;
use crate::token::TokenIndex;

/// A log as it grows, and what a reader makes of it.
#[derive(Clone)]
pub(crate) struct Log {
    /// What a reader of the lines has come to.
    pub(crate) replay: Replay,
    /// The lines.
    pub(crate) bytes: Vec<u8>,
    /// What was written, with its time.
    pub(crate) records: Vec<(Timestamp, Draft)>,
}

/// The session of every log here.
pub(crate) fn session() -> SessionId {
    "sess_1".parse().expect("an id")
}

impl Log {
    /// Returns a log of some appends; record n is of second n, and every record must be legal.
    pub(crate) fn of(appends: &[&str]) -> Log {
        let mut log = Log { replay: Replay::new(session()), bytes: Vec::new(), records: Vec::new() };
        appends.iter().for_each(|append| log.append(append));
        assert_eq!(log.replay.oddities, [], "{appends:?}");
        log
    }

    /// Appends one list of records, separated by `;`.
    pub(crate) fn append(&mut self, records: &str) {
        let mut rest = records.split(';').peekable();
        while let Some(record) = rest.next() {
            let second = i64::try_from(self.records.len()).expect("few records") + 1;
            self.record(draft(record), at(second), rest.peek().is_some());
        }
    }

    /// Writes one record and reads it back.
    pub(crate) fn record(&mut self, draft: Draft, ts: Timestamp, more: bool) {
        let position = self.replay.position();
        let at = self.replay.state.happened_at(draft.at, ts);
        let place = Envelope { seq: position.last_seq + 1, ts: &ts.to_string(), at, more };
        let start = self.bytes.len();
        write(&draft, place, Link::new(session(), position.last_hash), &mut self.bytes).expect("it is JSON");
        let line = Line::parse(&self.bytes[start..self.bytes.len() - 1]).expect("a record");
        self.replay.push(&line, self.bytes.len() as u64).expect("it follows");
        self.records.push((ts, draft));
    }

    /// Returns the tokens.
    pub(crate) fn tokens(&self) -> &TokenIndex {
        self.replay.tokens.as_ref().expect("they are wanted")
    }

    /// Tells whether an event may come next.
    fn allows(&self, draft: &Draft) -> bool {
        let (seq, ts) = (self.replay.state.last_seq + 1, at(0));
        self.replay.state.clone().apply(seq, ts, &draft.event).is_ok()
            && self.tokens().clone().apply(seq, ts, &draft.event).is_ok()
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", String::from_utf8_lossy(&self.bytes))
    }
}

/// What happens often. `R` stands for each of three runs, `N` for each of two waits, tokens or holders.
const USUAL: &str = "run.started run=R boot=a; run.started run=R boot=b msg=1; run.adopted run=R boot=a; \
    run.adopted run=R boot=b; run.waiting run=R wait=N; run.waiting run=R wait=N deadline=12; \
    run.waiting run=R wait=N deadline=60 token=3; run.resumed run=R wait=N; token.minted run=R wait=N; \
    token.minted run=R wait=N expires=15; token.minted run=R wait=N token=3; agent.launching holder=N; \
    agent.started holder=N; agent.ready holder=N cursor=c; message.agent run=R holder=N src=7; \
    input.queued run=R holder=N input_seq=N; tool.call tool=N; tool.update tool=N status=completed; \
    message.user msg=N queued=true; usage.updated input_tokens=N cost=0.25; \
    run.checkpoint run=R at=start; run.checkpoint run=R at=end; run.drift run=R agent=null";

/// What happens once in a while: ends, and what comes from outside.
const RARE: &str = "run.completed run=R; run.failed run=R; run.cancelled run=R; \
    run.interrupted run=R reason=process_restart; run.interrupted run=R reason=machine_restart; \
    run.interrupted run=R reason=holder_lost; run.interrupted run=R reason=node_lost; \
    run.interrupted run=R reason=agent_exit; run.interrupted run=R reason=wait_timeout; \
    run.interrupted run=R reason=process_exit; run.cancel_requested run=R; \
    run.cancel_requested run=R why=new_message dropped=[\"msg_1\"]; run.cancel_requested run=null why=stop_all; \
    agent.exited holder=N; token.consumed token=N; token.revoked token=N reason=x; token.expired token=3; \
    session.updated title=new; session.closed; status.derived status=idle; agent.notice";

fn menu(text: &str) -> Vec<Draft> {
    let every =
        text.split(';').flat_map(|line| ["1", "2", "3"].map(|run| line.replace("=R", &format!("={run}"))));
    let every = every.flat_map(|line| ["1", "2"].map(|n| line.replace("=N", &format!("={n}"))));
    let mut lines: Vec<String> = every.collect();
    lines.sort();
    lines.dedup();
    lines.iter().map(|line| draft(line)).collect()
}

static MENUS: LazyLock<[Vec<Draft>; 2]> = LazyLock::new(|| [menu(USUAL), menu(RARE)]);

/// Returns any of the events of which logs are made, legal or not.
pub(crate) fn events() -> impl Strategy<Value = Draft> {
    any::<Index>().prop_map(|pick| pick.get(&MENUS.concat()).clone())
}

/// Returns arbitrary logs in which every record is legal, some of them with a clock that was set back.
pub(crate) fn legal_logs() -> impl Strategy<Value = Log> {
    let step = (any::<Index>(), 0..8u8, 0..6i64, any::<bool>());
    prop::collection::vec(step, 0..40).prop_map(|steps| {
        let mut log = Log::of(&["session.created"]);
        for (pick, rare, back, more) in steps {
            let menu = &MENUS[usize::from(rare == 0)];
            let legal: Vec<&Draft> = menu.iter().filter(|draft| log.allows(draft)).collect();
            if let Some(draft) = legal.get(pick.index(legal.len().max(1))) {
                let second = i64::try_from(log.records.len()).expect("few records") + 1;
                // Mostly on time, once in a while some seconds early.
                let second = if back == 0 { second - 5 } else { second };
                log.record((*draft).clone(), at(second), more);
            }
        }
        assert_eq!(log.replay.oddities, [], "only legal records were chosen");
        log
    })
}
