//! Reports of crashes: which sessions daemons were working on when they died of a panic, and which are left alone for it.

use rekindle_domain::id::SessionId;
use rekindle_domain::quarantine::Crash;

use super::HomeView;
use super::code::Code;
use super::finding::{Finding, Findings};
use super::home::list;
use crate::crash_report;
use crate::layout::Layout;

/// Most crashes of one session whose times are told.
const MAX_TIMES: usize = 5;

/// Reads the reports of every session that is there.
pub(super) fn check(view: &HomeView, findings: &mut Findings) {
    for entry in list(&*view.raw, &view.home.crashes(), findings) {
        let Some(session) = Layout::crashed_session(&entry.name) else {
            findings.add(super::home::unknown(&view.home.crashes(), &entry));
            continue;
        };
        if view.home.disk.stat(&view.home.log(session)).is_err() {
            continue;
        }
        match crash_report::read(&*view.raw, &view.home, session) {
            Ok(crashes) => findings.add_all(reported(view, session, &crashes)),
            Err(error) => {
                let path = view.home.crash_report(session);
                let what = format!("The reports of crashes cannot be read: {error}.");
                let remedy = format!("Make it a readable file: chmod 600 {}", path.display());
                findings.add(Finding::new(Code::CrashReported, path, what, remedy).of(session));
            }
        }
    }
}

fn reported(view: &HomeView, session: SessionId, crashes: &[Crash]) -> Option<Finding> {
    let last = crashes.last()?;
    let path = view.home.crash_report(session);
    let skipped = crashes.len().saturating_sub(MAX_TIMES);
    let times: Vec<String> = crashes.iter().skip(skipped).map(|crash| crash.at.to_string()).collect();
    let times = times.join(", ");
    let about = format!("{} ({}, in {}, version {})", last.message, last.doing, last.location, last.version);
    let finding = match view.home.quarantined.get(session) {
        Some(quarantine) => {
            let what = format!(
                "The session is quarantined: it made the daemon crash {} ({times}), the last time with: {about}. \
                 Nothing of it is read or repaired, and its agent is left alone.",
                quarantine.times()
            );
            let remedy = "Please report the message; a different version tries the session again automatically. Release it to try it again, or set it aside to get rid of it.";
            Finding::new(Code::SessionQuarantined, path, what, remedy)
        }
        None => {
            let what = format!(
                "A daemon crashed while it worked on the session ({times}), the last time with: {about}."
            );
            let remedy = "Please report the message. If it happens again, the session is left alone until it is released.";
            Finding::new(Code::CrashReported, path, what, remedy)
        }
    };
    Some(finding.of(session))
}
