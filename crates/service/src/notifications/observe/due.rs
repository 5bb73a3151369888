//! What is due by the clock: notices that have settled, and what the clock itself tells of runs that go on.

use rekindle_domain::id::StreamId;
use rekindle_domain::session::SessionState;
use rekindle_domain::time::Timestamp;
use rekindle_notify::NoticeKind;
use rekindle_notify::derive::{Derived, clock_notices, next_clock_notice, pipeline_of};
use rekindle_notify::outbox::{Cursor, Entry};

use super::{AGAIN, NewsObserver};
use crate::notifications::release::{LOOK_AGAIN, recipients};

impl NewsObserver {
    /// Decides about what has settled, unless there are news of its stream that nobody has read.
    pub(super) fn release(&mut self) {
        let now = self.now();
        let due: Vec<_> = self.hub.with(|outbox| {
            let due = outbox.settling().filter(|(_, settling)| settling.due <= now);
            due.map(|(n, settling)| (n, settling.clone())).collect()
        });
        for (n, settling) in due {
            let notice = &settling.notice;
            let of_run = pipeline_of(notice).map(StreamId::from);
            let stream = of_run.or(notice.session_id.map(StreamId::from)).unwrap_or_else(StreamId::tasks);
            if self.reading.contains_key(&stream) || self.news.contains_key(&stream) {
                continue;
            }
            let mut entries = Vec::new();
            let attended = self.around.is_attended(notice, now);
            let (to, open) = match self.around.still_holds(notice) {
                None if !self.delivering => continue,
                Some(false) => Default::default(),
                None | Some(true) => {
                    recipients(&self.settings.targets, &settling.told, notice, attended, now)
                }
            };
            if to.is_empty() && open {
                let again = now.plus_millis(i64::try_from(LOOK_AGAIN.as_millis()).unwrap_or(i64::MAX));
                self.hub.with(|outbox| outbox.put_off(n, again));
                continue;
            }
            if notice.kind == NoticeKind::Interrupted && !to.is_empty() {
                let mut cursor = self.cursor(stream).unwrap_or_else(|| Cursor::new(stream));
                cursor.interrupted = notice.run_id;
                self.ahead.remove(&stream);
                entries.push(Entry::Step { cursors: vec![cursor], notices: Vec::new() });
            }
            entries.push(Entry::Settled { n, at: now, to, open });
            self.hub.write(entries);
        }
    }

    /// Tells what the clock says of runs that go on.
    pub(super) fn look_at_clock(&mut self) {
        let now = self.now();
        if self.next_clock.is_none_or(|at| at > now) {
            return;
        }
        self.next_clock = None;
        let active = self.around.directory.active_if_surveyed(&*self.around.store);
        for entry in active.into_iter().flat_map(|active| active.active) {
            let (state, stream) = (&*entry.state, StreamId::from(entry.state.id));
            if state.deleted || state.open_run().is_none() {
                continue;
            }
            // What is recorded and not read yet comes first.
            if self.news.contains_key(&stream) || self.reading.contains_key(&stream) {
                let again = now.plus_millis(i64::try_from(AGAIN.as_millis()).unwrap_or(i64::MAX));
                self.next_clock = self.next_clock.into_iter().chain([again]).min();
                continue;
            }
            self.look_at_clock_of(state, now);
        }
    }

    fn look_at_clock_of(&mut self, state: &SessionState, now: Timestamp) {
        let stream = StreamId::from(state.id);
        let mut cursor = self.cursor(stream).unwrap_or_else(|| Cursor::new(stream));
        let mut watch = cursor.watch();
        let notices = clock_notices(state, &self.rules, &mut watch, now);
        let due = next_clock_notice(state, &self.rules, &watch);
        self.next_clock = self.next_clock.into_iter().chain(due).min();
        if notices.is_empty() {
            return;
        }
        cursor.set_watch(watch);
        let words = self.around.log_details.at_hand(state).and_then(|details| details.last_words);
        let derived = notices.into_iter().map(|mut notice| {
            notice.last_words = words.clone();
            Derived { notice, recorded_at: now, continues: None }
        });
        // Nothing was read: what the cursor says of that stays.
        if cursor.seq == 0 {
            (cursor.seq, cursor.h, cursor.sure) = (state.last_seq, state.last_hash, state.last_seq);
        }
        self.step(cursor, derived.collect());
    }
}
