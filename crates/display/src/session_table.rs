//! The sessions as a table that fits the terminal.

use std::collections::HashMap;
use std::io::Write;

use anstyle::Style;
use rekindle_client::failure::Failure;
use rekindle_domain::time::Timestamp;
use rekindle_terminal::output::{self, BAD, BOLD, DIM, PLAIN, WARN, cut, cut_beginning, styled, wrap};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{HealthState, SessionView};

use crate::evidence_text;
use crate::short_id::{short, short_len};
use crate::status_text::{forked_from, held, is_unknown, label, last_run, next, style};

/// Where there is less room than this, a session's last words are left out.
const LEAST_WORDS: usize = 8;

/// Writes a heading, and a line for each session with what someone should know below it; those of the steps of a pipeline run are
/// indented below its name.
pub fn write_table(
    out: &mut dyn Write,
    sessions: &[&SessionView],
    long: bool,
    now: Timestamp,
) -> Result<(), Failure> {
    let len = short_len(sessions.iter().map(|session| session.id.as_str()));
    let sessions = with_parents(sessions);
    if sessions.is_empty() {
        return Ok(());
    }
    let heading = output::heading(&["SESSION", "STATUS", "SINCE", "AGENT", "DIRECTORY"]);
    let rows: Vec<_> =
        [heading].into_iter().chain(sessions.iter().map(|session| row(session, len, now))).collect();
    let (lines, used) = output::table(&rows);
    let mut lines = lines.into_iter();
    let room = output::width().saturating_sub(used);
    let title = if room >= LEAST_WORDS { "TITLE" } else { "" };
    if let Some(heading) = lines.next() {
        writeln!(out, "{}", format!("{heading}{}", styled(DIM, title)).trim_end())?;
    }
    let mut run = None;
    for (session, mut line) in sessions.into_iter().zip(lines) {
        let parent = session.parent.as_ref().map(|parent| &*parent.run_id);
        if let Some(name) = parent.filter(|_| parent != run) {
            writeln!(out, "{}", styled(DIM, sanitise::line(name)))?;
        }
        run = parent;
        if room >= LEAST_WORDS {
            line.push_str(&cut(&sanitise::line(&session.title), room));
        }
        writeln!(out, "{}", line.trim_end())?;
        if let Some(words) =
            session.last_words.as_deref().map(sanitise::line).filter(|words| !words.is_empty())
        {
            let indent = if session.parent.is_some() { "      " } else { "    " };
            let words = cut(&words, output::width().saturating_sub(indent.len()));
            writeln!(out, "{indent}{}", styled(DIM, words))?;
        }
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

/// Returns the sessions with those of one pipeline run together, where the first of them stood.
fn with_parents<'a>(sessions: &[&'a SessionView]) -> Vec<&'a SessionView> {
    let run = |session: &SessionView| session.parent.as_ref().map(|parent| parent.run_id.clone());
    let mut places = HashMap::new();
    let mut placed: Vec<(usize, &SessionView)> = Vec::with_capacity(sessions.len());
    for (place, session) in sessions.iter().enumerate() {
        let place = run(session).map_or(place, |run| *places.entry(run).or_insert(place));
        placed.push((place, session));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, session)| session).collect()
}

fn row(session: &SessionView, len: usize, now: Timestamp) -> Vec<(Style, String)> {
    let mut status = label(session);
    if session.queued > 0 {
        status.push_str(&format!(" +{}", session.queued));
    }
    vec![
        (
            BOLD,
            format!(
                "{}{}",
                if session.parent.is_some() { "  " } else { "" },
                short(session.id.as_str(), len)
            ),
        ),
        (style(session), status),
        (DIM, if is_unknown(session) { String::new() } else { age(session.since, now) }),
        (PLAIN, sanitise::line(&session.agent)),
        (DIM, cut_beginning(&home_as_tilde(&sanitise::line(&session.working_dir)), output::width() / 3)),
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

/// Writes a path as people do: the home directory as `~`.
pub fn home_as_tilde(path: &str) -> String {
    directory(path, std::env::var("HOME").ok().as_deref())
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
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn sessions_of_one_run_stand_together() {
        let session = |id: &str, run: Option<&str>| {
            let shown = rekindle_testkit::session_view::session("idle", Value::Null, Value::Null);
            let parent = run.map(|run| json!({"run_id": run, "task_id": null, "step_id": "review-1"}));
            SessionView {
                id: id.parse().expect("an id"),
                parent: serde_json::from_value(json!(parent)).expect("a parent"),
                ..shown
            }
        };
        let all = [
            session("sess_1", None),
            session("sess_2", Some("run-1")),
            session("sess_3", None),
            session("sess_4", Some("run-2")),
            session("sess_5", Some("run-1")),
        ];
        let order = with_parents(&all.iter().collect::<Vec<_>>());
        let order: Vec<&str> = order.iter().map(|session| session.id.as_str()).collect();
        assert_eq!(order, ["sess_1", "sess_2", "sess_5", "sess_3", "sess_4"]);
        let mut out = Vec::new();
        write_table(&mut out, &all.iter().collect::<Vec<_>>(), false, Timestamp::default()).expect("written");
        let text = anstream::adapter::strip_bytes(&out).into_vec();
        let text = String::from_utf8(text).expect("UTF-8");
        let starts: Vec<&str> =
            text.lines().map(|line| line.split_once("  idle").map_or(line, |(id, _)| id)).collect();
        assert_eq!(starts.iter().filter(|line| line.starts_with("run-")).count(), 2, "{text}");
        assert_eq!(starts.iter().filter(|line| line.starts_with("  ")).count(), 3, "{text}");
    }

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
