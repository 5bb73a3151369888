//! `rekindle dev damage`: does one named kind of harm to a home and says what it did and where. What a crash,
//! a disk or a hasty hand can do, for trying out `doctor` and for tests.

mod files;
mod logs;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rekindle_domain::id::SessionId;
use rekindle_store::home;
use rekindle_store::layout::{Layout, SessionFile, session_file};
use serde_json::json;

use crate::commands::Context;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::seeded::Rng;

/// Damage the home in a named way
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do
    #[arg(value_enum)]
    kind: Kind,
    /// To which session; any if it is left out
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// The seed of every choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Half a record behind a log's end
    TornTail,
    /// One byte of a record in the middle of a log is another
    FlippedByte,
    /// A record in the middle of a log is gone
    MissingRecord,
    /// A record in the middle of a log stands there twice
    DuplicateRecord,
    /// A log ends in a record of a list whose end is missing
    HalfList,
    /// A log ends before the place its snapshot was made at
    CutBelowSnapshot,
    /// Every snapshot, every token index and the list cache are gone
    DeleteCaches,
    /// A snapshot is cut in the middle
    CorruptSnapshot,
    /// A snapshot is of a newer version
    NewerSnapshot,
    /// The home is of a newer version
    NewerHome,
    /// One byte of the write-ahead log is another
    WalFlip,
    /// The write-ahead log ends in the middle of a frame
    WalTear,
    /// Foreign and temporary files in every directory
    RubbishFiles,
    /// A log and a directory that others may read
    BadModes,
    /// A blob is gone
    MissingBlob,
    /// A used token is active again in its index
    StaleTokens,
}

/// What was done.
#[derive(Debug)]
struct Done {
    path: PathBuf,
    byte: Option<u64>,
    line: Option<u64>,
    what: String,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let layout = Layout::new(&context.home);
    if let Some(owner) = home::owner(&*context.disk(), &layout) {
        let message = format!("the home is in use by {owner}");
        return Err(Failure::usage("home_in_use", message).hint("end it first"));
    }
    let mut target = Target { layout, session: args.session, rng: Rng::new(args.seed) };
    let done = target.damage(args.kind).map_err(|error| Failure::failed("not_damaged", error))?;
    let mut out = output::stdout();
    let kind = clap::ValueEnum::to_possible_value(&args.kind);
    let kind = kind.as_ref().map_or("", |kind| kind.get_name());
    if context.json {
        let Done { path, byte, line, what } = done;
        let path = path.to_string_lossy();
        writeln!(out, "{}", json!({"kind": kind, "path": path, "byte": byte, "line": line, "what": what}))?;
    } else {
        writeln!(out, "{kind}: {}: {}", done.path.display(), done.what)?;
    }
    out.flush()?;
    Ok(Exit::Ok)
}

/// Does harm of a kind to a home, by chance if there is a choice; says what was done and where.
pub(crate) fn harm(home: &Path, kind: Kind, seed: u64) -> anyhow::Result<(PathBuf, String)> {
    let mut target = Target { layout: Layout::new(home), session: None, rng: Rng::new(seed) };
    target.damage(kind).map(|done| (done.path, done.what))
}

/// The home to be damaged, and the choices.
struct Target {
    layout: Layout,
    session: Option<SessionId>,
    rng: Rng,
}

impl Target {
    fn damage(&mut self, kind: Kind) -> anyhow::Result<Done> {
        match kind {
            Kind::TornTail => logs::torn_tail(self),
            Kind::FlippedByte => logs::flipped_byte(self),
            Kind::MissingRecord => logs::missing_record(self),
            Kind::DuplicateRecord => logs::duplicate_record(self),
            Kind::HalfList => logs::half_list(self),
            Kind::CutBelowSnapshot => logs::cut_below_snapshot(self),
            Kind::DeleteCaches => files::delete_caches(self),
            Kind::CorruptSnapshot => files::corrupt_snapshot(self),
            Kind::NewerSnapshot => files::newer_snapshot(self),
            Kind::NewerHome => files::newer_home(self),
            Kind::WalFlip => files::wal_flip(self),
            Kind::WalTear => files::wal_tear(self),
            Kind::RubbishFiles => files::rubbish_files(self),
            Kind::BadModes => files::bad_modes(self),
            Kind::MissingBlob => files::missing_blob(self),
            Kind::StaleTokens => files::stale_tokens(self),
        }
    }

    /// Chooses a session that fits, or takes the named one if it does.
    fn pick(&mut self, fits: impl Fn(&Layout, SessionId) -> bool) -> anyhow::Result<SessionId> {
        let mut sessions: Vec<SessionId> = match self.session {
            Some(session) => vec![session],
            None => names(&self.layout.sessions())?
                .iter()
                .filter_map(|name| match session_file(name) {
                    SessionFile::Log(id) => Some(id),
                    _ => None,
                })
                .collect(),
        };
        sessions.retain(|session| fits(&self.layout, *session));
        sessions.sort_unstable();
        let index = self.rng.index(sessions.len());
        sessions.get(index).copied().context("no session here is fit for that")
    }
}

/// Lists the names in a directory, sorted.
fn names(directory: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes in place, so that permissions stay.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
