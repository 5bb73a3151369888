//! The committer: takes the records of all streams, writes them to the write-ahead log in one write, syncs
//! once if anyone asks, then brings the streams' logs up to date, then answers. What a stream's records mean is its fold's affair.
//!
//! `machine` is the state machine, driven step by step and without a clock or thread of its own, so that tests can
//! crash it anywhere; `thread` runs it for real.

mod background_sync;
mod erased_fold;
mod group_commit;
mod helper_thread;
mod inline;
mod log_writes;
mod machine;
mod open_stream;
mod open_streams;
mod published_streams;
mod queue;
mod rewrite;
mod thread;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

pub use erased_fold::MAX_RECORD;
pub use inline::Inline;
pub use machine::{CommitMachine, Limits};
pub use thread::{Committer, Ticket};

use rekindle_domain::chain::ChainHash;
use rekindle_domain::event::Durability;
use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::line::Draft;
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Timestamp;
use rekindle_domain::token::TokenIndex;

use self::machine::Checkpointed;
use self::open_stream::OpenStream;
use crate::error::AppendError;
use crate::fold::Fold;
use crate::home::HomeLock;
use crate::log::{Damage, LogForm};
use crate::session_fold::SessionFold;

/// The durability of an append when it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persist {
    /// Handed to the kernel: survives our death; on disk within a second.
    Process,
    /// On disk: survives a power cut.
    Disk,
}

/// An expectation: what the caller thinks of the stream's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing: append behind whatever is there.
    Anything,
    /// This is the last record; refuse if it is not.
    LastSeq(u64),
}

/// A list of records for one stream, and lists for others along with it: all or none of them.
#[derive(Debug, Clone)]
pub struct Append {
    /// The stream.
    pub stream: StreamId,
    /// The records, in order.
    pub records: Vec<Draft>,
    /// How durable they are when answered.
    pub persist: Persist,
    /// What must be the last record before them.
    pub expect: Expect,
    /// What is added to other logs, or to this one behind the rest.
    pub more: Vec<Part>,
}

/// A list of records for one more stream.
#[derive(Debug, Clone)]
pub struct Part {
    /// The stream.
    pub stream: StreamId,
    /// The records, in order.
    pub records: Vec<Draft>,
    /// What must be the last record before them.
    pub expect: Expect,
}

impl Append {
    /// Returns an append that must be on disk before it is answered.
    pub fn durable(stream: impl Into<StreamId>, records: Vec<Draft>) -> Append {
        let stream = stream.into();
        Append { stream, records, persist: Persist::Disk, expect: Expect::Anything, more: Vec::new() }
    }

    /// Returns an append that is answered once it is where its records must be: on disk, if one of them must.
    pub fn as_needed(stream: impl Into<StreamId>, records: Vec<Draft>) -> Append {
        match records.iter().any(|draft| draft.event.durability() == Durability::Disk) {
            true => Append::durable(stream, records),
            false => Append::quick(stream, records),
        }
    }

    /// Returns an append that is answered once the kernel has it.
    pub fn quick(stream: impl Into<StreamId>, records: Vec<Draft>) -> Append {
        Append { persist: Persist::Process, ..Append::durable(stream, records) }
    }

    /// Adds a list for another stream: both are appended, or neither.
    pub fn and(mut self, stream: impl Into<StreamId>, records: Vec<Draft>) -> Append {
        self.more.push(Part { stream: stream.into(), records, expect: Expect::Anything });
        self
    }

    /// Returns the lists, each with its stream and what must be its last record.
    fn parts(&self) -> impl Iterator<Item = (StreamId, &[Draft], Expect)> {
        let first = std::iter::once((self.stream, &self.records[..], self.expect));
        first.chain(self.more.iter().map(|part| (part.stream, &part.records[..], part.expect)))
    }

    /// Tells whether it adds to a stream.
    fn concerns(&self, stream: StreamId) -> bool {
        self.parts().any(|(part, ..)| part == stream)
    }

    /// Tells whether it touches more than one log.
    fn is_shared(&self) -> bool {
        !self.more.is_empty()
    }
}

/// The receipt for one list of records: where it is in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    /// The number of its first record.
    pub first_seq: u64,
    /// The number of its last record.
    pub last_seq: u64,
    /// The hash of its last record.
    pub last_hash: ChainHash,
    /// The time in its records.
    pub ts: Timestamp,
}

/// The receipts of an append, one for each of its lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipts {
    /// That of the append's own stream.
    pub first: Receipt,
    /// Those of the others, in order.
    pub more: Vec<Receipt>,
}

/// A stream as the committer has it.
#[derive(Debug, Clone)]
pub struct Committed<F> {
    /// What its records amount to.
    pub fold: F,
    /// Where its log is damaged; then nothing can be appended.
    pub damage: Option<Arc<Damage>>,
}

/// A session as the committer has it.
#[derive(Debug, Clone)]
pub struct Current {
    /// Its state.
    pub state: Arc<SessionState>,
    /// Its tokens.
    pub tokens: Arc<TokenIndex>,
    /// Where its log is damaged; then nothing can be appended.
    pub damage: Option<Arc<Damage>>,
}

impl From<Committed<SessionFold>> for Current {
    fn from(committed: Committed<SessionFold>) -> Current {
        let Committed { fold: SessionFold { state, tokens, .. }, damage } = committed;
        Current { state, tokens, damage }
    }
}

/// A committer, run on a thread of its own or on the caller's.
pub trait Commits: Send + Sync + Sized {
    /// Starts one; `lock` is let go of when it has ended.
    fn start(machine: CommitMachine, lock: Arc<HomeLock>) -> io::Result<Self>;

    /// Appends to several logs, all or none, and waits.
    fn append_together(&self, append: Append) -> Result<Receipts, AppendError>;

    /// Says that an append is about to come, for a committer that has to be woken; nobody waits for that.
    fn expect_append(&self) {}

    /// Has a function called with the state machine, behind everything that was handed over before; not at all once the
    /// committer is gone.
    fn post(&self, call: Call);

    /// The same for a function that looks at nothing but what was answered before: it need not come behind appends that are
    /// under way, and does not keep these from being written together.
    fn post_ahead(&self, call: Call) {
        self.post(call);
    }

    /// Appends and waits.
    fn append(&self, append: Append) -> Result<Receipt, AppendError> {
        self.append_together(append).map(|receipts| receipts.first)
    }

    /// Has a function called with the state machine and waits for what it returns; none if the committer is gone.
    fn ask<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut CommitMachine) -> T + Send + 'static,
    ) -> Option<T> {
        let (call, answer) = with_answer(call);
        self.post(call);
        answer.recv().ok()
    }

    /// Takes in a stream so that it can be appended to; one that is in already stays as it is. It is published: whoever takes in a
    /// stream looks at it, and need not wait for the committer then.
    fn register<F: Fold>(&self, fold: F, damage: Option<Damage>) {
        self.register_as(fold, damage, LogForm::Plain);
    }

    /// The same for a stream whose log is kept in this form: nothing can be appended to one that is compressed.
    fn register_as<F: Fold>(&self, fold: F, damage: Option<Damage>, form: LogForm) {
        let stream = fold.stream();
        let open = OpenStream::new(fold, damage, form);
        self.post_ahead(Box::new(move |machine| {
            machine.register(open);
            machine.current::<F>(stream);
        }));
    }

    /// Lets go of a stream that has nothing on its way to disk.
    fn release(&self, stream: StreamId) {
        self.post(Box::new(move |machine| machine.release(stream)));
    }

    /// Returns a stream as of everything answered before, if it is open and its fold is of this type.
    fn current<F: Fold>(&self, stream: StreamId) -> Option<Committed<F>> {
        let (call, answer) = with_answer(move |machine| machine.current(stream));
        self.post_ahead(call);
        answer.recv().ok().flatten()
    }

    /// Makes everything committed before durable.
    fn sync(&self) -> Result<(), AppendError> {
        self.ask(CommitMachine::sync).unwrap_or(Err(AppendError::Closed))
    }

    /// Makes the logs durable by themselves and drops what the write-ahead log no longer needs; appends of others go on
    /// meanwhile.
    fn checkpoint(&self) -> io::Result<()> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let told =
            Box::new(move |outcome: Checkpointed| drop(sender.send(outcome.map_err(io::Error::other))));
        self.post(Box::new(move |machine| machine.checkpoint_with(told)));
        receiver.recv().unwrap_or_else(|_| closed())
    }

    /// Gives up the room that is kept for the records that end work; without a committer there is nobody to give anything up.
    fn make_room(&self) {
        let _ = self.ask(CommitMachine::make_room);
    }

    /// Removes the files of a session whose deletion is recorded.
    fn remove(&self, session: SessionId) -> io::Result<()> {
        self.ask(move |machine| machine.remove(session)).unwrap_or_else(closed)
    }

    /// Sets the files of a damaged session aside, and tells where.
    fn set_aside(&self, session: SessionId) -> io::Result<PathBuf> {
        self.ask(move |machine| machine.set_aside(session)).unwrap_or_else(closed)
    }
}

/// A function that is called with the state machine.
pub type Call = Box<dyn FnOnce(&mut CommitMachine) + Send>;

/// Returns a call, and where what it returns comes out.
fn with_answer<T: Send + 'static>(
    call: impl FnOnce(&mut CommitMachine) -> T + Send + 'static,
) -> (Call, mpsc::Receiver<T>) {
    let (sender, receiver) = mpsc::sync_channel(1);
    (Box::new(move |machine| drop(sender.send(call(machine)))), receiver)
}

fn closed<T>() -> io::Result<T> {
    Err(io::Error::other("the store is closed"))
}

/// The reply to an append: where its outcome goes.
pub(crate) enum Reply {
    /// To someone who waits for it, or will: one of the places that were handed over together.
    Slot(Arc<[Slot]>, usize),
    /// To a function, called on the committer's thread: it must not block.
    Call(Box<dyn FnOnce(Outcome) + Send>),
}

/// An append that was submitted, and where its outcome goes.
pub(crate) type Submitted = (Append, Reply);

pub(crate) type Outcome = Result<Receipts, AppendError>;

impl Reply {
    fn send(self, outcome: Outcome) {
        match self {
            Reply::Slot(slots, index) => slots[index].put(Answer { outcome, append: None }),
            Reply::Call(call) => call(outcome),
        }
    }

    /// Sends the receipts of an append, and the append itself to whoever waits for them; gives it back where nobody does.
    fn send_receipts(self, receipts: Receipts, append: Append) -> Option<Append> {
        match self {
            Reply::Slot(slots, index) => {
                slots[index].put(Answer { outcome: Ok(receipts), append: Some(append) });
                None
            }
            Reply::Call(call) => {
                call(Ok(receipts));
                Some(append)
            }
        }
    }
}

/// An answer to somebody who waits: the outcome, and what was appended, which is dropped by who made it: the memory of many records
/// is freed by many threads then, and not by the one that all of them wait for.
#[derive(Debug)]
pub(crate) struct Answer {
    outcome: Outcome,
    append: Option<Append>,
}

impl Answer {
    /// Takes the outcome, and drops the rest.
    fn into_outcome(self) -> Outcome {
        drop(self.append);
        self.outcome
    }
}

/// A place for one answer.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<Option<Answer>>);

impl Slot {
    fn put(&self, answer: Answer) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }

    fn take(&self) -> Option<Answer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
