//! Searches through a session's log, whose lines tell more than its state does.

use std::io;

use rekindle_domain::event::Event;
use rekindle_domain::line::Line;
use rekindle_store::log::{Cursor, LogReader};

/// Lines looked at at first: what is looked for is mostly among the last few.
const FIRST_PAGE: usize = 4;
/// Lines looked at at once, if it takes long.
const MOST_LINES: usize = 256;

/// Looks through a log from its end until a line has what is looked for.
pub(crate) fn find_last<T>(
    log: &LogReader,
    mut pick: impl FnMut(&Line<'_>) -> Option<T>,
) -> io::Result<Option<T>> {
    let (mut end, mut count) = (log.end(), FIRST_PAGE);
    while end > Cursor::START {
        let lines = log.last(end, count)?;
        let Some((first, _)) = lines.first() else { break };
        let mut parsed = lines.iter().rev().filter_map(|(_, bytes)| Line::parse(bytes).ok());
        if let Some(found) = parsed.find_map(|line| pick(&line)) {
            return Ok(Some(found));
        }
        (end, count) = (*first, (count * 4).min(MOST_LINES));
    }
    Ok(None)
}

/// Looks through a log from its end until an event is what is looked for.
pub(crate) fn find_last_event<T>(
    log: &LogReader,
    mut pick: impl FnMut(&Event<'_>) -> Option<T>,
) -> io::Result<Option<T>> {
    find_last(log, |line| pick(&line.event().ok()?))
}

/// Visits every line of a log from its beginning; what is no record is passed over.
pub(crate) fn for_each_line(log: &LogReader, mut visit: impl FnMut(&Line<'_>)) -> io::Result<()> {
    let mut lines = log.forward(Cursor::START);
    while let Some(raw) = lines.next()? {
        if let Ok(line) = Line::parse(raw.bytes) {
            visit(&line);
        }
    }
    Ok(())
}
