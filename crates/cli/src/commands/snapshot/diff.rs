//! `rekindle snapshot diff`: what changed in a session between two snapshots, or since one.

use std::collections::BTreeMap;
use std::io::Write;

use rekindle_client::{Client, Exit, Failure};
use rekindle_domain::blob_id::BlobId;
use rekindle_domain::id::SessionId;
use rekindle_domain::line::Line;
use rekindle_service::workspaces::Workspaces;
use rekindle_store::Want;
use rekindle_store::offline::Offline;
use rekindle_terminal::output::{DIM, grouped, plural, styled};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{LogPage, SessionView, SnapshotDetail};
use rekindle_workspace::tree::short_name;
use serde_json::{Value, json};

use super::{Context, LIST, Named, detail_of};
use crate::offline_session::Looker;

/// Records fetched at a time.
const PAGE: u64 = 1000;

/// Show what changed in a session between two snapshots, or since one
///
/// Shows the records in between, by kind, the number of messages, settings, usage, and files if both snapshots have them.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "rekindle snapshot diff [OPTIONS] [SESSION] FROM [TO]",
    after_help = "Examples:
  rekindle snapshot diff 148-1               from it to now
  rekindle snapshot diff 96-1 148-1          from the first to the second
  rekindle snapshot diff 01khz0p6r8 96-1     of another session"
)]
pub(super) struct Args {
    /// One snapshot, or two, behind the session if it is not this directory's latest
    #[arg(value_name = "SNAPSHOT", required = true, num_args = 1..=3)]
    words: Vec<String>,
}

/// One side of the comparison.
struct Side {
    name: String,
    seq: u64,
    tree: Option<BlobId>,
    facts: BTreeMap<&'static str, Value>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let named = Named::read(&args.words)?;
    let (from, to) = match named.snapshots.as_slice() {
        [from] => (*from, None),
        [from, to] => (*from, Some(*to)),
        _ => {
            let message = "one snapshot is compared with the session as it is, two with each other".into();
            return Err(Failure::usage("no_snapshot", message).hint(LIST));
        }
    };
    let from = detail_of(context, &named, from)?;
    let session = from.session_id;
    let from = Side::of_snapshot(&from);
    let to = match to {
        Some(to) => Side::of_snapshot(&detail_of(context, &named, to)?),
        None => now(context, session)?,
    };
    let (first, last) = (from.seq.min(to.seq), from.seq.max(to.seq));
    let kinds = kinds_between(context, session, first, last)?;
    let changes = changes(&from, &to);
    let files = files(context, &from, &to);
    let messages = |kind: &str| kinds.get(kind).copied().unwrap_or(0);
    let told = json!({
        "session_id": session, "from": from.name, "to": to.name, "records": kinds,
        "messages": {"user": messages("message.user"), "agent": messages("message.agent")},
        "changes": changes.iter().map(|(what, before, after)| json!({"what": what, "from": before, "to": after}))
            .collect::<Vec<_>>(),
        "trees": {"from": from.tree, "to": to.tree}, "files_changed": files,
    });
    context.print(&told, |out| {
        let total: u64 = kinds.values().sum();
        let between = if from.seq > to.seq { ", backwards" } else { "" };
        let heading = format!("{} to {}: {}{between}", from.name, to.name, plural(total, "record"));
        writeln!(out, "{heading}")?;
        for (kind, count) in &kinds {
            writeln!(out, "  {:>7}  {}", grouped(*count), sanitise::line(kind))?;
        }
        for (what, before, after) in &changes {
            let (before, after) = (text(before), text(after));
            writeln!(out, "  {}  {before} → {after}", styled(DIM, format!("{what:<13}")))?;
        }
        write_files(out, &from, &to, files)
    })
}

fn write_files(out: &mut dyn Write, from: &Side, to: &Side, files: Option<u64>) -> Result<(), Failure> {
    if let (Some(files), Some(before), Some(after)) = (files, &from.tree, &to.tree) {
        let (before, after) = (short_name(before), short_name(after));
        let how = format!("rekindle workspace diff {before} {after}");
        writeln!(out, "  {}  {} changed: {how}", styled(DIM, "files        "), plural(files, "file"))?;
    }
    Ok(())
}

impl Side {
    fn of_snapshot(detail: &SnapshotDetail) -> Side {
        let facts = [
            ("title", json!(detail.title)),
            ("directory", json!(detail.working_dir)),
            ("agent", json!(detail.agent)),
            ("model", json!(detail.model)),
            ("mode", json!(detail.mode)),
            ("its session", json!(detail.cursor)),
            ("run", json!(detail.run.as_ref().map(|run| format!("{} {}", run.run_id, run.state)))),
            ("waits", json!(detail.waits)),
            ("queued", json!(detail.queued)),
            ("tokens read", json!(detail.usage.input_tokens)),
            ("tokens written", json!(detail.usage.output_tokens)),
        ];
        Side { name: detail.name.clone(), seq: detail.seq, tree: detail.tree, facts: facts.into() }
    }

    fn of_session(session: &SessionView) -> Side {
        let facts = [
            ("title", json!(session.title)),
            ("directory", json!(session.working_dir)),
            ("agent", json!(session.agent)),
            ("model", json!(session.model)),
            ("mode", json!(session.mode)),
            ("its session", json!(session.cursor)),
            ("run", json!(session.run.as_ref().map(|run| format!("{} {}", run.run_id, run.state)))),
            ("waits", json!(session.waits.len())),
            ("queued", json!(session.queued)),
            ("tokens read", json!(session.usage.input_tokens)),
            ("tokens written", json!(session.usage.output_tokens)),
        ];
        Side { name: "now".into(), seq: session.last_seq, tree: None, facts: facts.into() }
    }
}

/// Looks at a session as it is.
fn now(context: &Context, session: SessionId) -> Result<Side, Failure> {
    let asked = context.ask(|client| client.session(session.as_str()))?;
    let view = match asked {
        Ok(view) => view,
        Err(_) => {
            let home = context.offline()?;
            let loaded = home.load(session, Want::Everything)?;
            Looker::new(&home, loaded.state.updated_at).session(&loaded, None)
        }
    };
    Ok(Side::of_session(&view))
}

/// Counts the records behind one and up to another, by kind.
fn kinds_between(
    context: &Context,
    session: SessionId,
    first: u64,
    last: u64,
) -> Result<BTreeMap<String, u64>, Failure> {
    match context.ask(|client| kinds_from_daemon(client, session, first, last))? {
        Ok(kinds) => Ok(kinds),
        Err(_) => kinds_from_home(&context.offline()?, session, first, last),
    }
}

fn kinds_from_daemon(
    client: &Client,
    session: SessionId,
    first: u64,
    last: u64,
) -> Result<BTreeMap<String, u64>, Failure> {
    let (mut kinds, mut after) = (BTreeMap::new(), first);
    while after < last {
        let page: LogPage = client.get(&format!("/api/sessions/{session}/log?after={after}&limit={PAGE}"))?;
        for record in &page.records {
            count(&mut kinds, record.get().as_bytes(), last);
        }
        match page.next {
            Some(next) if next > after => after = next,
            _ => break,
        }
    }
    Ok(kinds)
}

fn kinds_from_home(
    home: &Offline,
    session: SessionId,
    first: u64,
    last: u64,
) -> Result<BTreeMap<String, u64>, Failure> {
    let mut kinds = BTreeMap::new();
    let failed = |error: std::io::Error| Failure::failed("session_unreadable", error);
    let reader = home.reader(session).map_err(failed)?;
    let Some(start) = reader.find(first + 1).map_err(failed)? else { return Ok(kinds) };
    let mut lines = reader.forward(start);
    while let Some(line) = lines.next().map_err(failed)? {
        if !count(&mut kinds, line.bytes, last) {
            break;
        }
    }
    Ok(kinds)
}

/// Counts a record, unless it comes behind the last; tells whether it was counted.
fn count(kinds: &mut BTreeMap<String, u64>, line: &[u8], last: u64) -> bool {
    match Line::parse(line) {
        Ok(line) if line.seq <= last => {
            *kinds.entry(line.kind.to_owned()).or_default() += 1;
            true
        }
        _ => false,
    }
}

/// Returns what is different, with what it was and what it is.
fn changes<'a>(from: &'a Side, to: &'a Side) -> Vec<(&'static str, &'a Value, &'a Value)> {
    let each = from.facts.iter().filter_map(|(what, before)| Some((*what, before, to.facts.get(what)?)));
    each.filter(|(_, before, after)| before != after).collect()
}

/// Counts the files that differ, if both sides have files and they are in this home.
fn files(context: &Context, from: &Side, to: &Side) -> Option<u64> {
    let (from, to) = (from.tree?, to.tree?);
    if context.server.is_some() {
        return None;
    }
    let layout = rekindle_store::layout::Layout::new(&context.home);
    let workspaces = Workspaces::new(context.disk(), layout);
    let changed =
        workspaces.compare(from, to).filter(|one| one.as_ref().is_ok_and(|one| !one.is_directory()));
    Some(changed.count() as u64)
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        Value::String(text) => sanitise::line(text),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(title: &str, tokens: u64) -> Side {
        let facts = [("title", json!(title)), ("tokens read", json!(tokens)), ("agent", json!("claude"))];
        Side { name: "1-1".into(), seq: 1, tree: None, facts: facts.into() }
    }

    #[test]
    fn only_what_is_different_is_told() {
        let (from, to) = (side("a", 5), side("b", 5));
        assert_eq!(changes(&from, &to), [("title", &json!("a"), &json!("b"))]);
        assert!(changes(&from, &from).is_empty());
    }

    #[test]
    fn records_are_counted_up_to_the_last() {
        let mut kinds = BTreeMap::new();
        let line = |seq| format!(r#"{{"seq":{seq},"ts":"","kind":"session.closed"}}"#);
        assert!(count(&mut kinds, line(4).as_bytes(), 5) && count(&mut kinds, line(5).as_bytes(), 5));
        assert!(!count(&mut kinds, line(6).as_bytes(), 5) && !count(&mut kinds, b"{", 5));
        assert_eq!(kinds.get("session.closed"), Some(&2));
    }
}
