//! `rekindle rewind --files-only`: puts a session's files back while the session goes on, and says the way back.

use std::path::Path;

use rekindle_client::{Client, Exit, Failure, read};
use rekindle_domain::event::SessionFilesRestored;
use rekindle_wire::request::NewFilesRestore;
use rekindle_wire::view::{FilesRestoring, RewindPlan};
use serde_json::{Value, json};

use super::{Args, Context};
use crate::commands::workspace;
use crate::confirm::{can_ask, confirmed};
use crate::restored_files::{await_end, exit, write_text};

pub(super) fn run(
    context: &Context,
    client: &Client,
    id: &str,
    plan: &RewindPlan,
    args: &Args,
) -> Result<Exit, Failure> {
    if !args.yes && can_ask(context) {
        anstream::eprintln!("the files of {id} go back to before {}; the session continues", plan.run_id);
        if let Some(tree) = plan.tree.filter(|_| context.server.is_none()) {
            workspace::show_changes(context, Path::new(&plan.working_dir), tree)?;
        }
        if !confirmed("put them back?")? {
            return Ok(Exit::Ok);
        }
    }
    // The run that was shown, whatever came since.
    let new = NewFilesRestore { to: Some(plan.run_id), force: args.force };
    let restoring: FilesRestoring = read(&client.post(&format!("/api/sessions/{id}/restore-files"), &new)?)?;
    let line = await_end(client, id, restoring.seq)?;
    let record: Value = read(line.as_bytes())?;
    let restored: SessionFilesRestored<'_> =
        serde_json::from_str(&line).map_err(|error| Failure::failed("answer_unreadable", error))?;
    let body = json!({
        "session_id": id, "run_id": restoring.run_id, "working_dir": restoring.working_dir,
        "tree": restored.tree, "undo": restored.undo, "changed": restored.changed, "files": record["files"],
        "left": restored.left, "error": restored.error,
    });
    context.print(&body, |out| write_text(out, &restored, &restoring.working_dir))?;
    if !context.json && restored.changed > 0 {
        anstream::eprintln!("the agent is told with its next prompt");
    }
    Ok(exit(&restored))
}
