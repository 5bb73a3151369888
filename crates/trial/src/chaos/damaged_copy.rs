//! A copy of the home, damaged: a daemon has to start on it, serve what is whole, and say what is not. The home itself is
//! never touched.

use std::fs;
use std::path::Path;

use rekindle_client::failure::Failure;
use rekindle_seeded::Rng;
use serde_json::{Value, json};

use super::faults::sessions;
use super::oracle::{Copy, Sight};
use super::processes::Processes;
use super::retrying_client::{PATIENCE, RetryingClient};
use crate::damage::{Done, Kind, harm};
use crate::ground::end_all;
use crate::ground::look::lines;

/// What is done to copies.
const HARM: [Kind; 10] = [
    Kind::FlippedByte,
    Kind::MissingRecord,
    Kind::DuplicateRecord,
    Kind::TornTail,
    Kind::HalfList,
    Kind::DeleteCaches,
    Kind::CorruptSnapshot,
    Kind::NewerSnapshot,
    Kind::RubbishFiles,
    Kind::StaleTokens,
];

/// Harm within a log that nothing mends: it has to be said.
fn is_damage(kind: Kind) -> bool {
    matches!(kind, Kind::FlippedByte | Kind::MissingRecord | Kind::DuplicateRecord)
}

/// Makes a copy of a home that nobody owns, damages it, has it served, and removes it.
pub(super) fn damage_a_copy(
    home: &Path,
    copy: &Path,
    runtime: &Path,
    request: &Value,
    processes: &mut Processes,
    pick: u64,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed("copy", error);
    let _ = fs::remove_dir_all(copy);
    copy_all(home, copy).map_err(failed)?;
    let mut rng = Rng::new(pick);
    let (mut harmed, mut words, mut bad) = (Vec::new(), Vec::new(), None);
    for _ in 0..2 {
        let kind = HARM[rng.index(HARM.len())];
        // What does not fit, for want of a snapshot for example, is not done.
        let Ok(Done { path, what, .. }) = harm(copy, kind, None, rng.next_u64()) else { continue };
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        words.push(format!("{file}: {what}"));
        let session = file.split('.').next().unwrap_or_default().to_owned();
        if is_damage(kind) {
            bad = Some(session.clone());
        }
        harmed.push(session);
    }
    let mut own = Processes::new(copy, runtime, &processes.cancel);
    let served = serve(home, &mut own, &harmed, bad.as_deref(), request, words.join("; "));
    end_all(copy);
    super::processes::reap();
    processes.sights.push(Sight::DamagedCopy(served?));
    fs::remove_dir_all(copy).map_err(failed)
}

fn serve(
    home: &Path,
    own: &mut Processes,
    harmed: &[String],
    bad: Option<&str>,
    request: &Value,
    damage: String,
) -> Result<Copy, Failure> {
    let mut seen = Copy {
        damage,
        starts: false,
        whole: 0,
        served: 0,
        must_say: bad.is_some(),
        says: false,
        takes_more: false,
    };
    seen.starts = own.try_start(&[], &[]).is_ok();
    if !seen.starts {
        return Ok(seen);
    }
    let asker = own.asker()?;
    for session in sessions(home)?.iter().filter(|session| !harmed.contains(session)) {
        seen.whole += 1;
        seen.served += usize::from(is_as_it_was(&asker, session, &lines(home, session)?));
    }
    if let Some(bad) = bad {
        let view = asker.get(&format!("/api/sessions/{bad}")).unwrap_or(Value::Null);
        let log = asker.get(&format!("/api/sessions/{bad}/log?limit=1000")).unwrap_or(Value::Null);
        let mended =
            log["records"].as_array().into_iter().flatten().any(|record| record["kind"] == "log.repaired");
        // Another harm may come before the damage, and is said in its place.
        let health = view["health"]["state"].as_str();
        seen.says = health.is_some_and(|health| health != "ok") || mended;
    }
    let mut body = request.clone();
    body["prompt"] = json!("say it goes on");
    if let Some(id) = asker.post("/api/sessions", &body).and_then(|reply| reply.text("id")) {
        let ended = || {
            let view = asker.get(&format!("/api/sessions/{id}"))?;
            (view["run"]["state"] == "completed").then_some(())
        };
        seen.takes_more = own.cancel.wait_for(PATIENCE / 2, ended).is_some();
    }
    own.dismiss()?;
    Ok(seen)
}

/// Tells whether a daemon shows a session's log as it was; something may have been added.
fn is_as_it_was(asker: &RetryingClient, session: &str, lines: &[String]) -> bool {
    let mut known = lines.iter();
    let mut after = 0;
    loop {
        let path = format!("/api/sessions/{session}/log?after={after}&limit=1000");
        let Some(page) = asker.get(&path) else { return false };
        for record in page["records"].as_array().into_iter().flatten() {
            let Some(line) = known.next() else { return true };
            if serde_json::from_str::<Value>(line).ok().as_ref() != Some(record) {
                return false;
            }
        }
        match page["next"].as_u64().filter(|next| *next > after) {
            Some(next) => after = next,
            None => return known.next().is_none(),
        }
    }
}

/// Copies a directory with everything in it but what is no file: sockets are nobody's in a copy. What goes away meanwhile is not
/// in it.
pub(super) fn copy_all(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, to) = (entry.file_type()?, to.join(entry.file_name()));
        let copied = match kind {
            kind if kind.is_dir() => copy_all(&entry.path(), &to),
            kind if kind.is_file() => fs::copy(entry.path(), to).map(drop),
            _ => Ok(()),
        };
        match copied {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            outcome => outcome?,
        }
    }
    Ok(())
}
