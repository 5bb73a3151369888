//! Searches through a session's log, whose lines tell more than its state does.

use std::io;

use rekindle_domain::event::Event;
use rekindle_domain::line::Line;
use rekindle_domain::session::Agent;
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

/// Finds where the launch of an agent is recorded: from there on the log tells of it. The beginning, if that is not known.
pub(crate) fn find_launch(log: &LogReader, agent: &Agent) -> io::Result<Cursor> {
    if agent.launch_seq == 0 {
        return Ok(Cursor::START);
    }
    let Some(found) = log.find(agent.launch_seq)? else { return Ok(Cursor::START) };
    // A cache says where it is, and the log knows better.
    let mut lines = log.forward(found);
    let line = lines.next()?.and_then(|raw| Line::parse(raw.bytes).ok());
    let is_launch = |event: &Event<'_>| match event {
        Event::AgentLaunching(launching) => launching.holder_id == agent.holder_id,
        _ => false,
    };
    let right = line.is_some_and(|line| line.event().is_ok_and(|event| is_launch(&event)));
    Ok(if right { found } else { Cursor::START })
}

/// Visits every line of a log from its beginning; what is no record is passed over.
pub(crate) fn for_each_line(log: &LogReader, visit: impl FnMut(&Line<'_>)) -> io::Result<()> {
    for_each_line_from(log, Cursor::START, visit)
}

/// Visits every line of a log from a place on; what is no record is passed over.
pub(crate) fn for_each_line_from(
    log: &LogReader,
    from: Cursor,
    mut visit: impl FnMut(&Line<'_>),
) -> io::Result<()> {
    let mut lines = log.forward(from);
    while let Some(raw) = lines.next()? {
        if let Ok(line) = Line::parse(raw.bytes) {
            visit(&line);
        }
    }
    Ok(())
}
