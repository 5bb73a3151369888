//! A session is exported with its directory into one synced file. Raw: tar through zstd at level 3, of the same files, synced too.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use rekindle_domain::event::SessionUpdated;
use rekindle_domain::id::SessionId;
use rekindle_domain::time::Timestamp;
use rekindle_service::bundles::export::{Export, export};
use rekindle_store::commit::Append;
use rekindle_store::disk::RealDisk;
use rekindle_store::layout::Layout;
use rekindle_workspace::CaptureOptions;

use super::{generated_files, snapshot, tar, workspaces};
use crate::context::{Context, progress};
use crate::home::{make_sessions, open};
use crate::measure::{interleave, millis};
use crate::table::{Row, Target, Unit};

/// Files of a quick run: a hundred megabytes.
const FILES_QUICK: usize = 10_000;

/// Seven tenths of the speed of tar and zstd, by the time that they take.
const MOST: Target = Target::RatioAtMost(1.43);

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let files = context.pick(generated_files::FILES, FILES_QUICK);
    let dir = context.directory()?;
    let (root, home) = (dir.path().join("files"), dir.path().join("home"));
    progress(&format!("making {files} files"));
    generated_files::make(&root, files)?;
    let session = session(&home, &root)?;
    let by_tar = || {
        let (millis, packed) = millis(|| tar(&root, &dir.path().join("packed.tar.zst")));
        packed?;
        Ok([millis])
    };
    let bundle = dir.path().join("bundle.rkb");
    let timed = |home: &Path| {
        let (millis, written) = millis(|| write(home, session, &bundle));
        written?;
        Ok([millis])
    };
    // As a session is whose directory was captured before its latest prompt. Twice: what was written a moment ago is read once more
    // before it is trusted.
    let workspaces = workspaces(&home)?;
    snapshot(&workspaces, &root)?;
    snapshot(&workspaces, &root)?;
    let what = format!("export with {files} files, captured before");
    let [warm] = interleave(&what, context.pick(3, 3), by_tar, || timed(&home))?;
    let first = format!("export with {files} files, never captured");
    let [cold] = interleave(&first, context.pick(2, 2), by_tar, || {
        let fresh = context.directory()?;
        self::session(&fresh.path().join("home"), &root)?;
        timed(&fresh.path().join("home"))
    })?;
    Ok(vec![
        Row::compared(format!("{what}, beside tar | zstd"), Unit::Millis, &warm, MOST),
        Row::compared(format!("{first}, beside tar | zstd"), Unit::Millis, &cold, Target::None),
    ])
}

/// Makes a home with a session in a directory.
fn session(home: &Path, root: &Path) -> anyhow::Result<SessionId> {
    let store = open(home)?;
    let session = make_sessions(&store, 1)?[0];
    let root = root.to_str().context("its path is not valid UTF-8")?.to_owned();
    let updated = SessionUpdated { working_dir: Some(root.into()), ..SessionUpdated::default() };
    store.append(Append::durable(session, vec![updated.into()]))?;
    Ok(session)
}

fn write(home: &Path, session: SessionId, to: &Path) -> anyhow::Result<()> {
    let options = |directory: &Path| CaptureOptions::new(directory);
    let asked = Export {
        runs: Vec::new(),
        sessions: vec![session],
        files: Some(&options),
        transcripts: None,
        made_by: env!("CARGO_PKG_VERSION").into(),
        made_at: Timestamp::from_millis(0),
        machine: None,
    };
    let mut out = BufWriter::with_capacity(1 << 17, File::create(to)?);
    let (disk, layout) = (Arc::new(RealDisk) as _, Layout::new(home));
    export(&disk, &layout, &asked, &mut out, &mut |_| {}).context("cannot export")?;
    out.flush()?;
    Ok(out.get_ref().sync_all()?)
}
