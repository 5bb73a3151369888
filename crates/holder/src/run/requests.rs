//! What those who were let in may do: who commands, and what each request means.

use std::time::Duration;

use super::holder::Holder;
use super::inputs::Outcome;
use super::peers::Stage;
use crate::dir::{EpochNote, ExitReason};
use crate::journal::Ctl;
use crate::wire::{
    Auth, Challenge, Event, Frame, Input, Mode, Phase, Proof, Refusal, Refused, Request, Start, Welcome,
    WireError,
};

/// Longest grace anyone may ask for.
const MOST_GRACE: Duration = Duration::from_secs(300);

impl Holder {
    /// Serves whatever a peer has sent.
    pub(super) fn serve(&mut self, index: usize) {
        let stranger = matches!(self.peers[index].stage, Stage::Preamble);
        if let Err(error) = self.peers[index].receive() {
            return self.hang_up(index, &error);
        }
        if stranger && let Stage::Challenged { nonce } = &self.peers[index].stage {
            let challenge = Challenge {
                nonce: nonce.clone(),
                holder_id: self.launch.holder_id.clone(),
                fingerprint: self.launch.fingerprint.clone(),
                phase: self.phase(),
                epoch: self.epoch.epoch,
            };
            self.peers[index].send(&Event::Challenge(challenge));
        }
        loop {
            let frame = match self.peers[index].next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return,
                Err(error) => return self.hang_up(index, &error),
            };
            match Request::read(&frame) {
                Ok(Some(request)) => self.request(index, request, &frame),
                Ok(None) => {}
                Err(error) => return self.hang_up(index, &error),
            }
        }
    }

    fn hang_up(&mut self, index: usize, error: &WireError) {
        self.log.write_line(&format!("hung up: {error}"));
        self.refuse(index, Refusal::Malformed, None);
        self.peers[index].enter(Stage::Closing);
    }

    fn refuse(&mut self, index: usize, reason: Refusal, input: Option<(u64, u64)>) {
        let (input, expected) = input.unzip();
        let refused = Refused { reason, epoch: self.epoch.epoch, input, expected };
        self.peers[index].send(&Event::Refused(refused));
    }

    fn request(&mut self, index: usize, request: Request, frame: &Frame) {
        let mode = match (&self.peers[index].stage, &request) {
            (Stage::Challenged { nonce }, Request::Auth(auth)) => {
                let nonce = nonce.clone();
                return self.admit(index, &nonce, auth);
            }
            (Stage::In { mode }, _) => *mode,
            _ => return self.hang_up(index, &WireError::NotOurs),
        };
        let epoch = match &request {
            Request::Status {} => {
                let marks = self.marks();
                return self.peers[index].send(&Event::Status(marks));
            }
            Request::Ping { word } => return self.peers[index].send(&Event::Pong { word: *word }),
            Request::Auth(_) => return self.refuse(index, Refusal::NotNow, None),
            Request::Start { epoch }
            | Request::Input { epoch, .. }
            | Request::Ack { epoch, .. }
            | Request::Stop { epoch, .. }
            | Request::Retire { epoch }
            | Request::Interrupt { epoch }
            | Request::CloseInput { epoch, .. }
            | Request::Hint { epoch, .. } => *epoch,
        };
        if mode != Mode::Control {
            return self.refuse(index, Refusal::NotNow, None);
        }
        // Checked again with every word: a connection may be older than what it says.
        if epoch != self.epoch.epoch {
            return self.refuse(index, Refusal::Stale, None);
        }
        let answer = match request {
            Request::Start { .. } => self.start(&frame.payload),
            Request::Input { part, .. } => return self.input(index, &part, &frame.payload),
            Request::Ack { seq, .. } => return self.acknowledge(seq),
            Request::Stop { reason, actor, grace_ms, .. } => {
                let grace = Duration::from_millis(grace_ms).min(MOST_GRACE);
                self.begin_stop(ExitReason::StopRequested, Some(actor), Some(reason), grace);
                Ok(Event::Done {})
            }
            Request::Retire { .. } if self.may_retire() => {
                self.begin_stop(ExitReason::Retired, None, None, self.grace());
                Ok(Event::Done {})
            }
            Request::Retire { .. } => Err(Refusal::NotNow),
            Request::Interrupt { .. } => {
                self.interrupt();
                Ok(Event::Done {})
            }
            Request::CloseInput { after, .. } => self.close_after(after),
            Request::Hint { state, max_detached_ms, .. } => return self.apply_hint(&state, max_detached_ms),
            Request::Status {} | Request::Ping { .. } | Request::Auth(_) => return,
        };
        match answer {
            Ok(event) => self.peers[index].send(&event),
            Err(reason) => self.refuse(index, reason, None),
        }
    }

    /// Lets someone in, or not. The proof comes first: nothing is said to those who do not know the secret.
    fn admit(&mut self, index: usize, nonce: &str, auth: &Auth) {
        let holder_id = self.launch.holder_id.clone();
        let proof = Proof {
            holder_id: &holder_id,
            nonce,
            nonce2: &auth.nonce2,
            mode: auth.mode,
            instance: &auth.instance,
            epoch: auth.epoch,
        };
        if nonce.is_empty() || !proof.check_supervisor(&self.secret, &auth.proof) {
            self.log.write_line("refused someone who does not know the secret");
            self.refuse(index, Refusal::Proof, None);
            return self.peers[index].enter(Stage::Closing);
        }
        if auth.mode == Mode::Control && !self.grant_control(auth) {
            self.refuse(index, Refusal::Stale, None);
            return self.peers[index].enter(Stage::Closing);
        }
        self.peers[index].enter(Stage::In { mode: auth.mode });
        let marks = self.marks();
        self.peers[index].woken = marks.head;
        self.peers[index].send(&Event::Welcome(Welcome { proof: proof.of_holder(&self.secret), marks }));
    }

    /// A higher epoch always wins, and the same one only for the same supervisor. The one before is cut off.
    fn grant_control(&mut self, auth: &Auth) -> bool {
        let known = auth.epoch == self.epoch.epoch && auth.instance == self.epoch.instance;
        if auth.epoch <= self.epoch.epoch && !known {
            return false;
        }
        for peer in self.peers.iter_mut().filter(|peer| peer.is_controller()) {
            peer.send(&Event::Fenced { by: auth.epoch });
            peer.enter(Stage::Closing);
        }
        self.inputs.drop_arriving();
        self.epoch = EpochNote { epoch: auth.epoch, instance: auth.instance.clone() };
        // Durable before it is granted; on a disk that is full to the last byte our own memory is the fence.
        self.append_ctl(&Ctl::Attach { instance: auth.instance.clone(), epoch: auth.epoch }, true);
        self.epoch_owed = true;
        self.clocks.detached = None;
        true
    }

    fn start(&mut self, payload: &[u8]) -> Result<Event, Refusal> {
        if self.phase() != Phase::AwaitingStart {
            // Asked twice: the agent that runs is the answer.
            let agent = self.agent.as_ref().ok_or(Refusal::NotNow)?;
            return Ok(Event::Started { agent: agent.identity.clone() });
        }
        let start = serde_json::from_slice::<Start>(payload).map_err(|_| Refusal::Malformed)?;
        match self.start_agent(&start) {
            Ok(agent) => Ok(Event::Started { agent }),
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => Err(Refusal::NoSpace),
            Err(error) => Ok(Event::StartFailed { error: error.to_string() }),
        }
    }

    /// Tells whether there is someone to give input to. Behind a launcher that has ended the agent itself may still read its
    /// pipe; it is about to be ended with the rest of its tree, and must not begin anything.
    fn takes_input(&self) -> bool {
        let lives = self.agent.as_ref().is_some_and(|agent| agent.stdin.is_some() && agent.ended.is_none());
        lives && self.stop.is_none() && !self.inputs.ended
    }

    /// Nothing is to follow an input. Of one that ended before, that is so already.
    fn close_after(&mut self, after: u64) -> Result<Event, Refusal> {
        let accepted = self.inputs.accepted;
        if self.agent.is_none() {
            return Err(Refusal::NotNow);
        }
        if after != accepted {
            // What was accepted is delivered, and what was not is not waited for.
            return Err(if after < accepted { Refusal::Conflict } else { Refusal::Gap });
        }
        if self.takes_input() {
            if !self.owed.is_empty() {
                return Err(Refusal::NoSpace);
            }
            if let Err(error) = self.inputs.end(&mut self.journal) {
                self.degrade(&error);
                return Err(Refusal::NoSpace);
            }
            self.record_activity();
            if !self.inputs.is_waiting() {
                self.close_input(None);
            }
        }
        Ok(Event::Done {})
    }

    fn input(&mut self, index: usize, part: &Input, bytes: &[u8]) {
        let open = self.takes_input();
        let known = part.input <= self.inputs.accepted;
        if !open && !known {
            return self.refuse(index, Refusal::NotNow, Some((part.input, self.inputs.accepted + 1)));
        }
        match self.inputs.accept_part(&mut self.journal, part, bytes) {
            Ok(Outcome::More) => {}
            Ok(Outcome::Accepted { input, seq }) => {
                self.peers[index].send(&Event::Accepted { input, seq });
                if !known {
                    self.record_activity();
                } else if input <= self.inputs.delivered {
                    self.peers[index].send(&Event::Delivered { input });
                }
            }
            Ok(Outcome::Refused { reason, expected }) => {
                self.refuse(index, reason, Some((part.input, expected)));
            }
            Err(error) => {
                self.inputs.drop_arriving();
                self.degrade(&error);
                self.refuse(index, Refusal::NoSpace, Some((part.input, self.inputs.accepted + 1)));
            }
        }
    }
}
