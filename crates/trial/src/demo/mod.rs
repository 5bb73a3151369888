//! `rekindle demo`: shows in a few seconds that a crash never costs work, and checks in the log that it
//! was so. This file opens and closes; the acts, the stage and the verdict are in files of their own.

mod acts;
mod stage;
mod timeline;
mod verdict;

use std::io::Write;
use std::path::Path;

use rekindle_client::failure::{Exit, Failure};
use rekindle_client::start::beside_us;
use rekindle_terminal::output::{self, BAD, GOOD};
use serde_json::{Value, json};

use self::acts::{PROMPTS, STEPS, TAKEOVERS, WORDS};
use self::stage::Stage;
use self::timeline::Timeline;
use self::verdict::{Check, Evidence, Expected, judge};
use crate::ground::look::{agent, doctor, lines};
use crate::ground::temporary;

const TITLE: &str = "rekindle demo: a crash never costs you work";
const ABOUT: &str = "Real processes, real kill -9, a scripted agent, a temporary home.";

/// Shows everything and says how the process is to end; `keep` leaves the temporary home where it is.
pub fn run(keep: bool, json: bool) -> Result<Exit, Failure> {
    // Before anything is started: a daemon would find out too late.
    beside_us("rekindle-holder")?;
    let ground = temporary("demo", keep)?;
    let mut stage = Stage::new(Timeline::new(json), ground)?;
    match show(&mut stage) {
        Ok(checks) => {
            let verdict = if checks.iter().all(|check| check.ok) { Exit::Ok } else { Exit::Failed };
            match report(json, &mut stage, &checks) {
                // Whoever has seen enough still wants to know how it ended.
                Err(failure) if failure.is_broken_pipe() => Ok(verdict),
                printed => printed.map(|()| verdict),
            }
        }
        Err(failure) => Err(give_up(&mut stage, failure)),
    }
}

/// Plays, and looks at what is left of it.
fn show(stage: &mut Stage) -> Result<Vec<Check>, Failure> {
    stage.timeline.open(TITLE, ABOUT)?;
    let agent = agent(&stage.ground.at("memory"), &stage.ground.at("told"), &[])?;
    let heard = acts::play(stage, &agent)?;
    let ground = &stage.ground;
    let records = records(&ground.home(), stage.session())?;
    let text = |name: &str| std::fs::read_to_string(ground.at(name)).unwrap_or_default();
    let (told, work, doctor) = (text("told"), text("work/work.txt"), doctor(&ground.home())?);
    let evidence = Evidence { records: &records, told: &told, work: &work, doctor };
    let (prompts, steps) = (&PROMPTS, &STEPS);
    Ok(judge(&evidence, &Expected { words: WORDS, heard, prompts, takeovers: TAKEOVERS, steps }))
}

/// Reads the log from the disk: no daemon stands between it and the verdict.
fn records(home: &Path, session: &str) -> Result<Vec<Value>, Failure> {
    let unreadable = |error: serde_json::Error| Failure::failed("session_unreadable", error);
    let lines = lines(home, session)?;
    lines.iter().map(|line| serde_json::from_str(line).map_err(unreadable)).collect()
}

fn report(json: bool, stage: &mut Stage, checks: &[Check]) -> Result<(), Failure> {
    let failed: Vec<&str> = checks.iter().filter(|check| !check.ok).map(|check| check.name).collect();
    if !failed.is_empty() {
        stage.ground.keep();
    }
    let millis = stage.timeline.millis();
    let kept = stage.ground.is_kept().then(|| stage.ground.path().to_owned());
    if json {
        let home = kept.as_ref().map(|path| path.join("home"));
        let text = json!({
            "ok": failed.is_empty(), "millis": millis, "session": stage.session(), "home": home,
            "checks": checks, "timeline": stage.timeline.entries(),
        });
        let mut out = output::stdout();
        writeln!(out, "{text}")?;
        out.flush()?;
    } else {
        stage.timeline.verdict("Verdict, from the log", checks)?;
        let seconds = format!("{:.1} s", millis as f64 / 1000.0);
        let (style, text) = if failed.is_empty() {
            (GOOD, format!("All {} hold: three kill -9 in {seconds}, nothing lost.", checks.len()))
        } else {
            (BAD, format!("{} of {} failed: {}.", failed.len(), checks.len(), failed.join("; ")))
        };
        stage.timeline.close(style, &text)?;
        if failed.is_empty() {
            stage.timeline.remark("Next: rekindle agents shows which agents you have; rekindle run \"fix the failing test\" starts one.")?;
        }
        if let Some(path) = kept {
            let home = path.join("home");
            stage.timeline.remark(&format!("kept: {}", path.display()))?;
            let look = format!("look around: rekindle --home {} log {}", home.display(), stage.session());
            stage.timeline.remark(&look)?;
        }
    }
    Ok(())
}

/// Keeps what is there of a demonstration that went wrong; one that someone ended leaves nothing.
fn give_up(stage: &mut Stage, failure: Failure) -> Failure {
    // Whatever cannot be printed any more is the least of it.
    let _ = stage.timeline.clear();
    let path = stage.ground.path().display().to_string();
    if failure.exit == Exit::Detached || failure.is_broken_pipe() {
        let failure = if failure.is_broken_pipe() {
            let error = anyhow::anyhow!("nobody reads what is shown; the demonstration ends early");
            Failure::failed("interrupted", error).exit_with(Exit::Detached)
        } else {
            failure
        };
        let left = if stage.ground.is_kept() { format!("kept in {path}") } else { "removed".to_owned() };
        return failure.hint(format!("its processes are ended, its home is {left}"));
    }
    stage.ground.keep();
    let hint = format!("everything is kept in {path}; home/logs/daemon.log there may say why");
    failure.exit_with(Exit::Failed).hint(hint)
}
