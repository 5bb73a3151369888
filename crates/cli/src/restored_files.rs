//! Files that are being put back: whoever asked for it waits for the end, and is told what came of it.

use std::io::Write;
use std::sync::mpsc::sync_channel;

use rekindle_client::follow::{Follow, Followed, Heard};
use rekindle_client::{Client, Exit, Failure};
use rekindle_domain::event::{Event, SessionFilesRestored};
use rekindle_domain::line::Line;
use rekindle_terminal::output::{plural, shell_word};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{FilesOutcome, SessionView};
use rekindle_workspace::tree::short_name;

use crate::context::Context;

/// Files that are shown; JSON and the log have more.
const MAX_SHOWN: usize = 20;

/// Waits until the files of a session are there that was made from another, if they are wanted; tells people what came of it.
pub(crate) fn finish(
    context: &Context,
    client: &Client,
    session: &SessionView,
    files: FilesOutcome,
) -> Result<Exit, Failure> {
    if files != FilesOutcome::Restored {
        return Ok(Exit::Ok);
    }
    let behind = session.forked_from.map_or(0, |from| from.seq);
    let line = await_end(client, session.id.as_str(), behind)?;
    let restored: SessionFilesRestored<'_> =
        serde_json::from_str(&line).map_err(|error| Failure::failed("answer_unreadable", error))?;
    if !context.json {
        write_text(&mut anstream::stderr(), &restored, &session.working_dir)?;
    }
    Ok(exit(&restored))
}

/// Returns how a command ends that asked for it.
pub(crate) fn exit(restored: &SessionFilesRestored<'_>) -> Exit {
    if restored.error.is_none() && restored.left == 0 { Exit::Ok } else { Exit::Failed }
}

/// Waits for the record that says what came of it: also through the death of the daemon, whose successor finishes it.
pub(crate) fn await_end(client: &Client, id: &str, after: u64) -> Result<String, Failure> {
    let (tell, told) = sync_channel(1);
    let (target, of) = (client.target().clone(), Followed::Session(id.to_owned()));
    let follow = Follow { target, of, after, attended: false };
    follow.begin(move |heard| match heard {
        Heard::Record(line) if is_end(&line) => {
            let _ = tell.send(Ok(line));
            false
        }
        Heard::Over(failure) => {
            let _ = tell.send(Err(failure));
            false
        }
        Heard::Deleted | Heard::Reset { .. } => {
            let gone =
                anyhow::anyhow!("the session changed in the meantime: what became of its files is not known");
            let _ = tell.send(Err(Failure::failed("moved", gone).hint("rekindle log says what happened")));
            false
        }
        Heard::Away => {
            anstream::eprintln!("note: the daemon went away; the next one continues with the files");
            true
        }
        _ => true,
    });
    let lost = |_| Failure::failed("lost", anyhow::anyhow!("what became of the files is not known"));
    told.recv().map_err(lost)?
}

fn is_end(line: &str) -> bool {
    let line = Line::parse(line.as_bytes()).ok();
    let event = line.as_ref().and_then(|line| line.event().ok());
    matches!(event, Some(Event::SessionFilesRestored(_)))
}

/// Says what came of it.
pub(crate) fn write_text(
    out: &mut dyn Write,
    restored: &SessionFilesRestored<'_>,
    place: &str,
) -> Result<(), Failure> {
    if let Some(error) = &restored.error {
        writeln!(out, "the files are left as they are: {}", sanitise::line(error))?;
        return Ok(());
    }
    for file in restored.files.iter().take(MAX_SHOWN) {
        let path = file.path.bytes().unwrap_or_default();
        let path = String::from_utf8_lossy(&path).into_owned();
        writeln!(out, "  {:<8}  {}", file.change.as_str(), sanitise::line(&path))?;
    }
    if restored.files.len() > MAX_SHOWN {
        writeln!(out, "  and more; --json has them")?;
    }
    let left = match restored.left {
        0 => String::new(),
        left => format!(", {} left alone", plural(left, "path")),
    };
    writeln!(out, "{} put back in {place}{left}", plural(restored.changed, "file"))?;
    if let Some(undo) = restored.undo.filter(|_| restored.changed > 0) {
        let place = shell_word(place);
        writeln!(out, "to undo it: rekindle workspace restore {} --directory {place}", short_name(&undo))?;
    }
    Ok(())
}
