//! Access tokens: who may speak to the daemon from elsewhere. The list is a file that commands change; it is looked at
//! before anyone is let in, so that what was taken back a moment ago is refused. A list that cannot be read lets in nobody.

use std::path::Path;
use std::sync::Mutex;

use rekindle_domain::access::{
    AccessList, BadAccess, Bearer, Denial, NewAccess, PresentedToken, Scope, Standing,
};
use rekindle_domain::id::AccessId;
use rekindle_domain::time::Timestamp;
use rekindle_store::access_list::{self, AccessError, Stamp, Used};
use rekindle_store::disk::{Disk, SharedDisk};
use rekindle_store::layout::Layout;
use rekindle_wire::code::Code;
use rekindle_wire::hint::Hint;
use tokio::sync::watch;

use crate::boottime::BootClock;
use crate::error::{Result, ServiceError, chain};
use crate::ids::{NoRandomness, millis, random, random_bytes};
use crate::lock::locked;
use crate::test_knobs::crash_point;

/// The list as a daemon knows it.
pub struct Access {
    disk: SharedDisk,
    layout: Layout,
    steady: BootClock,
    /// Held by whoever looks at the file, which may take its time.
    looking: Mutex<()>,
    /// Held for moments only.
    known: Mutex<Known>,
    used: Mutex<LastUse>,
    /// Told when the list is another one, or a token's time is over.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Known {
    /// Which file it was read from; none before it was read.
    stamp: Option<Stamp>,
    /// None if it cannot be read.
    list: Option<AccessList>,
    /// How many were good when it was last looked.
    active: usize,
}

#[derive(Default)]
struct LastUse {
    used: Used,
    /// It is on disk.
    kept: bool,
}

impl Access {
    pub(crate) fn new(disk: SharedDisk, home: &Path, steady: BootClock) -> Access {
        let layout = Layout::new(home);
        let used = LastUse { used: access_list::read_used(&*disk, &layout), kept: true };
        let (looking, known, used) = (Mutex::default(), Mutex::default(), Mutex::new(used));
        Access { disk, layout, steady, looking, known, used, changed: watch::Sender::new(()) }
    }

    /// Decides whether a caller is let in, by the list as it is now; may block.
    pub fn judge(&self, shown: &PresentedToken, needs: Scope) -> Result<Bearer> {
        let looking = locked(&self.looking);
        self.reload_if_changed();
        let now = self.steady.now();
        let known = locked(&self.known);
        let list = known.list.as_ref().ok_or_else(unreadable)?;
        let bearer = list.judge(shown, needs, now).map_err(denied)?;
        drop((known, looking));
        let mut last = locked(&self.used);
        last.used.insert(bearer.id, now);
        last.kept = false;
        Ok(bearer)
    }

    /// Tells whether a token that was let in is still good, as far as is known.
    pub fn is_good(&self, id: AccessId) -> bool {
        let now = self.steady.now();
        locked(&self.known).list.as_ref().is_some_and(|list| list.is_good(id, now))
    }

    /// Looks whether anything changed, and tells whoever listens; may block.
    pub fn refresh(&self) {
        let _looking = locked(&self.looking);
        self.reload_if_changed();
    }

    /// Returns something that is told when a token may not be good any more.
    pub fn listen(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns how many tokens are good; may block.
    pub fn active(&self) -> usize {
        self.refresh();
        locked(&self.known).active
    }

    /// Writes down when tokens were last used, if that is not on disk; may block.
    pub fn keep_used(&self) {
        let mut last = locked(&self.used);
        if std::mem::replace(&mut last.kept, true) {
            return;
        }
        let known = locked(&self.known);
        if let Some(list) = &known.list {
            last.used.retain(|id, _| list.tokens.contains_key(id));
        }
        drop(known);
        let used = last.used.clone();
        drop(last);
        if let Err(error) = access_list::write_used(&*self.disk, &self.layout, &used) {
            tracing::warn!("the last use of access tokens cannot be recorded: {}", chain(&error));
        }
    }

    /// Reads the list if it is another one. Whoever calls holds `looking`.
    fn reload_if_changed(&self) {
        let stamp = access_list::stamp(&*self.disk, &self.layout);
        let fresh = locked(&self.known).stamp == Some(stamp);
        let read = (!fresh).then(|| access_list::read(&*self.disk, &self.layout));
        let now = self.steady.now();
        let mut known = locked(&self.known);
        if let Some(read) = read {
            known.stamp = Some(stamp);
            known.list = match read {
                Ok(list) => Some(list),
                Err(error) => {
                    tracing::error!("no client is let in over TCP: {}", chain(&error));
                    None
                }
            };
        }
        let active = known.list.as_ref().map_or(0, |list| list.active(now));
        let fewer = std::mem::replace(&mut known.active, active) != active;
        drop(known);
        if !fresh || fewer {
            self.changed.send_replace(());
        }
    }
}

fn unreadable() -> ServiceError {
    let message = "the daemon cannot read its list of access tokens and lets no client in over TCP";
    ServiceError::new(Code::TokensUnreadable, message).hint(Hint::ListTokens)
}

fn denied(denial: Denial) -> ServiceError {
    let (code, scope) = match denial {
        Denial::Unknown => (Code::TokenUnknown, None),
        Denial::Scope { needs, .. } => (Code::TokenScope, Some(needs)),
        Denial::Expired => (Code::TokenExpired, None),
        Denial::Revoked => (Code::TokenRevoked, None),
    };
    ServiceError::new(code, denial).hint(Hint::CreateToken { scope })
}

/// Why a token was not made or taken back.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The list cannot be read or written.
    #[error(transparent)]
    List(#[from] AccessError),
    /// It cannot be made.
    #[error(transparent)]
    Bad(#[from] BadAccess),
    /// There are no random numbers.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// There is no such token.
    #[error("no access token's id begins with {0}")]
    Unknown(String),
    /// Several are meant.
    #[error("{} access tokens begin with {prefix}", ids.len())]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// Those that begin so.
        ids: Vec<AccessId>,
    },
}

/// The list as commands change it, with or without a daemon.
pub struct AccessFile<'a> {
    disk: &'a dyn Disk,
    layout: Layout,
    now: Timestamp,
}

impl AccessFile<'_> {
    /// Returns the list of a home. `wall` is the time where the home has no clock of its own yet.
    pub fn of_home<'a>(disk: &'a dyn Disk, home: &Path, wall: Timestamp) -> AccessFile<'a> {
        // By the same clock that a daemon judges them by.
        let now = BootClock::known(disk, home).map_or(wall, |steady| steady.now());
        AccessFile { disk, layout: Layout::new(home), now }
    }

    /// Returns the time by which tokens expire.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Makes a token; returns its id and its text, which is not to be had again.
    pub fn create(&self, new: NewAccess) -> Result<(AccessId, String), ChangeError> {
        let id = AccessId::mint(millis(self.now), random()?);
        let (text, shown) = PresentedToken::mint(id, random_bytes()?);
        crash_point("access.before");
        access_list::change(self.disk, &self.layout, |list| list.add(&shown, new, self.now))??;
        crash_point("access.after");
        Ok((id, text))
    }

    /// Takes back the token whose id begins so; returns it, and where it stood.
    pub fn revoke(&self, prefix: &str) -> Result<(AccessId, Standing), ChangeError> {
        crash_point("access.before");
        let revoked = access_list::change(self.disk, &self.layout, |list| {
            let id = find(list, prefix)?;
            let stood = list.revoke(id, self.now).ok_or_else(|| ChangeError::Unknown(prefix.to_owned()))?;
            Ok::<_, ChangeError>((id, stood))
        })?;
        crash_point("access.after");
        revoked
    }

    /// Returns the tokens, and when each was last used.
    pub fn list(&self) -> Result<(AccessList, Used), AccessError> {
        Ok((access_list::read(self.disk, &self.layout)?, access_list::read_used(self.disk, &self.layout)))
    }
}

fn find(list: &AccessList, name: &str) -> Result<AccessId, ChangeError> {
    let bare = name.strip_prefix("tok_").unwrap_or(name);
    let prefix = format!("{}_{bare}", AccessId::PREFIX);
    let ids: Vec<AccessId> =
        list.tokens.keys().copied().filter(|id| id.as_str().starts_with(&prefix)).collect();
    match ids.as_slice() {
        [one] if !bare.is_empty() => Ok(*one),
        _ if ids.is_empty() || bare.is_empty() => Err(ChangeError::Unknown(name.chars().take(64).collect())),
        _ => Err(ChangeError::Ambiguous { prefix, ids }),
    }
}
