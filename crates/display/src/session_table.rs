//! The sessions as a table that fits the terminal.

use std::io::Write;

use anstyle::Style;
use rekindle_client::failure::Failure;
use rekindle_domain::time::Timestamp;
use rekindle_terminal::output::{self, BAD, BOLD, DIM, PLAIN, WARN, cut, styled, wrap};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{HealthState, SessionView};

use crate::evidence_text;
use crate::short_id::{short, short_len};
use crate::status_text::{forked_from, held, is_unknown, label, last_run, next, style};

/// Where there is less room than this, a session's last words are left out.
const LEAST_WORDS: usize = 8;

/// Writes a line for each session, and below it what someone should know.
pub fn write_table(
    out: &mut dyn Write,
    sessions: &[&SessionView],
    long: bool,
    now: Timestamp,
) -> Result<(), Failure> {
    let len = short_len(sessions.iter().map(|session| session.id.as_str()));
    let rows: Vec<_> = sessions.iter().map(|session| row(session, len, now)).collect();
    let (lines, used) = output::table(&rows);
    for (session, mut line) in sessions.iter().zip(lines) {
        let words = session.last_words.as_deref().unwrap_or(&session.title);
        let room = output::width().saturating_sub(used);
        if room >= LEAST_WORDS {
            line.push_str(&cut(&sanitise::line(words), room));
        }
        writeln!(out, "{}", line.trim_end())?;
        if long && !is_unknown(session) {
            let forked = forked_from(session).map(|from| format!("forked {from}"));
            for known in evidence_text::sentences(&session.evidence, now).into_iter().chain(forked) {
                writeln!(out, "{}", styled(DIM, wrap(&known, output::width(), "    ", "    ")))?;
            }
        }
        if let Some(last) = last_run(session) {
            let text = cut(&sanitise::line(&last), output::width().saturating_sub(4));
            writeln!(out, "    {}", styled(style(session), text))?;
        }
        if let Some(held) = held(session) {
            writeln!(out, "    {}", styled(WARN, sanitise::line(held)))?;
        }
        if session.health.state != HealthState::Ok {
            let health = &session.health;
            let detail = health.detail.as_deref().unwrap_or_default();
            let text = match health.state {
                HealthState::Reading => detail.to_owned(),
                HealthState::Quarantined => format!("{}: {detail}; {}", health.state, next(session)),
                state => format!("{state} {detail}"),
            };
            let style = if health.state == HealthState::Reading { WARN } else { BAD };
            writeln!(out, "    {}", styled(style, sanitise::line(&text)))?;
        }
    }
    Ok(())
}

fn row(session: &SessionView, len: usize, now: Timestamp) -> Vec<(Style, String)> {
    let mut status = label(session);
    if session.queued > 0 {
        status.push_str(&format!(" +{}", session.queued));
    }
    let home = std::env::var("HOME").ok();
    vec![
        (BOLD, short(session.id.as_str(), len).to_owned()),
        (style(session), status),
        (DIM, if is_unknown(session) { String::new() } else { age(session.since, now) }),
        (PLAIN, sanitise::line(&session.agent)),
        (DIM, directory(&sanitise::line(&session.working_dir), home.as_deref())),
    ]
}

/// Writes how long something lasts, in one unit.
fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.millis_since(since) / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn directory(path: &str, home: Option<&str>) -> String {
    let rest = home.filter(|home| !home.is_empty()).and_then(|home| path.strip_prefix(home));
    match rest {
        Some("") => "~".into(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_directories_are_short() {
        let at = Timestamp::from_millis;
        let ages = [0, 59_000, 60_000, 7_200_000, 259_200_000].map(|millis| age(at(0), at(millis)));
        assert_eq!(ages, ["0s", "59s", "1m", "2h", "3d"]);
        assert_eq!(directory("/home/me/x", Some("/home/me")), "~/x");
        assert_eq!(directory("/home/mean", Some("/home/me")), "/home/mean");
        assert_eq!(directory("/home/me", Some("/home/me")), "~");
    }
}
