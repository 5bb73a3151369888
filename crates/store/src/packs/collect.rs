//! Collecting packs: one with nothing in it that is named goes, one that is mostly dead is written anew without the rest.
//!
//! What is pinned, was relied on since the names were read, or is young stays. The new pack is durable, with its name, before an
//! old one is removed; a crash in between leaves both, and the next collection takes the one that is too many.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rekindle_domain::blob_id::BlobId;

use super::format::HEADER;
use super::index::Row;
use super::merge::{Copied, copy};
use super::pack::{Pack, Stored};
use super::table::Packs;
use super::writer::{PackWriter, publish, remove};
use crate::blob_error::BlobError;
use crate::error::AtPath;

/// Packs below this size are written together where there are many: twice as much is written for it at most.
const MEDIUM_PACK: u64 = 64 << 20;

/// So many packs of medium size become one.
const MERGE_AT: usize = 16;

/// What a collection did to packs, or would do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CollectedPacks {
    /// Packs that are gone, and how long they were.
    pub removed: Vec<(PathBuf, u64)>,
    /// Packs that were written anew, and how many bytes of each nobody needed.
    pub rewritten: Vec<(PathBuf, u64)>,
    /// Packs that are damaged, and left as they are.
    pub damaged: Vec<PathBuf>,
}

/// What decides about packs.
pub(crate) struct Rules<'a> {
    /// Every object that somebody needs.
    pub(crate) named: &'a HashSet<BlobId>,
    /// The moment that ages are counted to.
    pub(crate) now: SystemTime,
    /// How old a pack has to be.
    pub(crate) after: Duration,
    /// The number of the collection, which was drawn before the names were read.
    pub(crate) round: u64,
    /// Nothing is to be done.
    pub(crate) dry_run: bool,
}

/// What is to be done.
#[derive(Default)]
struct Plan {
    dead: Vec<Arc<Pack>>,
    /// Packs to be written anew, and which of their objects stay.
    rewrite: Vec<(Arc<Pack>, Vec<Row>)>,
}

/// Collects packs. The caller has the right to change them.
pub(crate) fn collect(packs: &Packs, rules: &Rules<'_>) -> Result<CollectedPacks, BlobError> {
    let mut report = CollectedPacks::default();
    let plan = plan(packs, rules, &mut report)?;
    if rules.dry_run {
        report.removed = plan.dead.iter().map(|pack| entry(packs, pack, pack.index.pack_len())).collect();
        report.rewritten =
            plan.rewrite.iter().map(|(pack, rows)| entry(packs, pack, unneeded(pack, rows))).collect();
        return Ok(report);
    }
    remove_dead(packs, rules, plan.dead, &mut report).at_path("change", &packs.layout.packs())?;
    rewrite(packs, rules, plan.rewrite, &mut report)?;
    Ok(report)
}

fn entry(packs: &Packs, pack: &Pack, bytes: u64) -> (PathBuf, u64) {
    (packs.layout.pack(&pack.id), bytes)
}

fn size(rows: &[Row]) -> u64 {
    rows.iter().map(|row| HEADER as u64 + u64::from(row.stored)).sum()
}

fn unneeded(pack: &Pack, rows: &[Row]) -> u64 {
    pack.index.pack_len().saturating_sub(size(rows))
}

fn plan(packs: &Packs, rules: &Rules<'_>, report: &mut CollectedPacks) -> Result<Plan, BlobError> {
    let mut all: Vec<Arc<Pack>> = packs.read_table().clone();
    // Of what is there twice the larger pack keeps it.
    all.sort_by_key(|pack| (std::cmp::Reverse(pack.index.count()), pack.id));
    let mut plan = Plan::default();
    let mut kept: Vec<Arc<Pack>> = Vec::new();
    let mut medium: Vec<(Arc<Pack>, Vec<Row>)> = Vec::new();
    for pack in all {
        let (path, index_path) = (packs.layout.pack(&pack.id), packs.layout.pack_index(&pack.id));
        if !pack.is_whole {
            report.damaged.push(path);
            continue;
        }
        let Ok(stat) = packs.disk.stat(&path) else { continue };
        let is_old = rules.now.duration_since(stat.modified).unwrap_or_default() >= rules.after;
        if pack.is_relied_on(rules.round) || !is_old {
            kept.push(pack);
            continue;
        }
        let mut rows = pack.index.rows_by_offset().at_path("read", &index_path)?;
        rows.retain(|row| rules.named.contains(&row.id) && !is_in(packs, &kept, &row.id));
        if rows.is_empty() {
            plan.dead.push(pack);
        } else if size(&rows) * 2 < pack.index.pack_len() {
            plan.rewrite.push((pack, rows));
        } else {
            if pack.index.pack_len() < MEDIUM_PACK {
                medium.push((pack.clone(), rows));
            }
            kept.push(pack);
        }
    }
    if medium.len() >= MERGE_AT {
        plan.rewrite.append(&mut medium);
    }
    Ok(plan)
}

/// Tells whether one of these packs has an object, and has it whole.
fn is_in(packs: &Packs, kept: &[Arc<Pack>], id: &BlobId) -> bool {
    kept.iter().any(|pack| {
        let Ok(Some(row)) = pack.index.find(id) else { return false };
        let path = packs.layout.pack(&pack.id);
        let read = packs.file(pack.id).map(|file| Stored::read(&*file, &row, &path));
        read.is_ok_and(|read| read.is_ok_and(|stored| stored.unpack(&row, &path).is_ok()))
    })
}

fn remove_dead(
    packs: &Packs,
    rules: &Rules<'_>,
    dead: Vec<Arc<Pack>>,
    report: &mut CollectedPacks,
) -> io::Result<()> {
    let _changing = packs.changing();
    for pack in &dead {
        {
            let mut table = packs.write_table();
            // Looked at once more where nobody can begin to rely on it.
            let is_there = table.iter().any(|known| known.id == pack.id);
            if !is_there || pack.is_relied_on(rules.round) {
                continue;
            }
            table.retain(|known| known.id != pack.id);
        }
        remove(packs, pack.id)?;
        report.removed.push(entry(packs, pack, pack.index.pack_len()));
    }
    if !report.removed.is_empty() {
        packs.disk.sync_dir(&packs.layout.packs())?;
    }
    Ok(())
}

fn rewrite(
    packs: &Packs,
    rules: &Rules<'_>,
    plan: Vec<(Arc<Pack>, Vec<Row>)>,
    report: &mut CollectedPacks,
) -> Result<(), BlobError> {
    let (mut seen, mut replaced, mut writers) = (HashSet::new(), Vec::new(), Vec::new());
    let mut freed = Vec::new();
    for (pack, rows) in plan {
        let has_room = |writer: &PackWriter| writer.has_room_for(rows.len(), size(&rows));
        if !writers.last().is_some_and(has_room) {
            writers.push(PackWriter::create(packs)?);
        }
        let Some(writer) = writers.last_mut() else { continue };
        if copy(packs, &pack, &rows, writer, &mut seen)? == Copied::All {
            freed.push((pack.id, unneeded(&pack, &rows)));
            replaced.push(pack);
        } else {
            report.damaged.push(packs.layout.pack(&pack.id));
        }
    }
    if replaced.is_empty() {
        return Ok(());
    }
    let finished = writers.into_iter().map(|writer| writer.finish(packs)).collect::<Result<Vec<_>, _>>()?;
    let published = publish(packs, finished, &replaced, |pack| !pack.is_relied_on(rules.round))?;
    let round = packs.round();
    published.new.iter().for_each(|pack| pack.unpin(round));
    for pack in published.gone {
        let bytes = freed.iter().find(|(id, _)| *id == pack.id).map_or(0, |(_, bytes)| *bytes);
        report.rewritten.push(entry(packs, &pack, bytes));
    }
    Ok(())
}
