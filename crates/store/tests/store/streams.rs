//! Streams that are no sessions: a kind of their own, with a fold that counts, beside sessions in one committer and one
//! write-ahead log.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rekindle_domain::event::{Event, IllegalTransition};
use rekindle_domain::id::{BootId, SessionId, StreamId, StreamKind};
use rekindle_domain::line::{Draft, Line};
use rekindle_domain::session::Position;
use rekindle_store::commit::{Append, Commits, Expect, Inline, Persist, Receipts};
use rekindle_store::disk::Disk;
use rekindle_store::fold::{Fold, Record};
use rekindle_store::layout::{Layout, StreamType};
use rekindle_store::{AppendError, OpenError, Opener, RecoverError, ScanError, Store, Unknown, Want};
use rekindle_testkit::clock::SimClock;
use rekindle_testkit::rng::Rng;
use rekindle_testkit::sim::{Fault, FaultKind, OpKind, SimDisk};

use crate::common::{LIMITS, created, marked, markers};

const COUNTERS: StreamKind = StreamKind { byte: 200, prefix: "cnt" };
const STREAMS: &[StreamType] = &[StreamType { kind: COUNTERS, log: counter_log }];

fn counter_log(layout: &Layout, stream: StreamId) -> PathBuf {
    layout.home().join("counters").join(stream.as_str()).join("log.ndjson")
}

/// Counts the notices of a stream, and refuses everything else.
#[derive(Debug, Clone, PartialEq)]
struct Counter {
    stream: StreamId,
    position: Position,
    notices: u64,
}

impl Counter {
    fn empty(stream: StreamId) -> Counter {
        Counter { stream, position: Position::default(), notices: 0 }
    }
}

impl Fold for Counter {
    type Undo = Counter;

    fn stream(&self) -> StreamId {
        self.stream
    }

    fn position(&self) -> Position {
        self.position
    }

    fn set_position(&mut self, position: Position) {
        self.position = position;
    }

    fn apply(&mut self, record: &Record<'_>) -> Result<(), IllegalTransition> {
        match record.event {
            Event::AgentNotice(_) => {
                self.notices += 1;
                Ok(())
            }
            other => Err(IllegalTransition {
                kind: other.name().to_owned(),
                why: "a counter counts notices".into(),
            }),
        }
    }

    fn undo(&self, _: &[Draft]) -> Counter {
        self.clone()
    }

    fn restore(&mut self, undo: Counter) {
        *self = undo;
    }
}

/// A home with two sessions and a counter of a name that is a ULID, and one whose name is not.
struct Home {
    disk: SimDisk,
    clock: Arc<SimClock>,
    store: Store<Inline>,
    sessions: [SessionId; 2],
    counters: [StreamId; 2],
}

fn open(
    disk: &SimDisk,
    clock: &Arc<SimClock>,
    streams: &'static [StreamType],
) -> Result<Store<Inline>, OpenError> {
    let opener = Opener { pid: 1, boot_id: BootId::mint(0, 1) };
    let layout = Layout::with_streams("/home", streams);
    Store::open_inline(Arc::new(disk.clone()), layout, opener, clock.clone(), LIMITS)
}

impl Home {
    fn new() -> Home {
        let (disk, clock) = (SimDisk::new(7), Arc::new(SimClock::default()));
        let store = open(&disk, &clock, STREAMS).expect("an empty home opens");
        let sessions = [SessionId::mint(1, 1), SessionId::mint(2, 2)];
        for session in sessions {
            store.create(session).expect("a new session");
            store.append(Append::durable(session, vec![created()])).expect("the first record");
        }
        let counters =
            [COUNTERS.stream_from_ulid(5).expect("a name"), COUNTERS.stream("cnt_a").expect("a name")];
        disk.create_dir("/home/counters".as_ref()).expect("made");
        for counter in counters {
            disk.create_dir(store.layout().stream_log(counter).parent().expect("a parent")).expect("made");
            disk.sync_dir("/home/counters".as_ref()).expect("synced");
            let opened = store.open_stream(Counter::empty(counter)).expect("a new stream");
            assert_eq!((opened.fold, opened.damage), (Counter::empty(counter), None));
        }
        disk.sync_dir("/home".as_ref()).expect("synced");
        Home { disk, clock, store, sessions, counters }
    }

    /// Opens what is on a disk, and the counters in it.
    fn reopen(&self, disk: SimDisk) -> Result<Home, String> {
        let store = open(&disk, &self.clock, STREAMS).map_err(|error| format!("cannot open: {error:?}"))?;
        for counter in self.counters {
            store.open_stream(Counter::empty(counter)).map_err(|error| format!("{counter}: {error}"))?;
        }
        Ok(Home { disk, clock: self.clock.clone(), store, ..*self })
    }

    fn counter(&self, which: usize) -> Counter {
        self.store.stream::<Counter>(self.counters[which]).expect("it is open").fold
    }

    /// Appends a marked record to a session and to a counter, and two to another counter.
    fn together(&self, marker: u64) -> Result<Receipts, AppendError> {
        self.store.append_together(shared(self, marker))
    }
}

fn notice(marker: u64) -> Vec<Draft> {
    vec![marked(marker, 30, None)]
}

fn shared(home: &Home, marker: u64) -> Append {
    let two = vec![marked(marker, 40, None), marked(marker, 40, None)];
    Append::durable(home.sessions[0], notice(marker))
        .and(home.counters[0], notice(marker))
        .and(home.counters[1], two)
}

/// Returns the markers of a counter's log as it stands on a disk, and checks numbers, chain and lists on the way.
fn counted(disk: &SimDisk, counter: StreamId) -> Result<Vec<u64>, String> {
    let bytes = disk.read_file(counter_log(&Layout::new("/home"), counter)).unwrap_or_default();
    let (mut found, mut position, mut end, mut more) = (Vec::new(), Position::default(), 0, false);
    for bytes in bytes.split_inclusive(|byte| *byte == b'\n') {
        end += bytes.len() as u64;
        let bytes = bytes.strip_suffix(b"\n").ok_or(format!("{counter} ends in half a line"))?;
        let line = Line::parse(bytes).map_err(|error| format!("{counter}: {error}"))?;
        position = position.after(counter, &line, end).map_err(|problem| format!("{counter}: {problem}"))?;
        more = line.more;
        match line.event() {
            Ok(Event::AgentNotice(notice)) => {
                found.extend(notice.what.strip_prefix('m').and_then(|n| n.parse::<u64>().ok()))
            }
            other => return Err(format!("{counter}: {other:?}")),
        }
    }
    if more { Err(format!("{counter} ends in half a list")) } else { Ok(found) }
}

#[test]
fn an_append_to_a_session_and_to_another_stream_goes_to_both_and_both_come_back() {
    let home = Home::new();
    for marker in 1..=3 {
        let receipts = home.together(marker).expect("appended");
        assert_eq!(receipts.first.last_seq, 1 + marker);
        assert_eq!(receipts.more.iter().map(|part| part.last_seq).collect::<Vec<_>>(), [marker, 2 * marker]);
    }
    assert_eq!((home.counter(0).notices, home.counter(1).notices), (3, 6));
    assert!(home.store.stream::<Counter>(home.sessions[0].into()).is_none(), "a session is no counter");
    let check = |home: &Home, what: &str| {
        assert_eq!((home.counter(0).notices, home.counter(1).notices), (3, 6), "{what}");
        assert_eq!(counted(&home.disk, home.counters[0]), Ok(vec![1, 2, 3]), "{what}");
        assert_eq!(counted(&home.disk, home.counters[1]), Ok(vec![1, 1, 2, 2, 3, 3]), "{what}");
        assert_eq!(markers(&home.disk, home.sessions[0]), [1, 2, 3], "{what}");
    };
    check(&home, "written");
    let again = home.reopen(home.disk.fork()).expect("opens");
    check(&again, "replayed from the write-ahead log");
    again.store.committer().checkpoint().expect("a checkpoint");
    check(&again.reopen(again.disk.power_cut(&mut Rng::new(1))).expect("opens"), "from the logs alone");
    let last = again.counter(0).position;
    again.store.append(Append::durable(again.counters[0], notice(9))).expect("it goes on");
    assert_eq!(again.counter(0).position.last_seq, last.last_seq + 1);
}

#[test]
fn of_an_append_to_streams_of_two_kinds_nothing_is_left_when_one_refuses() {
    let home = Home::new();
    home.together(1).expect("appended");
    let state = |home: &Home| {
        let session = home.store.current(home.sessions[0]).expect("open").state.position();
        (session, home.counter(0), home.counter(1))
    };
    let before = state(&home);
    let closed = COUNTERS.stream("cnt_closed").expect("a name");
    for bad in [
        // What a counter does not count, behind and before good parts; a session made twice; a stream that is not open.
        Append::durable(home.sessions[0], notice(2))
            .and(home.counters[0], vec![marked(2, 5, None), created()]),
        Append::durable(home.counters[0], vec![created()]).and(home.sessions[0], notice(2)),
        Append::durable(home.counters[0], notice(2))
            .and(home.counters[0], notice(2))
            .and(home.sessions[0], vec![created()]),
        Append::durable(home.counters[1], notice(2)).and(closed, notice(2)),
        Append {
            expect: Expect::LastSeq(9),
            ..Append::durable(home.counters[0], notice(2)).and(home.sessions[0], notice(2))
        },
    ] {
        home.store.append_together(bad).expect_err("refused");
        assert_eq!(state(&home), before);
    }
    // The same in a group with appends that pass, before and behind.
    let alone =
        |marker| Append { persist: Persist::Process, ..Append::durable(home.counters[0], notice(marker)) };
    let bad = Append::durable(home.counters[0], notice(5)).and(home.sessions[0], vec![created()]);
    let outcomes = home.store.committer().append_all(vec![alone(4), bad, alone(6)]);
    assert!(matches!(&outcomes[..], [Ok(_), Err(AppendError::IllegalTransition(_)), Ok(_)]), "{outcomes:?}");
    assert_eq!(counted(&home.disk, home.counters[0]), Ok(vec![1, 4, 6]));
    assert_eq!(home.counter(0).notices, 3);
}

#[test]
fn a_group_that_cannot_be_written_is_taken_back_from_streams_of_all_kinds() {
    let home = Home::new();
    home.together(1).expect("appended");
    home.disk.inject(Fault::sticky(FaultKind::NoSpace, 0).on(&[OpKind::Write, OpKind::Truncate]).at(".wal"));
    home.together(2).expect_err("the disk is full");
    assert_eq!((home.counter(0).notices, home.counter(1).notices), (1, 2));
    home.disk.clear_faults();
    home.together(3).expect("there is room again");
    assert_eq!(counted(&home.disk, home.counters[1]), Ok(vec![1, 1, 3, 3]));
}

#[test]
fn the_log_of_a_stream_of_another_kind_falls_behind_and_catches_up() {
    let home = Home::new();
    home.disk.inject(Fault::sticky(FaultKind::Eio, 0).on(&[OpKind::Create, OpKind::Write]).at("/counters/"));
    home.together(1).expect("the write-ahead log has it");
    assert_eq!(counted(&home.disk, home.counters[0]), Ok(vec![]));
    home.store.committer().checkpoint().expect_err("no checkpoint passes it");
    home.disk.clear_faults();
    home.store.committer().tick();
    assert_eq!(counted(&home.disk, home.counters[0]), Ok(vec![1]));
    home.store.committer().checkpoint().expect("a checkpoint");
    let again = home.reopen(home.disk.power_cut(&mut Rng::new(3))).expect("opens");
    assert_eq!((again.counter(0).notices, again.counter(1).notices), (1, 2));
}

#[test]
fn damage_in_the_log_of_a_stream_of_another_kind_is_announced_and_nothing_is_added() {
    let home = Home::new();
    home.together(1).expect("appended");
    home.together(2).expect("appended");
    home.store.committer().checkpoint().expect("a checkpoint");
    let log = counter_log(home.store.layout(), home.counters[0]);
    let len = home.disk.read_file(&log).expect("a log").len() as u64;
    for what in ["a byte", "the end"] {
        let disk = home.disk.fork();
        let done =
            if what == "a byte" { disk.flip_byte(&log, 40) } else { disk.truncate_file(&log, len - 10) };
        assert!(done, "{what}");
        // Whoever comes later finds the same.
        for _ in 0..2 {
            let again = home.reopen(disk.clone()).expect("the home opens");
            let found = again.store.stream::<Counter>(again.counters[0]).expect("open");
            assert!(found.damage.is_some(), "{what}");
            let refused = again.store.append(Append::durable(again.counters[0], notice(3)));
            let refused = refused.expect_err("nothing is added");
            let damaged =
                matches!(refused, AppendError::Damaged { stream, .. } if stream == again.counters[0]);
            assert!(damaged, "{what}: {refused}");
            assert_eq!(again.counter(1).notices, 4, "{what}: the other is whole");
        }
    }
}

// I12: the hashes of a long log are verified beside its fold, and nothing behind one that does not fit is taken for true.
#[test]
fn a_changed_byte_is_found_anywhere_in_a_long_log_of_a_stream_of_another_kind() {
    let home = Home::new();
    let counter = home.counters[0];
    for batch in 0..30 {
        let records = (0..20).map(|n| marked(batch * 20 + n, 5000, None)).collect();
        home.store.append(Append::durable(counter, records)).expect("recorded");
    }
    let bytes = home.disk.read_file(counter_log(&Layout::new("/home"), counter)).expect("a log");
    assert!(bytes.len() > 2 << 20, "{} bytes are not long", bytes.len());
    let load = |bytes: &[u8]| {
        let disk = SimDisk::new(3);
        let store = open(&disk, &home.clock, STREAMS).expect("an empty home");
        let log = counter_log(&Layout::new("/home"), counter);
        disk.create_dir("/home/counters".as_ref()).expect("made");
        disk.create_dir(log.parent().expect("a parent")).expect("made");
        disk.write_file(log, bytes);
        store.open_stream(Counter::empty(counter)).expect("loads")
    };
    let whole = load(&bytes);
    assert_eq!((whole.fold, whole.damage), (home.counter(0), None));
    let mut starts: Vec<usize> = memchr::memchr_iter(b'\n', &bytes).map(|end| end + 1).collect();
    starts.insert(0, 0);
    for seq in [1, 2, 300, 599] {
        let mut changed = bytes.clone();
        // In the middle of its text: only the hash tells.
        changed[(starts[seq - 1] + starts[seq]) / 2] ^= 1;
        let loaded = load(&changed);
        let damage = loaded.damage.expect("it is found");
        assert_eq!(damage.offset, starts[seq - 1] as u64, "record {seq}: {damage}");
        assert_eq!(loaded.fold.notices, seq as u64 - 1);
    }
    for (what, end) in [("half a record", bytes.len() - 2500), ("half a list", starts[599])] {
        let loaded = load(&bytes[..end]);
        assert_eq!((loaded.fold.notices, loaded.damage), (580, None), "{what}");
    }
}

/// Does the work that is crashed at every write; `told` is the last append that was answered.
fn work(home: &Home, told: &Mutex<u64>) {
    for marker in 1..=8 {
        home.together(marker).expect("appended");
        *told.lock().unwrap_or_else(PoisonError::into_inner) = marker;
        if marker % 3 == 0 {
            home.store.committer().checkpoint().expect("a checkpoint");
        }
    }
}

/// Checks that of every append all parts are there or none, that what was told is, and that work goes on.
fn judge(image: &SimDisk, home: &Home, told: u64) -> Result<(), String> {
    let home = home.reopen(image.clone())?;
    let session = markers(image, home.sessions[0]);
    let last = session.last().copied().unwrap_or(0);
    let expected: Vec<u64> = (1..=last).collect();
    let twice: Vec<u64> = expected.iter().flat_map(|marker| [*marker, *marker]).collect();
    if last < told || session != expected {
        return Err(format!("told {told}, found {session:?} in the session"));
    }
    let found = (counted(image, home.counters[0])?, counted(image, home.counters[1])?);
    if found != (expected, twice) {
        return Err(format!("{last} in the session, but {found:?} in the counters"));
    }
    let folded = (home.counter(0).notices, home.counter(1).notices);
    let state = home.store.load(home.sessions[0], Want::Status).map_err(|error| error.to_string())?.state;
    if folded != (last, 2 * last) || state.last_seq != 1 + last {
        return Err(format!("{last} in the logs, {folded:?} and {} folded", state.last_seq));
    }
    if let Some((stream, done)) = home
        .store
        .recovered()
        .streams
        .iter()
        .find(|(_, done)| matches!(done, rekindle_store::Completion::Damaged(_)))
    {
        return Err(format!("{stream} is called damaged: {done:?}"));
    }
    home.store.open_session(home.sessions[0]).map_err(|error| error.to_string())?;
    home.together(last + 1).map_err(|error| format!("no append after recovery: {error}"))?;
    home.store.committer().checkpoint().map_err(|error| format!("no checkpoint after recovery: {error}"))
}

// I1, I3, I14
#[test]
fn a_crash_at_any_write_leaves_all_or_nothing_of_an_append_to_streams_of_two_kinds() {
    let home = Home::new();
    let (told, points) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (seen, known, handle) = (points.clone(), told.clone(), home.disk.clone());
    home.disk.set_observer(Box::new(move |op| {
        let told = *known.lock().unwrap_or_else(PoisonError::into_inner);
        let point = (op.to_string(), handle.fork(), told);
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(point);
    }));
    work(&home, &told);
    home.disk.clear_observer();
    let points = std::mem::take(&mut *points.lock().unwrap_or_else(PoisonError::into_inner));
    assert!(points.len() > 50, "{} places to crash at", points.len());
    let mut rng = Rng::new(11);
    for (index, (op, picture, told)) in points.into_iter().enumerate() {
        for power in [true, true, false] {
            let image = if power { picture.power_cut(&mut rng) } else { picture.process_kill(&mut rng) };
            if let Err(why) = judge(&image, &home, told) {
                panic!("crash {index} before {op}, power cut {power}: {why}");
            }
        }
    }
}

#[test]
fn a_stream_of_an_unknown_kind_is_refused_by_name_and_nothing_is_lost() {
    for checkpointed in [false, true] {
        let home = Home::new();
        home.together(1).expect("appended");
        if checkpointed {
            home.store.committer().checkpoint().expect("a checkpoint");
        }
        let files = |disk: &SimDisk| -> Vec<(PathBuf, Option<Vec<u8>>)> {
            let mut paths = disk.paths();
            paths.retain(|path| !path.ends_with("daemon.lock"));
            paths.sort();
            paths.into_iter().map(|path| (path.clone(), disk.read_file(&path))).collect()
        };
        let disk = home.disk.fork();
        let before = files(&disk);
        let error = open(&disk, &home.clock, &[]).err().expect("a kind that nobody knows");
        let OpenError::Recover(RecoverError::Scan(ScanError::Unknown { what, .. })) = &error else {
            panic!("{error:?}");
        };
        assert_eq!(*what, Unknown::Stream(200));
        let text = error.to_string();
        assert!(text.contains("stream of kind 200 at byte"), "{text}");
        assert_eq!(files(&disk), before, "nothing was touched");
        let again = home.reopen(disk).expect("whoever knows the kind opens it");
        assert_eq!((again.counter(0).notices, again.counter(1).notices), (1, 2));
    }
}

#[test]
fn a_stream_of_a_kind_that_the_home_has_no_place_for_is_not_opened() {
    let home = Home::new();
    let store = &home.store;
    let foreign = StreamKind { byte: 201, prefix: "for" }.stream("for_1").expect("a name");
    store.open_stream(Counter::empty(foreign)).expect_err("it has no place");
    store.committer().register(Counter::empty(foreign), None);
    let refused = store.append(Append::durable(foreign, notice(1)));
    assert!(matches!(refused, Err(AppendError::NotOpen(_))), "{refused:?}");
}
