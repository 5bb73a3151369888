//! Being let in: both sides prove that they know the holder's secret. Bytes in, bytes out, no I/O, so that any
//! kind of supervisor can drive it. Until the holder has proven itself it gets nothing but our own proof.

use crate::journal::hex;
use crate::wire::{
    Auth, Challenge, Decoder, Event, Marks, Mode, PREAMBLE_LEN, Preamble, Proof, Refused, Request, Secret,
    WireError,
};

/// Frames that may be passed over before the holder is proven: more would be a way to keep us busy.
const MOST_PASSED_OVER: usize = 64;

/// Who comes, and what for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Visitor {
    /// What for.
    pub(super) mode: Mode,
    /// Which supervisor: one life of a daemon.
    pub(super) instance: String,
    /// The epoch it wants to command under; of no account unless it comes to command.
    pub(super) epoch: u64,
}

/// What a holder said when it let us in.
#[derive(Debug)]
pub(super) struct Welcomed {
    /// What else the holder can do.
    pub(super) features: u32,
    /// What it said of itself first; compare its fingerprint with what the session expects.
    pub(super) challenge: Challenge,
    /// How far everything has come.
    pub(super) marks: Marks,
    /// What came behind the welcome is in here already.
    pub(super) decoder: Decoder,
}

/// Why we were not let in, or did not want to be.
#[derive(Debug)]
pub(super) enum HandshakeError {
    /// Whoever listens there is somebody else, by what was noticed.
    NotTheHolder(&'static str),
    /// It said no. That is not proven to be the holder's word: nothing is lost by asking again.
    Refused(Refused),
    /// It cannot be understood.
    Wire(WireError),
    /// There is no randomness to be had, so nothing would be proven.
    NoRandomness,
}

impl From<WireError> for HandshakeError {
    fn from(error: WireError) -> HandshakeError {
        HandshakeError::Wire(error)
    }
}

#[derive(Debug)]
enum State {
    Preamble,
    Challenge { features: u32 },
    Welcome { features: u32, challenge: Challenge },
    Over,
}

/// A handshake under way.
#[derive(Debug)]
pub(super) struct Handshake {
    secret: Secret,
    holder_id: String,
    visitor: Visitor,
    nonce2: String,
    state: State,
    decoder: Decoder,
    outgoing: Vec<u8>,
    passed_over: usize,
}

impl Handshake {
    /// Begins one with the holder whose id and secret these are.
    pub(super) fn new(
        holder_id: &str,
        secret: Secret,
        visitor: Visitor,
    ) -> Result<Handshake, HandshakeError> {
        let mut word = [0; 16];
        getrandom::fill(&mut word).map_err(|_| HandshakeError::NoRandomness)?;
        Ok(Handshake {
            secret,
            holder_id: holder_id.into(),
            visitor,
            nonce2: hex(&word),
            state: State::Preamble,
            decoder: Decoder::default(),
            outgoing: Preamble::OURS.write().to_vec(),
            passed_over: 0,
        })
    }

    /// Takes what is to be sent now.
    pub(super) fn outgoing(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.outgoing)
    }

    /// Takes in what was received. After an answer of any kind the handshake is over; until then, send what
    /// [`Handshake::outgoing`] has.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<Option<Welcomed>, HandshakeError> {
        self.decoder.push(bytes);
        if matches!(self.state, State::Preamble) {
            let Some(preamble) = self.decoder.take::<PREAMBLE_LEN>() else { return Ok(None) };
            let theirs = Preamble::read(&preamble)?;
            Preamble::OURS.common(theirs)?;
            self.state = State::Challenge { features: theirs.features };
        }
        while let Some(frame) = self.decoder.next_frame()? {
            let Some(event) = Event::read(&frame)? else {
                self.passed_over += 1;
                if self.passed_over > MOST_PASSED_OVER {
                    return Err(HandshakeError::NotTheHolder("it only talks"));
                }
                continue;
            };
            if let Some(welcomed) = self.handle_event(event)? {
                return Ok(Some(welcomed));
            }
        }
        Ok(None)
    }

    fn handle_event(&mut self, event: Event) -> Result<Option<Welcomed>, HandshakeError> {
        match (std::mem::replace(&mut self.state, State::Over), event) {
            (State::Challenge { features }, Event::Challenge(challenge)) => {
                if challenge.holder_id != self.holder_id {
                    return Err(HandshakeError::NotTheHolder("it has another id"));
                }
                if challenge.nonce.is_empty() {
                    return Err(HandshakeError::NotTheHolder("it asks for no proof"));
                }
                let auth = Auth {
                    mode: self.visitor.mode,
                    instance: self.visitor.instance.clone(),
                    epoch: self.visitor.epoch,
                    nonce2: self.nonce2.clone(),
                    proof: self.proof(&challenge).of_supervisor(&self.secret),
                };
                Request::Auth(auth).frame(Vec::new()).write(&mut self.outgoing);
                self.state = State::Welcome { features, challenge };
                Ok(None)
            }
            (State::Welcome { features, challenge }, Event::Welcome(welcome)) => {
                if !self.proof(&challenge).check_holder(&self.secret, &welcome.proof) {
                    return Err(HandshakeError::NotTheHolder("it does not know the secret"));
                }
                let decoder = std::mem::take(&mut self.decoder);
                Ok(Some(Welcomed { features, challenge, marks: welcome.marks, decoder }))
            }
            (_, Event::Refused(refused)) => Err(HandshakeError::Refused(refused)),
            _ => Err(HandshakeError::NotTheHolder("it says things out of turn")),
        }
    }

    fn proof<'a>(&'a self, challenge: &'a Challenge) -> Proof<'a> {
        Proof {
            holder_id: &self.holder_id,
            nonce: &challenge.nonce,
            nonce2: &self.nonce2,
            mode: self.visitor.mode,
            instance: &self.visitor.instance,
            epoch: self.visitor.epoch,
        }
    }
}

#[cfg(test)]
mod tests;
