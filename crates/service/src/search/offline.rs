//! A search without a daemon: the home itself is read.

use std::io;
use std::path::Path;

use rekindle_domain::search::SearchWords;
use rekindle_store::Want;
use rekindle_store::log::Cursor;
use rekindle_store::offline::Offline;
use rekindle_wire::view::{SearchMatch, SearchPage};

use super::scan::Scanner;

/// Searches the logs of a home, the newest session first, until so many records are found.
pub fn search_home(
    home: &Offline,
    words: &SearchWords,
    below: Option<&str>,
    limit: usize,
) -> io::Result<SearchPage> {
    let mut page = SearchPage { matches: Vec::new(), next: None, unreadable: 0 };
    let mut scanner = Scanner::new(words);
    // Ids begin with the time at which they were made.
    for session in home.sessions()?.into_iter().rev() {
        let (Ok(log), Ok(loaded)) = (home.reader(session), home.load(session, Want::Status)) else {
            page.unreadable += 1;
            continue;
        };
        let state = &loaded.state;
        let is_below = |place: &str| below.is_none_or(|below| Path::new(place).starts_with(below));
        if state.deleted || !(is_below(&state.working_dir) || is_below(state.origin())) {
            continue;
        }
        let mut end = log.end();
        while end > Cursor::START {
            let Ok((found, begin)) = scanner.search_block(&log, end) else {
                page.unreadable += 1;
                break;
            };
            for record in found {
                if page.matches.len() == limit {
                    return Ok(page);
                }
                page.matches.push(SearchMatch {
                    session_id: session,
                    title: state.title.clone(),
                    working_dir: state.working_dir.clone(),
                    seq: record.seq,
                    at: record.at,
                    found_in: record.found.found_in,
                    excerpt: record.found.excerpt,
                });
            }
            end = begin;
        }
    }
    Ok(page)
}
