//! Loading one session: its caches where they are good, its log's tail behind them, the whole log where not.
//! Reads only.

use rekindle_domain::id::{SessionId, StreamId};
use rekindle_domain::line::{Draft, Line};
use rekindle_domain::session::{LegacySnapshot, Replay, SessionState};
use rekindle_domain::token::TokenIndex;

use crate::cache::{self, Cached, MAX_CACHE};
use crate::crash_report::at_work;
use crate::disk::{Disk, if_exists, read_all};
use crate::error::AtPath;
pub use crate::error::LoadError;
use crate::home_files::HomeFiles;
use crate::layout::Layout;
use crate::log::{Cursor, Damage, LogReader, Stop, Torn, walk};

/// A session as found on home.disk.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Its state, as far as its log is good.
    pub state: SessionState,
    /// Its tokens, as far as its log is good.
    pub tokens: TokenIndex,
    /// Where its log is damaged.
    pub damage: Option<Damage>,
    /// What a crash left at its end.
    pub torn: Option<Torn>,
    /// Records that cannot follow what came before them.
    pub oddities: Vec<(u64, String)>,
    /// Where reading began: what is before it was taken from caches, and nobody has looked at it.
    pub read_from: u64,
    /// What a snapshot of the earlier layout says and the log does not: in the state, unless it is to be appended to.
    pub unlogged: Vec<Draft>,
}

impl Loaded {
    /// Returns what a replay of a whole log came to.
    pub(crate) fn new(replay: Replay, damage: Option<Damage>) -> Loaded {
        let Replay { state, tokens, oddities, .. } = replay;
        let tokens = tokens.unwrap_or_else(|| TokenIndex::empty_at(state.id, state.position()));
        Loaded { state, tokens, damage, torn: None, oddities, read_from: 0, unlogged: Vec::new() }
    }
}

/// Which parts of a session are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// State and tokens.
    Everything,
    /// The state; tokens only if someone is waited for, because only then the status needs them.
    Status,
}

/// Loads a session as it is to be shown.
pub(crate) fn load(home: &HomeFiles, session: SessionId, want: Want) -> Result<Loaded, LoadError> {
    load_within(home, session, want, Effort::FULL)
}

/// How much is done to load a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// A log of which more bytes than this are in no cache is not read.
    pub(crate) most_unread: u64,
    /// A note of damage is looked for; whoever has listed the directory knows where there is one.
    pub(crate) looks_for_note: bool,
}

impl Effort {
    /// Everything that can be known is looked for.
    pub(crate) const FULL: Effort = Effort { most_unread: u64::MAX, looks_for_note: true };
}

/// The same, with so much effort.
pub(crate) fn load_within(
    home: &HomeFiles,
    session: SessionId,
    want: Want,
    effort: Effort,
) -> Result<Loaded, LoadError> {
    let mut loaded = load_logged(home, session, want, effort)?;
    let (last, ts) = (loaded.state.last_seq, loaded.state.updated_at);
    for (seq, draft) in (last.saturating_add(1)..).zip(&loaded.unlogged) {
        let told = loaded.state.apply(seq, ts, &draft.event);
        let told = told.and_then(|()| loaded.tokens.apply(seq, ts, &draft.event));
        loaded.oddities.extend(told.err().map(|illegal| (seq, illegal.to_string())));
    }
    Ok(loaded)
}

/// Loads a session as its log has it: what is to be appended to it follows from that alone.
pub(crate) fn load_logged(
    home: &HomeFiles,
    session: SessionId,
    want: Want,
    effort: Effort,
) -> Result<Loaded, LoadError> {
    let most = effort.most_unread;
    home.check_quarantine(session)?;
    let _at_work = at_work(session, "load");
    let path = home.log(session);
    let Some(reader) = if_exists(LogReader::open(&*home.disk, &path, home.codec())).at_path("read", &path)?
    else {
        // Gone altogether: only the note knows that there was one.
        let damage = damage_note(home, session).ok_or(LoadError::NotFound(session))?;
        return Ok(Loaded::new(Replay::new(session), Some(damage)));
    };
    let (start, mut damage) = cached_start(home, session, &reader)?;
    let (mut replay, stop, mut read_from) = fold(home, &reader, start, session, want, most)?;
    let mut torn = None;
    match stop {
        Stop::End => {}
        Stop::Damaged(found) => damage = damage.or(Some(found)),
        Stop::Torn(found) => {
            if found.half_list {
                check_unread(session, found.offset, most)?;
                // The fold has gone into a list that has no end: again, up to its beginning.
                (replay, read_from) = (Replay::new(session), 0);
                // What caches have passed is read here for the first time.
                damage = match walk(&reader, &mut replay, found.offset).at_path("read", &path)? {
                    Stop::Damaged(found) => damage.or(Some(found)),
                    Stop::Torn(before) if before.offset < found.offset => {
                        let detail = "a record is incomplete, and another follows".into();
                        damage.or(Some(Damage { offset: before.offset, detail }))
                    }
                    Stop::Torn(_) | Stop::End => damage,
                };
            }
            torn = Some(found);
        }
    }
    let damage = damage.or_else(|| if effort.looks_for_note { damage_note(home, session) } else { None });
    let mut loaded = Loaded { torn, read_from, ..Loaded::new(replay, damage) };
    if loaded.state.is_nameless() && loaded.damage.is_none() {
        let found = legacy(&*home.disk, home, session);
        loaded.unlogged = found.map(|found| found.records(&loaded.state, &loaded.tokens)).unwrap_or_default();
    }
    Ok(loaded)
}

/// Reads a snapshot of the earlier layout, if a session has one.
pub(crate) fn legacy(disk: &dyn Disk, layout: &Layout, session: SessionId) -> Option<LegacySnapshot> {
    let bytes = read_all(disk, &layout.snapshot(session), MAX_CACHE).ok()?;
    LegacySnapshot::read(&bytes, session)
}

/// Reads what can be known of a session that cannot be loaded: what its log says, whatever stands beside it; nothing if that
/// cannot be read either. It is for showing: nothing may be added to such a session. Of one that is quarantined nothing is read.
pub(crate) fn stand_in(home: &HomeFiles, session: SessionId) -> Loaded {
    let mut replay = Replay::new(session).deferring_tools();
    if home.check_quarantine(session).is_err() {
        return Loaded::new(replay, None);
    }
    let _at_work = at_work(session, "load");
    // What is in a log that cannot be opened is not known, whatever a start that could not open it either has noted.
    let Ok(reader) = if_exists(home.reader(session)) else { return Loaded::new(replay, None) };
    let mut damage = damage_note(home, session);
    if let Some(reader) = reader
        && let Ok(Stop::Damaged(found)) = walk(&reader, &mut replay, u64::MAX)
    {
        damage = damage.or(Some(found));
    }
    Loaded::new(replay, damage)
}

/// Reads how a session began, its first record, whatever comes behind it. It is for showing one that is still to be read.
pub(crate) fn head(home: &HomeFiles, session: SessionId) -> Loaded {
    let mut replay = Replay::new(session);
    let _at_work = at_work(session, "load");
    if let Ok(reader) = home.reader(session)
        && let Ok(Some(raw)) = reader.forward(Cursor::START).next()
        && let (true, Ok(line)) = (raw.whole, Line::parse(raw.bytes))
    {
        // One that cannot be right is found by whoever reads on.
        let _ = replay.push(&line, raw.end.offset());
    }
    Loaded::new(replay, None)
}

/// Refuses to read more of a log than so many bytes.
fn check_unread(session: SessionId, unread: u64, most: u64) -> Result<(), LoadError> {
    if unread > most { Err(LoadError::Unread { session, unread }) } else { Ok(()) }
}

/// Folds the log from the snapshot on, with tokens if they are wanted; from the beginning where a cache is
/// missing. Tells where it began.
fn fold(
    home: &HomeFiles,
    reader: &LogReader,
    start: Option<SessionState>,
    session: SessionId,
    want: Want,
    most: u64,
) -> Result<(Replay, Stop, u64), LoadError> {
    let walk = |replay: Replay| {
        let from = replay.position().log_offset;
        check_unread(session, reader.len().saturating_sub(from), most)?;
        let mut replay = replay.deferring_tools();
        let stop = walk(reader, &mut replay, u64::MAX).at_path("read", &home.log(session))?;
        Ok((replay, stop, from))
    };
    let Some(state) = start else { return walk(Replay::new(session)) };
    if state.token_records == 0 {
        let tokens = TokenIndex::empty_at(session, state.position());
        return walk(Replay::from(state, Some(tokens)));
    }
    let wanted = |state: &SessionState| want == Want::Everything || state.has_waits();
    if !wanted(&state) {
        let (replay, stop, from) = walk(Replay::from(state.clone(), None))?;
        if !wanted(&replay.state) {
            return Ok((replay, stop, from));
        }
    }
    match cache::read::<TokenIndex>(&*home.disk, &home.tokens(session))? {
        // An index that is behind would miss what the snapshot has passed already; one of another history
        // would bring its tokens back to life.
        Cached::Good(tokens)
            if tokens.id == session
                && tokens.last_seq >= state.last_seq
                && reader.hash_before(tokens.log_offset).is_ok_and(|hash| hash == tokens.last_hash) =>
        {
            walk(Replay::from(state, Some(tokens)))
        }
        Cached::Good(_) | Cached::Missing | Cached::Unreadable => walk(Replay::new(session)),
    }
}

/// Reads the snapshot, if it fits the log; one that knows of records that the log does not have is proof of damage.
fn cached_start(
    home: &HomeFiles,
    session: SessionId,
    reader: &LogReader,
) -> Result<(Option<SessionState>, Option<Damage>), LoadError> {
    let state = match cache::read::<SessionState>(&*home.disk, &home.snapshot(session))? {
        Cached::Good(state) if state.id == session => state,
        // A cache that is missing, unreadable or another's costs a longer replay and nothing else.
        Cached::Good(_) | Cached::Missing | Cached::Unreadable => return Ok((None, None)),
    };
    let position = state.position();
    if position.log_offset > reader.len() {
        let detail = format!(
            "the log ends at byte {}, but its snapshot reaches record {} at byte {}",
            reader.len(),
            position.last_seq,
            position.log_offset
        );
        return Ok((None, Some(Damage { offset: reader.len(), detail })));
    }
    let hash = reader.hash_before(position.log_offset).at_path("read", &home.log(session))?;
    if hash != position.last_hash {
        let detail = format!("record {} is not the one the snapshot was made at", position.last_seq);
        return Ok((None, Some(Damage { offset: position.log_offset, detail })));
    }
    Ok((Some(state), None))
}

/// Reads the note that records are missing from a log.
pub(crate) fn damage_note(home: &HomeFiles, stream: impl Into<StreamId>) -> Option<Damage> {
    let path = home.stream_damage_note(stream.into());
    let bytes = match if_exists(read_all(&*home.disk, &path, 1 << 20)) {
        Ok(found) => found?,
        // One that is there and cannot be read counts too: what it says matters less. A look that failed at none is no damage.
        Err(_) => {
            if_exists(home.disk.stat(&path)).map_or(Some(()), |stat| stat.map(drop)).map(|()| Vec::new())?
        }
    };
    let note: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let detail = note["detail"].as_str().unwrap_or("records are missing").to_owned();
    Some(Damage { offset: note["offset"].as_u64().unwrap_or(0), detail })
}
