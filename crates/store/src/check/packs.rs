//! Packs: every byte of each and of its index is what it was written as; what is not is named with its place and its object.

use super::code::Code;
use super::finding::{Finding, Findings};
use super::home::{list, unknown};
use super::{HomeView, Progress, Watcher};
use crate::layout::{PACK_INDEX_SUFFIX, PACK_SUFFIX};
use crate::packs::{PackFinding, PackFindingKind, PackId, verify};

/// Lists the packs, and says what else is in their directory.
pub(super) fn list_packs(view: &HomeView, findings: &mut Findings) -> Vec<PackId> {
    let dir = view.home.packs();
    let entries = list(&*view.raw, &dir, findings);
    let id = |name: &str, suffix| name.strip_suffix(suffix)?.parse::<PackId>().ok();
    let packs: Vec<PackId> = entries.iter().filter_map(|entry| id(&entry.name, PACK_SUFFIX)).collect();
    for entry in &entries {
        let is_index = id(&entry.name, PACK_INDEX_SUFFIX).is_some_and(|id| packs.contains(&id));
        if id(&entry.name, PACK_SUFFIX).is_none() && !is_index {
            findings.add(unknown(&dir, entry));
        }
    }
    packs
}

/// Checks every pack and returns how many objects there are.
pub(super) fn check(view: &HomeView, packs: &[PackId], findings: &mut Findings, watcher: Watcher<'_>) -> u64 {
    let mut objects = 0;
    for (done, id) in packs.iter().enumerate() {
        match verify(&*view.raw, &view.home.layout, *id, &mut |found| findings.add(describe(found))) {
            Ok(found) => objects += found.len() as u64,
            Err(error) => {
                let what = format!("The pack cannot be read: {error}.");
                let finding = Finding::new(Code::PackDamaged, view.home.pack(id), what, RESTORE);
                findings.add(finding);
            }
        }
        watcher(Progress { what: "packs", done: done as u64 + 1, total: packs.len() as u64 });
    }
    objects
}

const RESTORE: &str = "Restore the file from a backup; all other objects can be read.";

fn describe(found: PackFinding) -> Finding {
    let PackFinding { kind, path, byte, object, detail } = found;
    let (code, what, remedy) = match kind {
        PackFindingKind::Pack => {
            let which = object.map(|id| format!(", object {id}")).unwrap_or_default();
            (Code::PackDamaged, format!("The pack is damaged{which}: {detail}."), RESTORE)
        }
        PackFindingKind::Index => {
            let remedy = "A repair moves it away; it is then rebuilt from its pack.";
            (Code::PackIndexDamaged, format!("The index of a pack is damaged: {detail}."), remedy)
        }
        PackFindingKind::IndexMissing => {
            let remedy = "Nothing to do: it is rebuilt from its pack at the next write.";
            (Code::PackIndexMissing, "The index of a pack is missing.".to_owned(), remedy)
        }
    };
    let finding = Finding::new(code, path, what, remedy);
    match byte {
        Some(byte) => finding.byte(byte),
        None => finding,
    }
}
