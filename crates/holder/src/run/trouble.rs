//! The journal when the disk is against us: pause the agent, lose nothing, go on by ourselves when there is room.

use std::io;
use std::time::Instant;

use super::clocks::{Clocks, RETRY, STATUS, SYNC_OUTPUT, TRIM};
use super::holder::Holder;
use crate::journal::{Body, Ctl};
use crate::wire::{Event, Health};

/// Output is synced after so many bytes, however soon.
const SYNC_BYTES: u64 = 1 << 20;

/// Free room is looked at after so many bytes.
const LOOK_BYTES: u64 = 1 << 20;

impl Holder {
    /// Something has passed: it is to be synced, told, and kept within bounds.
    pub(super) fn record_activity(&mut self) {
        self.activity += 1;
        Clocks::set(&mut self.clocks.status, STATUS);
        if self.journal.unsynced() >= SYNC_BYTES {
            self.sync();
        } else {
            Clocks::set(&mut self.clocks.sync_output, SYNC_OUTPUT);
        }
        if let Some(bound) = self.beyond_bounds(false) {
            self.bounded |= self.trouble.is_none();
            self.pause(bound);
        }
    }

    /// Tells whether the journal takes what we have to say: an end need not wait for a mere bound.
    pub(super) fn can_write(&self) -> bool {
        self.trouble.is_none() || self.bounded
    }

    /// Tells which bound has been reached.
    fn beyond_bounds(&mut self, look: bool) -> Option<String> {
        let unread = self.journal.bytes_from(self.acked + 1);
        if unread > self.launch.limits.unacked_bytes {
            return Some(format!("{unread} bytes of the journal have not been acknowledged"));
        }
        let written = self.journal.written();
        if look || written - self.room_looked_at >= LOOK_BYTES {
            self.room_looked_at = written;
            let room = rustix::fs::statvfs(self.dir.path()).map(|disk| disk.f_bavail * disk.f_frsize);
            if let Ok(room) = room
                && room < self.launch.limits.free_bytes
            {
                return Some(format!("only {room} bytes are free on the disk"));
            }
        }
        None
    }

    /// Makes the journal durable; a segment that cannot be is left, because asking it again proves nothing.
    pub(super) fn sync(&mut self) {
        self.clocks.sync_output = None;
        let Err(error) = self.journal.sync() else { return };
        self.log.write_line(&format!("a sync failed, going on in a new segment: {error}"));
        match self.journal.rotate() {
            Ok(_) => {
                let reason = Some(format!("a sync failed ({error}); the segment before this one is suspect"));
                self.append_ctl(&Ctl::Degraded { reason }, false);
            }
            Err(error) => self.degrade(&error),
        }
    }

    /// Writes something about ourselves; what does not fit now is written later, in order.
    pub(super) fn append_ctl(&mut self, ctl: &Ctl, sync: bool) {
        let payload = serde_json::to_vec(ctl).unwrap_or_default();
        self.append_record(Body::Ctl(ctl.clone()), payload);
        if sync && self.owed.is_empty() {
            self.sync();
        }
    }

    /// Writes a record of ours.
    pub(super) fn append_record(&mut self, body: Body<'static>, payload: Vec<u8>) {
        self.owed.push((body, payload));
        if let Err(error) = self.write_owed() {
            self.degrade(&error);
        }
    }

    fn write_owed(&mut self) -> io::Result<()> {
        while let Some((body, payload)) = self.owed.first() {
            self.journal.append(body, payload)?;
            self.owed.remove(0);
        }
        Ok(())
    }

    /// A write failed: nothing was lost, and nothing more is read until it works again.
    pub(super) fn degrade(&mut self, error: &io::Error) {
        self.reserve.release();
        self.bounded = false;
        self.pause(format!("the journal cannot be written: {error}"));
        // In the room that was given up.
        let _ = self.catch_up();
    }

    fn catch_up(&mut self) -> io::Result<()> {
        self.write_owed()?;
        self.pump.flush(&mut self.journal)
    }

    fn pause(&mut self, trouble: String) {
        Clocks::set(&mut self.clocks.retry, RETRY);
        self.trim();
        if self.trouble.is_some() {
            return;
        }
        self.log.write_line(&format!("paused: {trouble}"));
        self.trouble = Some(trouble.clone());
        // Told as well as it can be: if there is no room for it, the way out of it is recorded.
        let _ = self.journal.ctl(&Ctl::Degraded { reason: Some(trouble) });
        self.notify_health();
    }

    /// Goes on if it is possible again.
    pub(super) fn retry(&mut self, now: Instant) {
        if !Clocks::take_due(&mut self.clocks.retry, now) || self.trouble.is_none() {
            return;
        }
        self.trim();
        if self.catch_up().is_err() {
            self.clocks.retry = Some(now + RETRY);
            return;
        }
        if let Some(bound) = self.beyond_bounds(true) {
            self.clocks.retry = Some(now + RETRY);
            self.only_bounded(bound);
            return;
        }
        self.recover();
    }

    /// It could be written again, but for a bound of ours: that is what is told from now on, and an end need not wait.
    fn only_bounded(&mut self, bound: String) {
        if !self.bounded {
            (self.bounded, self.trouble) = (true, Some(bound));
            self.notify_health();
        }
    }

    fn recover(&mut self) {
        (self.trouble, self.bounded) = (None, false);
        self.reserve.allocate();
        self.append_ctl(&Ctl::Degraded { reason: None }, true);
        self.log.write_line("going on");
        self.notify_health();
        if let Some((_, until)) = &mut self.draining {
            *until = Instant::now() + super::clocks::SILENCE;
        }
    }

    fn notify_health(&mut self) {
        Clocks::set(&mut self.clocks.status, STATUS);
        let health = Event::Health(Health { trouble: self.trouble.clone() });
        self.peers.iter_mut().filter(|peer| !peer.is_stranger()).for_each(|peer| peer.send(&health));
    }

    /// Everything up to a record is safe with the supervisor.
    pub(super) fn acknowledge(&mut self, seq: u64) {
        self.acked = self.acked.max(seq.min(self.journal.head()));
        Clocks::set(&mut self.clocks.trim, TRIM);
        let bounded = self.trouble.is_some() && self.owed.is_empty();
        if bounded && self.catch_up().is_ok() && self.beyond_bounds(true).is_none() {
            self.recover();
        }
    }

    /// Removes what is not needed any more.
    pub(super) fn trim(&mut self) {
        self.journal.trim(self.first_needed_seq());
    }

    /// Returns the first record that must stay: not acknowledged, or still to be delivered.
    fn first_needed_seq(&self) -> u64 {
        self.inputs.oldest_needed().map_or(self.acked + 1, |oldest| oldest.min(self.acked + 1))
    }
}
