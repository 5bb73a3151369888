//! The holders of a home as `doctor` and `gc` see them: who lives, for whom, and what a dead one left. Looks only; nobody
//! is signalled and nothing is written.

use std::io;
use std::path::Path;

use rekindle_domain::id::{HolderId, SessionId};
use rekindle_holder::client::{FileContents, Inspection, Keeper, LockState, inspect_all, is_made_for};
use rekindle_holder::dir::FORMAT;
use rekindle_holder::journal::{JournalReader, Step};
use rekindle_holder::wire::Preamble;
use rekindle_store::aside::is_aside;
use rekindle_store::check::{Code, Finding};
use rekindle_store::offline::Offline;
use rekindle_store::{LoadError, Want};

use super::ingested::is_ingested;

/// How it stands with a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It lives, for a session that is known.
    Lives,
    /// It lives, and no session here knows it.
    Orphan,
    /// It lives, and its session is here but cannot be used, or has gone on without it; why.
    Quarantined(String),
    /// Its directory is a copy, or was made for another place.
    Copied,
    /// Someone else has its lock.
    Busy,
    /// It is dead, and a start of the daemon brings its journal into the log.
    Unharvested,
    /// It is dead, and nobody looks into its session, which is quarantined.
    Withheld,
    /// It is dead, and there is no log for its journal; why.
    Unclaimed(String),
    /// It is dead, and its journal is in the log.
    Ingested,
    /// Its directory was never used.
    HalfMade,
    /// It is dead, and its journal is damaged before all of it was in the log; how.
    JournalDamaged(String),
    /// It is of another version; which.
    Newer(String),
    /// What it left cannot be read; why not.
    Unreadable(String),
}

/// A holder, and how it stands with it.
#[derive(Debug, Clone)]
pub struct Holder {
    /// What its directory says.
    pub seen: Inspection,
    /// Its session, if that can be told.
    pub session: Option<SessionId>,
    /// How it stands.
    pub standing: Standing,
    /// It was made for this very directory.
    pub ours: bool,
}

/// Looks at every holder of a home.
pub fn inspect_holders(offline: &Offline) -> io::Result<Vec<Holder>> {
    let seen = inspect_all(&offline.layout().home().join("holders"))?;
    Ok(seen.into_iter().map(|seen| inspect_holder(offline, seen)).collect())
}

fn inspect_holder(offline: &Offline, seen: Inspection) -> Holder {
    let launch = seen.launch.there();
    let session = launch.and_then(|launch| launch.session_id.parse().ok());
    let ours = launch.is_some_and(|launch| is_made_for(&seen.dir, launch));
    let about = match (session, seen.holder_id.parse::<HolderId>()) {
        (Some(session), Ok(holder)) => session_claim(offline, session, holder),
        _ => About::Unknown,
    };
    let journal = || journal_damage(&seen.dir.journal());
    let standing = holder_standing(&seen, ours, &about, &journal);
    Holder { standing, session, ours, seen }
}

/// What is known of a holder's session.
enum About {
    /// It works with this holder, whose journal is not wholly in the log.
    Uses,
    /// It has the holder's whole journal.
    Has,
    /// It does not know the holder.
    Strange,
    /// It cannot be used; why not.
    Unusable(String),
    /// It is quarantined: nobody looks into it.
    Quarantined,
    /// There is none.
    Unknown,
}

fn session_claim(offline: &Offline, session: SessionId, holder: HolderId) -> About {
    // From its beginning, as a daemon does before it takes an agent over.
    let loaded = match offline.examine(session, Want::Status) {
        Ok(loaded) => loaded,
        Err(LoadError::NotFound(_)) if is_aside(&**offline.disk(), offline.layout(), session) => {
            return About::Unusable("was set aside in damaged/".into());
        }
        Err(LoadError::NotFound(_)) => return About::Unknown,
        Err(LoadError::Quarantined { .. }) => return About::Quarantined,
        Err(error) => return About::Unusable(format!("cannot be used: {error}")),
    };
    if let Some(damage) = loaded.damage {
        return About::Unusable(format!("is damaged at byte {}", damage.offset));
    }
    if loaded.state.deleted {
        return About::Unknown;
    }
    match is_ingested(&loaded.state, holder, || offline.reader(session)) {
        Ok(true) => About::Has,
        Ok(false) if loaded.state.agent.is_some_and(|agent| agent.holder_id == holder) => About::Uses,
        Ok(false) => About::Strange,
        Err(error) => About::Unusable(format!("cannot be read: {error}")),
    }
}

/// Decides how it stands with a holder. Only a lock tells life and death.
fn holder_standing(
    seen: &Inspection,
    ours: bool,
    about: &About,
    journal: &dyn Fn() -> Option<String>,
) -> Standing {
    let lives = match &seen.lock {
        LockState::Copied { .. } => return Standing::Copied,
        LockState::Unreadable(why) => return Standing::Unreadable(format!("its lock: {why}")),
        LockState::Held { by: Keeper::Another, .. } => return Standing::Busy,
        LockState::Held { by: Keeper::Holder, .. } => true,
        LockState::Free { .. } | LockState::Missing => false,
    };
    match &seen.launch {
        FileContents::There(_) => {}
        FileContents::Missing if !lives && was_never_used(seen.dir.path()) => return Standing::HalfMade,
        FileContents::Missing => return Standing::Unreadable("it has no launch.json".into()),
        FileContents::Unreadable(why) if is_newer(&seen.dir.launch()) => return Standing::Newer(why.clone()),
        FileContents::Unreadable(why) => return Standing::Unreadable(format!("its launch.json: {why}")),
    }
    if lives {
        if !ours {
            return Standing::Copied;
        }
        let versions = seen.status.there().map(|status| status.versions);
        if let Some((low, high)) = versions
            && (low > Preamble::OURS.high || high < Preamble::OURS.low)
        {
            return Standing::Newer(format!("it speaks versions {low} to {high} of the protocol"));
        }
        return match about {
            About::Uses => Standing::Lives,
            About::Unknown => Standing::Orphan,
            About::Has | About::Strange => Standing::Quarantined("does not refer to it, or not yet".into()),
            About::Unusable(why) => Standing::Quarantined(why.clone()),
            About::Quarantined => Standing::Quarantined("is quarantined".into()),
        };
    }
    if let About::Has = about {
        return Standing::Ingested;
    }
    // An agent is started only behind its record: without one nothing was, and here is nothing to be lost.
    if matches!(about, About::Strange | About::Unknown) && was_never_used(seen.dir.path()) {
        return Standing::HalfMade;
    }
    if let Some(damage) = journal() {
        return Standing::JournalDamaged(damage);
    }
    match about {
        About::Has | About::Uses => Standing::Unharvested,
        About::Quarantined => Standing::Withheld,
        About::Strange => Standing::Unclaimed("has no record of it".into()),
        About::Unusable(why) => Standing::Unclaimed(why.clone()),
        About::Unknown => Standing::Unclaimed("is not here".into()),
    }
}

/// Tells whether a directory has nothing but what is made before its holder is started.
fn was_never_used(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else { return false };
    entries.flatten().all(|entry| match entry.file_name().to_str() {
        Some("secret" | "launch.tmp" | "launch.json.tmp" | "launch.json") => true,
        Some("lock") => entry.metadata().is_ok_and(|there| there.len() == 0),
        Some("journal") => std::fs::read_dir(entry.path()).is_ok_and(|mut inner| inner.next().is_none()),
        _ => false,
    })
}

/// Tells whether a file is of a format that is not known here, rather than broken.
fn is_newer(launch: &Path) -> bool {
    let value =
        std::fs::read(launch).ok().and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    let format = value.as_ref().and_then(|value| value["format"].as_u64());
    format.is_some_and(|format| format > u64::from(FORMAT))
}

/// Reads a dead holder's journal to its end and says where it is damaged.
fn journal_damage(journal: &Path) -> Option<String> {
    // From the first record that is there: what was acknowledged may be gone.
    let mut reader = JournalReader::open(journal, 1);
    loop {
        match reader.step() {
            Ok(Step::Record(_)) => {}
            Ok(Step::End) => return None,
            Ok(Step::Damaged(damage)) => return Some(damage.to_string()),
            Err(error) => return Some(error.to_string()),
        }
    }
}

impl Holder {
    /// Says what that means, what is safe, and what to do next.
    pub fn finding(&self) -> Finding {
        let pid = match &self.seen.lock {
            LockState::Held { note: Some(note), .. } => format!("process {}", note.process.pid),
            _ => "a process whose id is not recorded".into(),
        };
        let whose = self.session.map_or("its session".into(), |session| format!("session {session}"));
        let (code, what, remedy): (Code, String, &str) = match &self.standing {
            Standing::Lives => (
                Code::HolderLives,
                format!("An agent of {whose} lives, held by {pid}."),
                "Nothing to do: a daemon takes it over, and until then it keeps working.",
            ),
            Standing::Orphan => (
                Code::HolderOrphan,
                format!("An agent lives, held by {pid}, and {whose} is not here: it was deleted, or the home was restored from a backup."),
                "It is not ended automatically, and its output stays in its journal. End it if you do not want it.",
            ),
            Standing::Quarantined(why) => (
                Code::HolderQuarantined,
                format!("An agent lives, held by {pid}, and {whose} {why}."),
                "It is left alone and keeps working, without a daemon, until its session can be used again or is set aside. Then the agent can be ended.",
            ),
            Standing::Copied => (
                Code::HolderCopied,
                "This directory is a copy, or was made for another home: the processes it names do not belong to this home.".into(),
                "No process is signalled because of it. A daemon reads its journal; the original is not affected.",
            ),
            Standing::Busy => (
                Code::HolderBusy,
                "The holder is dead, and another process is working in its directory.".into(),
                "Nothing to do: a daemon is reading or removing it.",
            ),
            Standing::Unharvested => (
                Code::HolderUnharvested,
                format!("The holder is dead, and the last output of its agent is in its journal but not yet in the log of {whose}."),
                "Nothing to do: the next daemon copies it into the log. Do not remove it.",
            ),
            Standing::Withheld => (
                Code::HolderUnharvested,
                format!("The holder is dead, and {whose} is quarantined: whether its journal is in the log is not known."),
                "Do not remove it: a daemon handles it when the session is released.",
            ),
            Standing::Unclaimed(why) => (
                Code::HolderUnclaimed,
                format!("The holder is dead, and {whose} {why}: its journal may be the only copy of the agent's output."),
                "It is kept until you remove it.",
            ),
            Standing::Ingested => (
                Code::HolderIngested,
                format!("The holder is dead, and everything in its journal is in the log of {whose}."),
                "Nothing to do: a daemon or a garbage collection removes it.",
            ),
            Standing::HalfMade => (
                Code::HolderHalfMade,
                "A crash left this directory incomplete; no agent was ever started from it.".into(),
                "Nothing to do; a repair removes it.",
            ),
            Standing::JournalDamaged(how) => (
                Code::HolderJournalDamaged,
                format!("The holder is dead, and its journal is damaged before all of it was in the log of {whose}: {how}."),
                "The next daemon copies the undamaged part into the log and records that the rest is uncertain. Until then nothing is removed; restore the file from a backup if you have one.",
            ),
            Standing::Newer(what) => (
                Code::HolderNewer,
                format!("The holder is from an unknown version: {what}."),
                "It is left alone. Use the Rekindle that started it.",
            ),
            Standing::Unreadable(why) => (
                Code::HolderUnreadable,
                format!("The directory cannot be read as a holder's: {why}."),
                "It is left alone: it is not known whether its agent is alive. Check before you remove it.",
            ),
        };
        let path = self.seen.dir.path();
        let finding = Finding::new(code, path, what, remedy);
        self.session.map_or(finding.clone(), |session| finding.of(session))
    }
}
