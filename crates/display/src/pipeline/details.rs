//! One run of a pipeline, whole: its steps, what each took and found, and what is pending.

use std::io::{Result, Write};

use anstyle::Style;
use rekindle_domain::pipeline::summary::StepStatus;
use rekindle_domain::time::Timestamp;
use rekindle_terminal::output::{self, BAD, BOLD, COURSE, DIM, GOOD, PLAIN, WARN, cut, styled, when};
use rekindle_terminal::sanitise;
use rekindle_wire::view::{PipelineStepView, PipelineView};

use super::progress::status_style;
use super::status_text::{rest_lines, sum_text};
use super::words::{cut_text, status_word, took, touched, used};
use crate::hints::attach;

/// Writes what is known of a run.
pub fn write_run(out: &mut dyn Write, run: &PipelineView, now: Timestamp, width: usize) -> Result<()> {
    let title = cut(&sanitise::line(&format!("{}: {}", run.task_id, run.goal)), width);
    writeln!(out, "{}", styled(BOLD, title))?;
    let mut line = |name: &str, text: &str| {
        writeln!(out, "  {} {}", styled(DIM, format_args!("{name:<10}")), sanitise::line(text))
    };
    line("run", &run.run_id)?;
    let why = run.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let by = run.ended_by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
    line("status", &format!("{}{by}{why}", status_word(run)))?;
    line("pipeline", &format!("{}: {}", run.pipeline, run.stage_names.join(" → ")))?;
    line("rounds", &format!("{} of at most {}", run.round, run.max_rounds.max(run.round)))?;
    line("in", &run.working_dir)?;
    if run.origin != run.working_dir {
        line("asked in", &run.origin)?;
    }
    line("snapshot", &run.snapshot_id)?;
    line("started", &format!("{} by {}", when(run.started_at, now), run.by))?;
    if let Some(at) = run.ended_at {
        line("ended", &when(at, now))?;
    }
    writeln!(out)?;
    write_steps(out, &run.stages, width)?;
    for text in rest_lines(run) {
        // Whole: a command is to be copied.
        writeln!(out, "  {text}")?;
    }
    if run.ended_at.is_some() {
        writeln!(out, "  {}", styled(status_style(run.status), sanitise::line(&sum_text(run))))?;
    }
    if let Some(session) = run.pending.as_ref().and_then(|pending| pending.session_id) {
        writeln!(out, "  {}", styled(DIM, format_args!("its session: {}", attach(session))))?;
    }
    Ok(())
}

/// Writes a line for each step, and below it what was found.
fn write_steps(out: &mut dyn Write, steps: &[PipelineStepView], width: usize) -> Result<()> {
    let rows: Vec<_> = steps.iter().map(row).collect();
    // What it took is cut where there is no room for all of it.
    let (lines, used) = output::table(&rows);
    for (step, mut line) in steps.iter().zip(lines) {
        let room = width.saturating_sub(used + 2);
        line.push_str(&cut(&amounts(step), room.max(8)));
        writeln!(out, "  {}", line.trim_end())?;
        let found = sanitise::block(step.findings.as_deref().unwrap_or_default());
        for text in found.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
            writeln!(out, "      {}", styled(DIM, cut(text, width.saturating_sub(6))))?;
        }
    }
    Ok(())
}

fn row(step: &PipelineStepView) -> Vec<(Style, String)> {
    let status = match step.status {
        StepStatus::Intended => (DIM, "to begin".to_owned()),
        StepStatus::Running => (COURSE, "running".to_owned()),
        StepStatus::Interrupted => (WARN, "cut".to_owned()),
        StepStatus::Finished | StepStatus::Failed => {
            let outcome = step.outcome.as_deref().unwrap_or("completed");
            let style = match step.status {
                StepStatus::Failed => BAD,
                _ if outcome == "completed" => GOOD,
                _ => PLAIN,
            };
            (style, sanitise::line(outcome))
        }
    };
    vec![
        (BOLD, sanitise::line(&format!("{} {}", step.name, step.round))),
        (DIM, sanitise::line(step.agent.as_deref().unwrap_or("check"))),
        status,
    ]
}

/// Says what a step took, and how its attempts went.
fn amounts(step: &PipelineStepView) -> String {
    let mut told = Vec::new();
    if step.cached {
        told.push("cached".to_owned());
    } else if let (Some(began), Some(ended)) = (step.began_at, step.ended_at) {
        told.push(took(ended.millis_since(began)));
    }
    if step.attempts > 1 {
        told.push(format!("{} attempts", step.attempts));
    }
    if let Some(why) = step.cut {
        told.push(cut_text(why).to_owned());
    }
    let (tokens, cost) = used(step.usage.unwrap_or_default());
    told.extend([tokens, cost, step.files_touched.map(touched).unwrap_or_default()]);
    told.retain(|text| !text.is_empty());
    told.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::samples::{plain, run as sample};

    #[test]
    fn a_run_is_shown_whole() {
        let mut run = sample();
        run.stages[0].findings = Some("one\n\n  two".into());
        let shown = |width| {
            let mut out = Vec::new();
            let now = Timestamp::from_millis(1_760_969_298_000 + 7_200_000);
            write_run(&mut out, &run, now, width).expect("written");
            plain(&out)
        };
        assert_eq!(
            shown(100),
            "T-0042: Make the parser accept comments
  run        run-20251020-140818-4f9f29a1
  status     running
  pipeline   default: implement → review → spec_maintain
  rounds     1 of at most 3
  in         /repo
  snapshot   snap-d0ab7e60b764
  started    2 hours ago (2025-10-20T14:08:18Z) by user:ada

  implement 1  builder   completed  1m 43s  12,300 tokens  cost 0.42  2 files +30 -4
      one
        two
  review 1     reviewer  cut        its agent is gone
  review 1 was cut
"
        );
        let steps = |text: String| text.lines().skip(9).map(output::columns).max();
        assert!(steps(shown(60)) <= Some(60), "{}", shown(60));
    }

    #[test]
    fn the_session_of_a_step_is_named_as_tables_name_it() {
        let mut run = sample();
        let session = "sess_01kz0p6r8s5t9x2y4z6a8b0c1d".parse().expect("an id");
        run.pending.as_mut().expect("a step").session_id = Some(session);
        let mut out = Vec::new();
        write_run(&mut out, &run, Timestamp::default(), 100).expect("written");
        assert!(plain(&out).ends_with("  its session: rekindle attach 01kz0p6r8s\n"), "{}", plain(&out));
    }
}
