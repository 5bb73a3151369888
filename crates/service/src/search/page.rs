//! A page of a search: as many records as are wanted, or as many as are found in what one request may read.

use rekindle_domain::id::SessionId;
use rekindle_domain::search::SearchWords;
use rekindle_store::log::Cursor;
use rekindle_wire::code::Code;
use rekindle_wire::filter::{Filter, SearchFilter};
use rekindle_wire::view::{SearchMatch, SearchPage};

use super::scan::{FoundRecord, Scanner};
use crate::error::{Result, ServiceError};
use crate::show::page_key::{PageKey, refused};
use crate::show::{SessionEntry, Views, fits, page_size};

/// Records on a page, unless the caller wants fewer or more.
const PAGE: usize = 20;

/// Most records on a page.
const MOST: usize = 200;

/// Bytes of logs that one request reads: some tenths of a second where they are in memory.
const MOST_BYTES: u64 = 256 << 20;

/// Sessions whose logs one request opens: an open costs as much as some kilobytes.
const MOST_SESSIONS: usize = 4096;

/// Behind everything that a log may have.
const FROM_ITS_END: Cursor = Cursor::from_number(u64::MAX);

/// A place in a search: before a byte of a session's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SearchPlace {
    session: PageKey<SessionId>,
    /// What is before this was not searched yet.
    end: Cursor,
}

impl SearchPlace {
    fn to_cursor(self) -> String {
        format!("{:x}.{}", self.end.to_number(), self.session.to_cursor())
    }

    fn from_cursor(text: &str) -> Result<SearchPlace> {
        let (end, session) = text.split_once('.').ok_or_else(refused)?;
        let session = PageKey::from_cursor(Some(session))?.ok_or_else(refused)?;
        let end = Cursor::from_number(u64::from_str_radix(end, 16).map_err(|_| refused())?);
        let place = SearchPlace { session, end };
        if place.to_cursor() == text { Ok(place) } else { Err(refused()) }
    }
}

/// Searches the logs of all sessions.
pub(crate) fn search(views: &Views, filter: &SearchFilter) -> Result<SearchPage> {
    let bad = |error| ServiceError::new(Code::InvalidQuery, error);
    let words = SearchWords::parse(filter.q.as_deref().unwrap_or_default()).map_err(bad)?;
    let limit = page_size(filter.limit, PAGE, MOST)?;
    let place = filter.cursor.as_deref().map(SearchPlace::from_cursor).transpose()?;
    views.directory.refresh_all(views.store());
    let sessions = Filter { cwd: filter.cwd.clone(), ..Filter::default() };
    let mut search = Search {
        views,
        scanner: Scanner::new(&words),
        sessions: &sessions,
        limit,
        page: SearchPage { matches: Vec::new(), next: None, unreadable: 0 },
        bytes_left: MOST_BYTES,
        sessions_left: MOST_SESSIONS,
    };
    search.run(place)?;
    Ok(search.page)
}

/// A search on its way.
struct Search<'a> {
    views: &'a Views,
    scanner: Scanner<'a>,
    /// Whose logs are searched.
    sessions: &'a Filter,
    limit: usize,
    page: SearchPage,
    bytes_left: u64,
    sessions_left: usize,
}

impl Search<'_> {
    fn run(&mut self, place: Option<SearchPlace>) -> Result<()> {
        let mut before = place.map(|place| place.session);
        if let Some(SearchPlace { session, end }) = place
            && let Some(entry) = self.views.directory.peek(session.id)
            && self.search_session(&entry, end)
        {
            return Ok(());
        }
        while let Some(entry) = self.views.directory.made_before(before, 1).pop() {
            before = Some(entry.place());
            if self.search_session(&entry, FROM_ITS_END) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Searches a log before a place; tells whether the page is done.
    fn search_session(&mut self, entry: &SessionEntry, end: Cursor) -> bool {
        if !fits(entry, self.sessions, None) {
            return false;
        }
        let place = |end: Cursor| Some(SearchPlace { session: entry.place(), end }.to_cursor());
        if self.sessions_left == 0 {
            self.page.next = place(end);
            return true;
        }
        self.sessions_left -= 1;
        let Ok(log) = self.views.store().reader(entry.state.id) else {
            self.page.unreadable += 1;
            return false;
        };
        let mut end = end.min(log.end());
        while end > Cursor::START {
            if self.bytes_left == 0 {
                self.page.next = place(end);
                return true;
            }
            let Ok((found, begin)) = self.scanner.search_block(&log, end) else {
                self.page.unreadable += 1;
                return false;
            };
            self.bytes_left = self.bytes_left.saturating_sub(end.to_number() - begin.to_number());
            for record in found {
                if self.page.matches.len() == self.limit {
                    self.page.next = place(end);
                    return true;
                }
                end = record.begin;
                self.page.matches.push(shown(entry, record));
            }
            end = begin;
        }
        false
    }
}

fn shown(entry: &SessionEntry, record: FoundRecord) -> SearchMatch {
    SearchMatch {
        session_id: entry.state.id,
        title: entry.state.title.clone(),
        working_dir: entry.state.working_dir.clone(),
        seq: record.seq,
        at: record.at,
        found_in: record.found.found_in,
        excerpt: record.found.excerpt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_and_nothing_else_is_one() {
        let cursor = "1f.19c.sess_01abc";
        let place = SearchPlace::from_cursor(cursor).expect("a place");
        assert_eq!((place.end.to_number(), place.to_cursor().as_str()), (31, cursor));
        for bad in ["", "19c.sess_01abc", "1f.", "01f.19c.sess_01abc", "1f.19c.run_1", "x.19c.sess_01abc"] {
            assert!(SearchPlace::from_cursor(bad).is_err(), "{bad}");
        }
    }
}
