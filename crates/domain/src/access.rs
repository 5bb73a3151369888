//! Access tokens: who may speak to the daemon from elsewhere, what each may do, and until when. A token is an id and a
//! 256-bit secret; only the secret's hash is kept. Unlike a resume token it is for a caller, not for one wait.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::AccessId;
use crate::string_enum::string_enums;
use crate::time::Timestamp;
use crate::token::Presented;

/// The version of the list's format this code writes.
pub const ACCESS_VERSION: u32 = 1;

/// Most tokens that are good at a time: more than anyone looks after, and a list is read in a millisecond.
pub const MAX_ACTIVE: usize = 1000;

/// How many ended tokens are remembered, so that their bearers are told why they are refused.
pub const MAX_ENDED: usize = 256;

/// Longest name of a token.
pub const MAX_NAME: usize = 64;

string_enums! {
    /// What a token may do; each may do what those before it may.
    #[derive(JsonSchema)]
    pub enum Scope {
        /// Look.
        Read = "read",
        /// Look, and answer what agents ask.
        Answer = "answer",
        /// Everything.
        Admin = "admin",
    }
}

/// The list of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessList {
    /// The format's version.
    pub version: u32,
    /// The tokens.
    pub tokens: BTreeMap<AccessId, AccessToken>,
}

impl Default for AccessList {
    fn default() -> AccessList {
        AccessList { version: ACCESS_VERSION, tokens: BTreeMap::new() }
    }
}

/// One token, without its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken {
    /// What a person calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it may do.
    pub scope: Scope,
    /// SHA-256 of its secret, in hex.
    pub secret_hash: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Until when it is good, if not for ever.
    pub expires_at: Option<Timestamp>,
    /// When it was taken back, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken")
            .field("name", &self.name)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// Where a token stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It may be used.
    Active,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}

impl AccessToken {
    /// Tells where it stands.
    pub fn standing(&self, now: Timestamp) -> Standing {
        if self.revoked_at.is_some() {
            Standing::Revoked
        } else if self.expires_at.is_some_and(|at| now >= at) {
            Standing::Expired
        } else {
            Standing::Active
        }
    }

    fn ended_at(&self) -> Option<Timestamp> {
        self.revoked_at.or(self.expires_at)
    }
}

/// Why a caller is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// No such token, or the secret is wrong: the caller is not told which.
    #[error("this access token is not known")]
    Unknown,
    /// Its time is over.
    #[error("this access token has expired")]
    Expired,
    /// It was taken back.
    #[error("this access token was revoked")]
    Revoked,
    /// It may do less than this.
    #[error("this access token may only {}, and this needs one that may {}", .has.as_str(), .needs.as_str())]
    Scope {
        /// What it may do.
        has: Scope,
        /// What would be needed.
        needs: Scope,
    },
}

/// Who a good token lets in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// The token.
    pub id: AccessId,
    /// How it is named where it is recorded that someone did something.
    pub name: String,
    /// Until when it is good.
    pub expires_at: Option<Timestamp>,
}

/// An access token as its bearer shows it: `tok_….<secret>`.
pub type PresentedToken = Presented<AccessId>;

impl FromStr for PresentedToken {
    type Err = Denial;

    fn from_str(text: &str) -> Result<PresentedToken, Denial> {
        Presented::read(text).ok_or(Denial::Unknown)
    }
}

/// What a token is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAccess {
    /// What a person calls it.
    pub name: Option<String>,
    /// What it may do.
    pub scope: Scope,
    /// How long it is good, if not for ever.
    pub ttl_millis: Option<i64>,
}

/// Why a token is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAccess {
    /// The name cannot be used.
    #[error("a token's name is 1 to {MAX_NAME} letters, digits and . _ - @")]
    Name,
    /// There are too many.
    #[error("there are {MAX_ACTIVE} access tokens already")]
    TooMany,
}

impl AccessList {
    /// Adds a token; those that ended longest ago are forgotten if there are very many.
    pub fn add(&mut self, shown: &PresentedToken, new: NewAccess, now: Timestamp) -> Result<(), BadAccess> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
        let good = |name: &String| (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits);
        if !new.name.as_ref().is_none_or(good) {
            return Err(BadAccess::Name);
        }
        if self.active(now) >= MAX_ACTIVE {
            return Err(BadAccess::TooMany);
        }
        let token = AccessToken {
            name: new.name,
            scope: new.scope,
            secret_hash: shown.secret_hash().to_owned(),
            created_at: now,
            expires_at: new.ttl_millis.map(|ttl| now.plus_millis(ttl)),
            revoked_at: None,
        };
        self.tokens.insert(shown.id, token);
        self.forget(now);
        Ok(())
    }

    /// Takes a token back; tells whether it was good until now, and nothing if there is no such token.
    pub fn revoke(&mut self, id: AccessId, now: Timestamp) -> Option<Standing> {
        let token = self.tokens.get_mut(&id)?;
        let stood = token.standing(now);
        token.revoked_at.get_or_insert(now);
        Some(stood)
    }

    /// Returns how many tokens may be used.
    pub fn active(&self, now: Timestamp) -> usize {
        self.tokens.values().filter(|token| token.standing(now) == Standing::Active).count()
    }

    /// Decides whether a caller is let in. The secret is compared in constant time, and before anything else is told about
    /// the token.
    pub fn judge(&self, shown: &PresentedToken, needs: Scope, now: Timestamp) -> Result<Bearer, Denial> {
        let token = self.tokens.get(&shown.id).ok_or(Denial::Unknown)?;
        if !shown.has_hash(&token.secret_hash) {
            return Err(Denial::Unknown);
        }
        match token.standing(now) {
            Standing::Revoked => Err(Denial::Revoked),
            Standing::Expired => Err(Denial::Expired),
            Standing::Active if token.scope < needs => Err(Denial::Scope { has: token.scope, needs }),
            Standing::Active => Ok(self.bearer(shown.id, token)),
        }
    }

    /// Tells whether a token that was let in is still good.
    pub fn is_good(&self, id: AccessId, now: Timestamp) -> bool {
        self.tokens.get(&id).is_some_and(|token| token.standing(now) == Standing::Active)
    }

    fn bearer(&self, id: AccessId, token: &AccessToken) -> Bearer {
        // Names may be given twice, ids not.
        let name = token.name.as_ref().map_or_else(|| id.to_string(), |name| format!("{name} ({id})"));
        Bearer { id, name, expires_at: token.expires_at }
    }

    fn forget(&mut self, now: Timestamp) {
        let ended = self.tokens.iter().filter(|(_, token)| token.standing(now) != Standing::Active);
        let mut ended: Vec<_> = ended.map(|(id, token)| (token.ended_at(), *id)).collect();
        ended.sort_unstable();
        let too_many = ended.len().saturating_sub(MAX_ENDED);
        for (_, id) in &ended[..too_many] {
            self.tokens.remove(id);
        }
    }
}

#[cfg(test)]
mod tests;
