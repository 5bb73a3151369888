//! What a search has found, as people see it: session by session, with the words marked.

use std::collections::BTreeSet;
use std::io::{Result, Write};

use anstyle::Style;
use rekindle_domain::search::FoundIn;
use rekindle_domain::time::Timestamp;
use rekindle_terminal::output::{self, BOLD, DIM, GOOD, PLAIN, WARN, ago, columns, cut, plural, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{SearchMatch, SearchPage};

use crate::hints::ours;
use crate::short_id::{short, short_len};

/// A word that was looked for.
const MARK: Style = WARN.bold();

/// Writes what was found; `limit` is how much was asked for.
pub fn write_page(out: &mut dyn Write, page: &SearchPage, limit: usize, now: Timestamp) -> Result<()> {
    let sessions: BTreeSet<&str> = page.matches.iter().map(|found| found.session_id.as_str()).collect();
    let len = short_len(sessions);
    for (index, found) in page.matches.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| page.matches[before].session_id);
        if before != Some(found.session_id) {
            let id = short(found.session_id.as_str(), len);
            let room = output::width().saturating_sub(columns(id) + 2);
            let title = cut(&sanitise::line(&found.title), room);
            writeln!(out, "{}{}  {title}", if index == 0 { "" } else { "\n" }, styled(BOLD, id))?;
        }
        write_match(out, found, now)?;
    }
    if page.matches.is_empty() {
        writeln!(out, "nothing found")?;
    }
    if page.unreadable > 0 {
        let text = format!(
            "the logs of {} cannot be read: {}",
            plural(page.unreadable as u64, "session"),
            ours("doctor")
        );
        writeln!(out, "{}", styled(WARN, text))?;
    }
    if page.next.is_some() || page.matches.len() == limit {
        let text = format!("there may be more: --limit {}", limit * 2);
        writeln!(out, "{}", styled(DIM, text))?;
    }
    Ok(())
}

fn write_match(out: &mut dyn Write, found: &SearchMatch, now: Timestamp) -> Result<()> {
    let style = match found.found_in {
        FoundIn::Prompt => GOOD,
        FoundIn::Question => WARN,
        FoundIn::Agent | FoundIn::Tool | FoundIn::Files => PLAIN,
    };
    let (what, when) = (found.found_in.as_str(), ago(found.at, now));
    let head = format!("  {what:8}  ");
    write!(out, "  {}  ", styled(style, format_args!("{what:8}")))?;
    let tail = format!("  ({when})");
    let mut room = output::width().saturating_sub(columns(&head) + columns(&tail)).max(20);
    let first = found.excerpt.iter().position(|part| part.matched).unwrap_or(0);
    let (before, rest) = found.excerpt.split_at(first);
    let before: String = before.iter().map(|part| clean(&part.text)).collect();
    // The first word that matches is seen also where there is little room.
    let before = last_columns(&before, room / 2);
    write!(out, "{before}")?;
    room -= columns(&before);
    for part in rest {
        let text = clean(&part.text);
        let shown = cut(&text, room);
        write!(out, "{}", if part.matched { styled(MARK, &shown) } else { shown.clone() })?;
        room -= columns(&shown);
        if room == 0 || shown != text {
            break;
        }
    }
    writeln!(out, "{}", styled(DIM, tail))
}

/// Returns a text that cannot command a terminal, whoever wrote it; blanks at its ends stay.
fn clean(text: &str) -> String {
    text.split(' ').map(sanitise::line).collect::<Vec<_>>().join(" ")
}

/// Cuts off the beginning of a text that has more than some columns.
fn last_columns(text: &str, width: usize) -> String {
    let mut all = columns(text);
    if all <= width {
        return text.to_owned();
    }
    let mut rest = text.chars();
    while all >= width
        && let Some(c) = rest.next()
    {
        all -= columns(c.encode_utf8(&mut [0; 4]));
    }
    format!("…{}", rest.as_str())
}

#[cfg(test)]
mod tests {
    use rekindle_domain::search::ExcerptPart;

    use super::*;

    #[test]
    fn what_was_found_stands_below_its_session() {
        let found = |session: &str, word: &str| SearchMatch {
            session_id: session.parse().expect("an id"),
            title: "Fix it".into(),
            working_dir: "/x".into(),
            seq: 3,
            at: Timestamp::from_millis(0),
            found_in: FoundIn::Prompt,
            excerpt: vec![
                ExcerptPart { text: "the ".into(), matched: false },
                ExcerptPart { text: word.into(), matched: true },
                ExcerptPart { text: " test\u{1b}[2J".into(), matched: false },
            ],
        };
        let matches = vec![
            found("sess_01khz0p6r8aaaa", "flaky"),
            found("sess_01khz0p6r8aaaa", "Flaky"),
            found("sess_2", "flaky"),
        ];
        let page = SearchPage { matches, next: None, unreadable: 1 };
        let mut out = Vec::new();
        write_page(&mut out, &page, 20, Timestamp::from_millis(120_000)).expect("written");
        let styled = String::from_utf8(out.clone()).expect("UTF-8");
        assert!(styled.contains(&format!("{MARK}flaky{MARK:#}")), "{styled:?}");
        let plain = String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).expect("UTF-8");
        let expected = "01khz0p6r8  Fix it\n  prompt    the flaky test  (2 minutes ago)\n  prompt    the Flaky test  (2 minutes ago)\n\n\
                        2  Fix it\n  prompt    the flaky test  (2 minutes ago)\n\
                        the logs of 1 session cannot be read: rekindle doctor\n";
        assert_eq!(plain, expected);
        // It begins in the middle of a text, with more in front than there is room for.
        let mut within = found("sess_2", "Flaky");
        within.excerpt.insert(0, ExcerptPart { text: "…".into(), matched: false });
        within.excerpt[1].text = format!("{} one ", "long ".repeat(20));
        let page = SearchPage { matches: vec![within], next: None, unreadable: 0 };
        let mut out = Vec::new();
        write_page(&mut out, &page, 20, Timestamp::from_millis(120_000)).expect("written");
        let plain = String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).expect("UTF-8");
        assert!(
            plain.contains("  prompt    …") && plain.contains("long  one Flaky test  (2 minutes ago)"),
            "{plain}"
        );
        assert_eq!((last_columns("漢字ab", 5), last_columns("ab", 2)), ("…字ab".into(), "ab".into()));
        let mut out = Vec::new();
        write_page(&mut out, &SearchPage::default(), 20, Timestamp::default()).expect("written");
        assert_eq!(String::from_utf8(out).expect("UTF-8"), "nothing found\n");
    }
}
