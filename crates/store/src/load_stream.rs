//! Loading a stream that is no session: its log through its own fold, from where a cache reaches or from the beginning. Reads only.

use std::io;

use rekindle_domain::event::Event;
use rekindle_domain::id::StreamId;
use rekindle_domain::line::Line;
use rekindle_domain::session::{Position, Problem};

use crate::disk::if_exists;
use crate::error::{AtPath, LoadError};
use crate::fold::{Fold, Record};
use crate::home_files::HomeFiles;
use crate::load::damage_note;
use crate::log::{Checked, Damage, LogForm, Replays, ReplaysChecked, Stop, Torn, walk_batches, walk_each};

/// A stream as found on home.disk.
pub(crate) struct LoadedStream<F> {
    /// What its records amount to, as far as its log is good.
    pub(crate) fold: F,
    /// Where its log is damaged.
    pub(crate) damage: Option<Damage>,
    /// What a crash left at its end.
    pub(crate) torn: Option<Torn>,
    /// How its log is kept.
    pub(crate) form: LogForm,
}

/// Folds the log of a stream into `empty`, or into what a cache says if that fits the log; a stream without a log has no records
/// yet.
pub(crate) fn load_stream<F: Fold>(
    home: &HomeFiles,
    empty: F,
    cached: Option<F>,
) -> Result<LoadedStream<F>, LoadError> {
    let stream = empty.stream();
    let path = home.stream_log(stream);
    if home.streams().kind(stream.kind()).is_none() {
        let what = format!("streams of kind {} have no place in this home", stream.kind());
        Err(io::Error::new(io::ErrorKind::InvalidInput, what)).at_path("read", &path)?;
    }
    let noted = damage_note(home, stream);
    let Some(reader) = if_exists(home.stream_reader(stream)).at_path("read", &path)? else {
        let damage = noted.or_else(|| cached.and_then(|cached| beyond(cached.position(), 0)));
        return Ok(LoadedStream { fold: empty, damage, torn: None, form: LogForm::Plain });
    };
    let reaches_beyond = cached.as_ref().and_then(|cached| beyond(cached.position(), reader.len()));
    let fits = |position: Position| {
        position.log_offset <= reader.len()
            && reader.hash_before(position.log_offset).is_ok_and(|hash| hash == position.last_hash)
    };
    let cached = cached.filter(|cached| fits(cached.position()));
    let replay = |start: &F, end: u64| {
        let mut replay = StreamReplay { whole: start.position(), fold: start.clone() };
        let stop = walk_batches(&reader, &mut replay, end)
            .and_then(|()| walk_each(&reader, &mut replay, end, &mut |_, _| {}));
        stop.at_path("read", &path).map(|stop| (replay.fold, stop))
    };
    let (mut fold, stop) = replay(cached.as_ref().unwrap_or(&empty), u64::MAX)?;
    let (torn, damage) = match stop {
        Stop::End => (None, None),
        Stop::Damaged(damage) => (None, Some(damage)),
        // No crash leaves anything half in a log that was compressed whole.
        Stop::Torn(torn) if reader.form() == LogForm::Compressed => {
            let detail = "the compressed log is damaged from here on".into();
            (None, Some(Damage { offset: torn.offset, detail }))
        }
        Stop::Torn(torn) => (Some(torn), None),
    };
    if let Some(torn) = torn.filter(|torn| torn.half_list) {
        // The fold has gone into a list that has no end: again, up to its beginning.
        fold = replay(&empty, torn.offset)?.0;
    }
    let damage = damage.or(reader.cut_short().cloned()).or(reaches_beyond).or(noted);
    Ok(LoadedStream { fold, damage, torn, form: reader.form() })
}

/// Tells that a cache knows of records that the log does not have: that is proof of damage.
fn beyond(position: Position, end: u64) -> Option<Damage> {
    let detail = || {
        format!(
            "the log ends at byte {end}, but its cache reaches record {} at byte {}",
            position.last_seq, position.log_offset
        )
    };
    (position.log_offset > end).then(|| Damage { offset: end, detail: detail() })
}

/// A fold in progress over the log of a stream.
struct StreamReplay<F> {
    fold: F,
    whole: Position,
}

impl<F: Fold> StreamReplay<F> {
    /// What cannot be read or cannot follow is passed over, as in a session's log: the record itself is undamaged.
    fn take_in(&mut self, line: &Line<'_>, event: Option<&Event<'_>>, position: Position) {
        if let Some(event) = event {
            let _ = self.fold.apply(&Record::of(line, event));
        }
        self.fold.set_position(position);
        if !line.more {
            self.whole = position;
        }
    }
}

impl<F: Fold> Replays for StreamReplay<F> {
    fn position(&self) -> Position {
        self.fold.position()
    }

    fn whole(&self) -> Position {
        self.whole
    }

    fn push(&mut self, line: &Line<'_>, end: u64) -> Result<(), Problem> {
        let position = self.fold.position().after(self.fold.stream(), line, end)?;
        self.take_in(line, line.event().ok().as_ref(), position);
        Ok(())
    }
}

impl<F: Fold> ReplaysChecked for StreamReplay<F> {
    fn stream(&self) -> StreamId {
        self.fold.stream()
    }

    fn push_checked(&mut self, Checked { line, event }: &Checked<'_>, end: u64) -> Result<(), Problem> {
        let position = self.fold.position().after_unverified(line, end)?;
        self.take_in(line, event.as_ref(), position);
        Ok(())
    }
}
