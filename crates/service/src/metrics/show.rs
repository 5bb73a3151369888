//! The contents of the page of metrics: every family there is, by subject. `docs/metrics.md` says what each means and what
//! to do when it moves.

use std::time::Duration;

use rekindle_domain::event::Kind as Record;
use rekindle_domain::projector::{HolderProof, SessionStatus};
use rekindle_store::meter::{Gauge, Meter};

use super::page::{Format, Kind, Page, seconds};
use super::{Metrics, process};
use crate::drive::checkpoints::CheckpointCounts;
use crate::drive::worker::Workers;
use crate::feed::Feed;
use crate::notifications::SinkCounts;
use crate::pipelines::PipelineCounts;
use crate::records::Records;
use crate::show::{DIRECTORIES, Views};
use crate::snapshots::SnapshotCounts;

/// What is counted elsewhere.
pub(crate) struct Counted<'a> {
    pub(crate) meter: &'a Meter,
    pub(crate) snapshots: &'a SnapshotCounts,
    pub(crate) feed: &'a Feed,
    /// Runs of pipelines that have not ended.
    pub(crate) pipelines: PipelineCounts,
    /// None where nobody is notified.
    pub(crate) notifications: Option<Vec<SinkCounts>>,
}

impl Metrics {
    /// Writes the page. Asks neither the disk nor the committer for anything.
    pub(crate) fn show(&self, views: &Views, counted: &Counted<'_>, format: Format) -> String {
        let Counted { meter, feed, .. } = *counted;
        let mut page = Page::new(format);
        let family = ("rekindle_build_info", Kind::Gauge, "The daemon's version; always 1");
        page.labelled(family, "version", [(env!("CARGO_PKG_VERSION"), 1)]);
        let began = Duration::from_millis(u64::try_from(self.began.as_millis()).unwrap_or(0));
        let help = "When the daemon began, since 1970";
        page.single("process_start_time_seconds", Kind::Gauge, help, seconds(began));
        process::show(&mut page);
        if let Some(census) = Census::take(views) {
            sessions(&mut page, &census);
        }
        self.holders(&mut page, &views.workers);
        records(&mut page, meter);
        pipelines(&mut page, meter, &counted.pipelines);
        store(&mut page, meter, &views.workers.records);
        checkpoints(&mut page, &views.workers.checkpoint_counts);
        snapshots(&mut page, counted.snapshots);
        if let Some(sinks) = &counted.notifications {
            notifications(&mut page, sinks);
        }
        self.start(&mut page);
        streams(&mut page, feed);
        self.http.show(&mut page);
        page.finish()
    }

    fn holders(&self, page: &mut Page, workers: &Workers) {
        let (workers, unread) = workers.load();
        page.single("rekindle_workers", Kind::Gauge, "Sessions that a thread looks after", workers);
        let help = "Bytes that holders have written down and no log has yet";
        page.single("rekindle_holder_journal_unread_bytes", Kind::Gauge, help, unread);
        let help = "Directories of holders as the last sweep found them, once a minute";
        let found =
            DIRECTORIES.iter().map(|state| state.as_str()).zip(self.directories.iter().map(Gauge::get));
        page.labelled(("rekindle_holder_directories", Kind::Gauge, help), "state", found);
    }

    fn start(&self, page: &mut Page) {
        let help = "How long each part of the start took; 0 while it is not over";
        let phases = [("open", &self.opening), ("list", &self.listing), ("look", &self.looking)];
        let took = phases.map(|(phase, took)| (phase, seconds(took.get().copied().unwrap_or_default())));
        page.labelled(("rekindle_recovery_duration_seconds", Kind::Gauge, help), "phase", took);
        let help = "Sessions in which something was going on when the daemon began";
        page.single("rekindle_recovery_sessions", Kind::Gauge, help, self.unfinished.get());
    }
}

fn sessions(page: &mut Page, census: &Census) {
    let statuses = SessionStatus::ALL.map(SessionStatus::as_str).into_iter().zip(census.statuses);
    page.labelled(("rekindle_sessions", Kind::Gauge, "Sessions by derived status"), "status", statuses);
    let help = "Sessions whose log is damaged: they are shown and take no more records";
    page.single("rekindle_sessions_damaged", Kind::Gauge, help, census.damaged);
    page.single("rekindle_waits_open", Kind::Gauge, "Questions that someone has to answer", census.waits);
    let oldest = seconds(Duration::from_millis(census.oldest_wait));
    let help = "How long the oldest open question has waited; 0 if there is none";
    page.single("rekindle_wait_oldest_age_seconds", Kind::Gauge, help, oldest);
    let help = "Holders that a log says are there, by what is known of them";
    page.labelled(("rekindle_holders", Kind::Gauge, help), "state", PROOFS.into_iter().zip(census.holders));
}

fn records(page: &mut Page, meter: &Meter) {
    let records = &meter.records;
    let kinds = Record::ALL.iter().map(|kind| (kind.as_str(), records.of(*kind)));
    page.labelled(("rekindle_records_total", Kind::Counter, "Records appended to logs"), "kind", kinds);
    let started = records.of(Record::RunStarted);
    page.single("rekindle_runs_started_total", Kind::Counter, "Runs begun, continuations included", started);
    let ends = [
        ("completed", Record::RunCompleted),
        ("failed", Record::RunFailed),
        ("cancelled", Record::RunCancelled),
        ("interrupted", Record::RunInterrupted),
    ];
    let ends = ends.map(|(end, kind)| (end, records.of(kind)));
    page.labelled(("rekindle_runs_ended_total", Kind::Counter, "Runs by their end"), "end", ends);
    let family = ("rekindle_interruptions_total", Kind::Counter, "Runs cut short, by what cut them");
    page.labelled(family, "reason", records.interruptions());
    let adopted = records.of(Record::RunAdopted);
    page.single("rekindle_adoptions_total", Kind::Counter, "Runs taken over from a daemon before", adopted);
    let help = "Conversations brought back to agents, by verdict";
    page.labelled(("rekindle_restores_total", Kind::Counter, help), "verdict", records.restored());
    let asked = records.of(Record::RunWaiting);
    page.single("rekindle_waits_opened_total", Kind::Counter, "Questions that agents asked", asked);
    let family = ("rekindle_waits_ended_total", Kind::Counter, "Questions that are over, by how");
    page.labelled(family, "how", records.ended_waits());
}

fn pipelines(page: &mut Page, meter: &Meter, counts: &PipelineCounts) {
    let PipelineCounts { working, waiting, resting } = *counts;
    let help = "Runs of pipelines that have not ended, by what their steps do";
    let states = [("working", working), ("waiting", waiting), ("resting", resting)];
    page.labelled(("rekindle_pipelines", Kind::Gauge, help), "state", states);
    let records = &meter.records;
    let started = records.of(Record::PipelineStarted);
    page.single("rekindle_pipelines_started_total", Kind::Counter, "Runs of pipelines started", started);
    let ends = [
        ("completed", Record::PipelineCompleted),
        ("failed", Record::PipelineFailed),
        ("aborted", Record::PipelineAborted),
    ];
    let ends = ends.map(|(end, kind)| (end, records.of(kind)));
    let family = ("rekindle_pipelines_ended_total", Kind::Counter, "Runs of pipelines by their end");
    page.labelled(family, "end", ends);
    let help = "Steps of pipelines by what came of an attempt, or of looking for a result that was there";
    page.labelled(("rekindle_pipeline_steps_total", Kind::Counter, help), "result", records.steps());
}

fn store(page: &mut Page, meter: &Meter, records: &Records) {
    let appends = "From handing records over until they are answered";
    let checkpoints = "Checkpoints; appends go on meanwhile, but for the last step";
    for (name, help, histogram) in [
        ("rekindle_append_duration_seconds", appends, &meter.appends),
        ("rekindle_sync_duration_seconds", "Syncs of the write-ahead log", &meter.syncs),
        ("rekindle_checkpoint_duration_seconds", checkpoints, &meter.checkpoints),
    ] {
        page.family(name, Kind::Histogram, help);
        page.histogram(&[], &histogram.read());
    }
    let failed = meter.failed_checkpoints.get();
    page.single("rekindle_checkpoint_failures_total", Kind::Counter, "Checkpoints that failed", failed);
    let age = seconds(Duration::from_millis(meter.checkpoint_age(records.now())));
    page.single("rekindle_checkpoint_age_seconds", Kind::Gauge, "How old the last checkpoint is", age);
    let help = "Bytes in the write-ahead log since its last checkpoint";
    page.single("rekindle_wal_bytes", Kind::Gauge, help, meter.wal_bytes.get());
    let help = "Files of the write-ahead log since its last checkpoint";
    page.single("rekindle_wal_segments", Kind::Gauge, help, meter.wal_segments.get());
    let help = "Writes of the write-ahead log that did not succeed, by what is known of them";
    let outcomes = [("full", &meter.full), ("failed", &meter.failed), ("unknown", &meter.unknown)];
    let outcomes = outcomes.map(|(outcome, count)| (outcome, count.get()));
    page.labelled(("rekindle_storage_failures_total", Kind::Counter, help), "outcome", outcomes);
    let help = "Whether the room for the last words is there: 0 on a full disk";
    page.single("rekindle_storage_reserve_kept", Kind::Gauge, help, meter.reserve_kept.get());
}

fn checkpoints(page: &mut Page, counts: &CheckpointCounts) {
    let help = "Captures of directories for checkpoints of runs, by what came of them";
    let outcomes = [("taken", &counts.taken), ("skipped", &counts.skipped), ("failed", &counts.failed)];
    let outcomes = outcomes.map(|(outcome, count)| (outcome, count.get()));
    page.labelled(("rekindle_run_checkpoints_total", Kind::Counter, help), "outcome", outcomes);
    let help = "Bytes that captures of directories added to the store";
    page.single("rekindle_run_checkpoint_bytes_total", Kind::Counter, help, counts.bytes.get());
    let help = "Capturing a directory, from when it was due until it was on disk";
    page.family("rekindle_run_checkpoint_duration_seconds", Kind::Histogram, help);
    page.histogram(&[], &counts.took.read());
}

fn snapshots(page: &mut Page, counts: &SnapshotCounts) {
    let family = ("rekindle_snapshots_taken_total", Kind::Counter, "Kept snapshots taken, by why");
    page.labelled(family, "reason", counts.taken());
    let help = "Snapshots that could not be kept";
    page.single("rekindle_snapshot_failures_total", Kind::Counter, help, counts.failed.get());
    let help = "Bytes on disk of the snapshots that were taken";
    page.single("rekindle_snapshot_bytes_total", Kind::Counter, help, counts.bytes.get());
    let help = "Sessions that were taken back to a snapshot";
    page.single("rekindle_snapshot_restores_total", Kind::Counter, help, counts.restores.get());
    let help = "Sessions that could not be taken back to a snapshot";
    page.single(
        "rekindle_snapshot_restore_failures_total",
        Kind::Counter,
        help,
        counts.failed_restores.get(),
    );
    let took = "Taking a snapshot, until it is on disk and recorded";
    let restored = "Taking a session back to a snapshot";
    for (name, help, histogram) in [
        ("rekindle_snapshot_duration_seconds", took, &counts.took),
        ("rekindle_snapshot_restore_duration_seconds", restored, &counts.restore_took),
    ] {
        page.family(name, Kind::Histogram, help);
        page.histogram(&[], &histogram.read());
    }
}

fn notifications(page: &mut Page, sinks: &[SinkCounts]) {
    let help = "Notifications that were delivered, or will not be, by sink and how";
    page.family("rekindle_notifications_total", Kind::Counter, help);
    for sink in sinks {
        for (outcome, count) in &sink.ended {
            page.sample(&[("sink", &sink.sink), ("outcome", outcome)], count);
        }
    }
    let names = || sinks.iter().map(|sink| sink.sink.as_str());
    let help = "Attempts to deliver that failed and are repeated";
    let failed = names().zip(sinks.iter().map(|sink| sink.failed));
    page.labelled(("rekindle_notification_failures_total", Kind::Counter, help), "sink", failed);
    let waiting = names().zip(sinks.iter().map(|sink| sink.waiting));
    let family =
        ("rekindle_notifications_waiting", Kind::Gauge, "Notifications that wait for their delivery");
    page.labelled(family, "sink", waiting);
    let help = "How long the oldest of them has waited; 0 if there is none";
    let oldest = names().zip(sinks.iter().map(|sink| seconds(Duration::from_millis(sink.oldest_ms))));
    page.labelled(("rekindle_notification_oldest_age_seconds", Kind::Gauge, help), "sink", oldest);
}

fn streams(page: &mut Page, feed: &Feed) {
    let streams = [("session", &feed.one), ("all", &feed.every)];
    let subscribers = streams.map(|(stream, counted)| (stream, counted.subscribers.get()));
    let family = ("rekindle_sse_subscribers", Kind::Gauge, "Followers of server-sent events");
    page.labelled(family, "stream", subscribers);
    let help = "Followers that were sent away because they were too slow";
    let dropped = streams.map(|(stream, counted)| (stream, counted.dropped.get()));
    page.labelled(("rekindle_sse_dropped_total", Kind::Counter, help), "stream", dropped);
}

/// What is known of holders that a log says are there.
const PROOFS: [&str; 4] = ["pending", "living", "silent", "gone"];

/// The count.
#[derive(Debug, Default, PartialEq)]
struct Census {
    /// By status, in the order of [`SessionStatus::ALL`].
    statuses: [usize; SessionStatus::ALL.len()],
    damaged: usize,
    waits: usize,
    /// How long the oldest of them has waited, in milliseconds.
    oldest_wait: u64,
    /// By [`PROOFS`].
    holders: [usize; PROOFS.len()],
}

impl Census {
    /// Counts; none while the sessions are being listed.
    fn take(views: &Views) -> Option<Census> {
        let listed = views.directory.active_if_surveyed(views.store())?;
        let mut census = Census { damaged: listed.damaged, ..Census::default() };
        census.statuses[SessionStatus::Idle as usize] = listed.quiet;
        let now = views.workers.records.now();
        for entry in listed.active.iter().filter(|entry| !entry.state.deleted) {
            let derived = views.status(&entry.state, &entry.tokens);
            census.statuses[derived.status as usize] += 1;
            let proof = derived.evidence.holder.as_ref().map(|holder| holder.proof);
            if let Some(proof) = proof.filter(|_| entry.state.agent.as_ref().is_some_and(|one| !one.exited)) {
                census.holders[proof_index(proof)] += 1;
            }
            // As lists have it: whoever is proven gone waits for nothing.
            let open = entry.state.open_run().filter(|_| proof != Some(HolderProof::Gone));
            for wait in open.iter().flat_map(|run| &run.waits) {
                census.waits += 1;
                census.oldest_wait = census.oldest_wait.max(now.millis_since(wait.since));
            }
        }
        Some(census)
    }
}

fn proof_index(proof: HolderProof) -> usize {
    match proof {
        HolderProof::Pending => 0,
        HolderProof::Lock => 1,
        HolderProof::Unresponsive => 2,
        HolderProof::Gone => 3,
    }
}
