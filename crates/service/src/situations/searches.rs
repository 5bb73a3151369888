//! Searches through the logs of sessions, as a daemon does them.

use rekindle_wire::filter::SearchFilter;
use rekindle_wire::view::{SearchMatch, SearchPage};

use super::home::Home;
use crate::error::Result;
use crate::search::search;

fn ask(home: &Home, q: &str, limit: usize, cursor: Option<String>) -> Result<SearchPage> {
    let filter = SearchFilter { q: Some(q.to_owned()), cwd: None, limit: Some(limit), cursor };
    search(&home.views(), &filter)
}

/// Returns what was found, page by page.
fn all(home: &Home, q: &str, limit: usize) -> Vec<SearchMatch> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = ask(home, q, limit, cursor).expect("a page");
        assert!(page.matches.len() <= limit, "{}", page.matches.len());
        found.extend(page.matches);
        match page.next {
            Some(next) => cursor = Some(next),
            None => return found,
        }
    }
}

#[test]
fn pages_of_any_size_have_every_record_once_and_the_newest_first() {
    let mut home = Home::new(&["text end"]);
    for number in 0..5 {
        home.say(&format!("Find NEEDLE number {number}"));
        home.say("something else");
    }
    let whole = all(&home, "needle number", 100);
    let texts: Vec<String> =
        whole.iter().map(|found| found.excerpt.iter().map(|part| part.text.as_str()).collect()).collect();
    let expected: Vec<String> = (0..5).rev().map(|number| format!("Find NEEDLE number {number}")).collect();
    assert_eq!(texts, expected);
    for limit in 1..=6 {
        assert_eq!(all(&home, "needle number", limit), whole, "pages of {limit}");
    }
    assert_eq!(all(&home, "needle something", 3), [], "all words have to be in one record");
    assert_eq!(all(&home, "number 3", 3).len(), 1);
}

#[test]
fn a_page_goes_on_where_it_was_left_whatever_was_said_since() {
    let mut home = Home::new(&["text end"]);
    for number in 0..3 {
        home.say(&format!("needle {number}"));
    }
    let first = ask(&home, "needle", 2, None).expect("a page");
    home.say("needle 3");
    let second = ask(&home, "needle", 2, first.next).expect("a page");
    let numbers = |page: &[SearchMatch]| -> Vec<String> {
        page.iter().map(|found| found.excerpt.last().expect("a part").text.trim().to_owned()).collect()
    };
    assert_eq!(
        (numbers(&first.matches), numbers(&second.matches)),
        (vec!["2".into(), "1".into()], vec!["0".into()])
    );
    assert_eq!(second.next, None);
}

// I10: a log that cannot be read keeps no other from being searched.
#[test]
fn what_cannot_be_searched_is_refused_or_counted() {
    let mut home = Home::new(&["text end"]);
    home.say("needle");
    for bad in ["", " ", &"x".repeat(201), "1 2 3 4 5 6 7 8 9"] {
        assert!(ask(&home, bad, 10, None).is_err(), "{bad:?}");
    }
    assert!(ask(&home, "needle", 0, None).is_err(), "a page of none");
    assert!(ask(&home, "needle", 10, Some("1.2.x".into())).is_err(), "a cursor of no search");
    assert_eq!(all(&home, "needle", 10).len(), 1);
}
