//! Resume tokens: who may end which wait, until when, and how often (once).
//!
//! The index is the fold of a session's `token.*` records and is kept in its own file beside the snapshot.
//! "Expired" and "consumed" are answers, not failures, so validation returns values.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::chain::{ChainHash, Position};
use crate::event::{Event, IllegalTransition, TokenScope};
use crate::id::{SessionId, TokenId};
use crate::time::{Moment, Timestamp};

/// The version of the index format this code writes.
pub const TOKEN_INDEX_VERSION: u32 = 1;

/// How many ended tokens a session remembers, so that a repeated answer finds the first result: far more
/// than anyone repeats, and it keeps the file small in a session with thousands of permissions.
pub const MAX_ENDED: usize = 256;

/// The tokens of one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenIndex {
    /// The format's version.
    pub version: u32,
    /// The session.
    pub id: SessionId,
    /// The last record of the log taken in.
    pub last_seq: u64,
    /// The byte of the log after it.
    pub log_offset: u64,
    /// Its hash.
    pub last_hash: Option<ChainHash>,
    /// The tokens.
    pub tokens: BTreeMap<TokenId, Token>,
}

/// One token, without its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// What it is good for.
    pub scope: TokenScope,
    /// For whom it was made, if not for the wait itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// SHA-256 of its secret, in hex.
    pub secret_hash: String,
    /// Until when, if not for ever.
    pub expires_at: Option<Timestamp>,
    /// The record that minted it.
    pub minted_seq: u64,
    /// Where it stands.
    pub state: TokenState,
}

impl Token {
    fn is_past(&self, moment: Moment) -> bool {
        self.expires_at.is_some_and(|at| moment.is_past(at))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("scope", &self.scope)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Where a token stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum TokenState {
    /// It may be used.
    Active,
    /// It was used.
    Consumed {
        /// The record that says so.
        seq: u64,
        /// SHA-256 of the answer given.
        answer_hash: Option<String>,
    },
    /// It was taken back.
    Revoked {
        /// The record that says so.
        seq: u64,
        /// Why.
        reason: String,
    },
    /// Its time ran out and that was recorded.
    Expired {
        /// The record that says so.
        seq: u64,
    },
}

/// Why a token does not open its wait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// No such token, or the secret is wrong: the caller is not told which.
    #[error("this resume token is not known")]
    Unknown,
    /// Its time is over.
    #[error("this resume token has expired")]
    Expired,
    /// It was taken back.
    #[error("this resume token was revoked: {0}")]
    Revoked(String),
    /// It was used with another answer.
    #[error("this resume token was already used with another answer")]
    Consumed,
    /// It is an answer link, and was used already.
    #[error("this answer link was already used: its answer stands, and nothing was done again")]
    Used,
    /// It is for another session, run or wait, or for another answer.
    #[error("this resume token is for another wait, or for another answer to it")]
    Scope,
}

/// What a valid token leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It may be consumed now.
    Fresh,
    /// The same answer was given before: the record that says so holds the first result.
    Repeated {
        /// The `token.consumed` record.
        seq: u64,
    },
}

/// A token as its bearer shows it, `rt_….<secret>`: a resume token, or one with another kind of id.
#[derive(Clone, PartialEq, Eq)]
pub struct Presented<Id = TokenId> {
    /// The token.
    pub id: Id,
    secret_hash: String,
}

impl<Id: fmt::Display + FromStr> Presented<Id> {
    /// Returns the text to hand out for a freshly minted token, and what is kept of it.
    pub fn mint(id: Id, secret: [u8; 32]) -> (String, Presented<Id>) {
        let secret = hex(&secret);
        (format!("{id}.{secret}"), Presented { id, secret_hash: sha256_hex(secret.as_bytes()) })
    }

    /// Reads a text; none if it is no token.
    pub(crate) fn read(text: &str) -> Option<Presented<Id>> {
        let (id, secret) = text.split_once('.').filter(|(_, secret)| secret.len() == 64)?;
        Some(Presented { id: id.parse().ok()?, secret_hash: sha256_hex(secret.as_bytes()) })
    }

    /// Returns the SHA-256 of its secret, which is what is recorded of it.
    pub fn secret_hash(&self) -> &str {
        &self.secret_hash
    }

    /// Tells whether its secret has a hash; compared in constant time.
    pub(crate) fn has_hash(&self, secret_hash: &str) -> bool {
        secret_hash.as_bytes().ct_eq(self.secret_hash.as_bytes()).into()
    }
}

impl FromStr for Presented {
    type Err = Rejection;

    fn from_str(text: &str) -> Result<Presented, Rejection> {
        Presented::read(text).ok_or(Rejection::Unknown)
    }
}

impl<Id: fmt::Display> fmt::Debug for Presented<Id> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.<secret>", self.id)
    }
}

/// Returns SHA-256 in lowercase hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha256(bytes))
}

/// Returns the SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Returns bytes in lowercase hex.
fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl TokenIndex {
    /// Returns the index before the first record.
    pub fn empty(id: SessionId) -> TokenIndex {
        TokenIndex {
            version: TOKEN_INDEX_VERSION,
            id,
            last_seq: 0,
            log_offset: 0,
            last_hash: None,
            tokens: BTreeMap::new(),
        }
    }

    /// Returns the index of a session that has no tokens yet, as of some record.
    pub fn empty_at(id: SessionId, position: Position) -> TokenIndex {
        let mut index = TokenIndex::empty(id);
        index.set_position(position);
        index
    }

    /// Returns how far into the log the index has come.
    pub fn position(&self) -> Position {
        Position { last_seq: self.last_seq, log_offset: self.log_offset, last_hash: self.last_hash }
    }

    /// Moves the index to a position; one that is ahead already stays.
    pub fn set_position(&mut self, position: Position) {
        if position.last_seq > self.last_seq {
            self.rewind(position);
        }
    }

    /// Goes back to a position; no record about tokens may have come since.
    pub fn rewind(&mut self, position: Position) {
        Position { last_seq: self.last_seq, log_offset: self.log_offset, last_hash: self.last_hash } =
            position;
    }

    /// Takes in one event as record `seq`; records it has seen before are passed over.
    pub fn apply(&mut self, seq: u64, _ts: Timestamp, event: &Event<'_>) -> Result<(), IllegalTransition> {
        if seq <= self.last_seq {
            return Ok(());
        }
        self.transition(seq, event).map_err(|why| IllegalTransition { kind: event.name().to_owned(), why })
    }

    fn transition(&mut self, seq: u64, event: &Event<'_>) -> Result<(), String> {
        let (id, next) = match event {
            Event::TokenMinted(minted) => {
                let id = minted.resume_token_id;
                if self.tokens.contains_key(&id) {
                    return Err(format!("{id} exists already"));
                }
                if minted.scope.session_id != self.id || minted.scope.wait_id != minted.wait_id {
                    return Err(format!("the scope of {id} is not this session and wait"));
                }
                let token = Token {
                    scope: minted.scope.clone(),
                    by: minted.by.as_ref().map(|by| by.as_ref().into()),
                    secret_hash: minted.secret_hash.as_ref().into(),
                    expires_at: minted.expires_at,
                    minted_seq: seq,
                    state: TokenState::Active,
                };
                self.tokens.insert(id, token);
                self.forget_oldest_ended();
                return Ok(());
            }
            Event::TokenConsumed(consumed) => {
                let answer_hash = consumed.answer_hash.as_ref().map(|hash| hash.as_ref().into());
                (consumed.resume_token_id, TokenState::Consumed { seq, answer_hash })
            }
            Event::TokenRevoked(revoked) => {
                (revoked.resume_token_id, TokenState::Revoked { seq, reason: revoked.reason.as_ref().into() })
            }
            Event::TokenExpired(expired) => (expired.resume_token_id, TokenState::Expired { seq }),
            _ => return Ok(()),
        };
        let token = self.tokens.get_mut(&id).ok_or_else(|| format!("{id} was never minted"))?;
        if token.state != TokenState::Active {
            return Err(format!("{id} is not active any more"));
        }
        token.state = next;
        Ok(())
    }

    fn forget_oldest_ended(&mut self) {
        let ended = |token: &Token| token.state != TokenState::Active;
        if self.tokens.values().filter(|token| ended(token)).count() > MAX_ENDED {
            let oldest = self.tokens.iter().filter(|(_, token)| ended(token));
            if let Some(id) = oldest.min_by_key(|(_, token)| token.minted_seq).map(|(id, _)| *id) {
                self.tokens.remove(&id);
            }
        }
    }

    /// Tells whether a token may still be used.
    pub fn is_active(&self, id: TokenId, moment: Moment) -> bool {
        self.tokens.get(&id).is_some_and(|token| token.state == TokenState::Active && !token.is_past(moment))
    }

    /// Returns the tokens whose time has run out and of which no record says so yet.
    pub fn expired(&self, moment: Moment) -> impl Iterator<Item = (TokenId, &Token)> {
        let due = move |token: &Token| token.state == TokenState::Active && token.is_past(moment);
        self.tokens.iter().filter(move |(_, token)| due(token)).map(|(id, token)| (*id, token))
    }

    /// Tells what a shown token is for, if it is one of these and its secret is right, whatever became of it since. The
    /// secret is compared in constant time.
    pub fn scope_of(&self, shown: &Presented) -> Option<&TokenScope> {
        let token = self.tokens.get(&shown.id)?;
        shown.has_hash(&token.secret_hash).then_some(&token.scope)
    }

    /// Decides what a shown token leads to, if it is to be used for `wanted`. The secret is compared in constant time, and
    /// before anything else is told about the token.
    pub fn validate(
        &self,
        shown: &Presented,
        wanted: &TokenScope,
        answer_hash: &str,
        moment: Moment,
    ) -> Result<Accepted, Rejection> {
        let own = self.scope_of(shown).ok_or(Rejection::Unknown)?;
        if !own.covers(wanted) {
            return Err(Rejection::Scope);
        }
        self.judge_shown(shown.id, answer_hash, moment)
    }

    /// Decides what a token leads to for whoever has shown it. A link lies in somebody's inbox, where anyone may find it later, so that
    /// it is good for one use; any other token finds the first result again.
    pub fn judge_shown(&self, id: TokenId, answer_hash: &str, moment: Moment) -> Result<Accepted, Rejection> {
        let accepted = self.judge(id, answer_hash, moment)?;
        let is_link = self.tokens.get(&id).is_some_and(|token| token.scope.option_id.is_some());
        if is_link && accepted != Accepted::Fresh { Err(Rejection::Used) } else { Ok(accepted) }
    }

    /// Decides what a token leads to, whoever asks.
    pub fn judge(&self, id: TokenId, answer_hash: &str, moment: Moment) -> Result<Accepted, Rejection> {
        let token = self.tokens.get(&id).ok_or(Rejection::Unknown)?;
        match &token.state {
            TokenState::Consumed { seq, answer_hash: Some(first) } if first == answer_hash => {
                Ok(Accepted::Repeated { seq: *seq })
            }
            TokenState::Consumed { .. } => Err(Rejection::Consumed),
            TokenState::Revoked { reason, .. } => Err(Rejection::Revoked(reason.clone())),
            TokenState::Expired { .. } => Err(Rejection::Expired),
            TokenState::Active if token.is_past(moment) => Err(Rejection::Expired),
            TokenState::Active => Ok(Accepted::Fresh),
        }
    }
}

#[cfg(test)]
mod tests;
