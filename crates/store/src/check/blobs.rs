//! Blobs: each has the bytes its name says, each that a record names is there, and which nobody names.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::code::{Code, Severity};
use super::finding::{Finding, Findings};
use super::home::{list, unknown};
use super::{HomeView, Progress, Watcher};
use crate::blobs::{BlobError, BlobId, BlobRef, Blobs};
use crate::disk::EntryKind;
use crate::packs::PackId;

/// The fields of a record that may hold a payload, and so a reference in its place.
const PAYLOADS: &[&str] = &["content", "line", "raw", "kept"];

/// How a reference begins; inside a string its quotes would be escaped.
const MARK: &[u8] = br#""blob":""#;

/// The use of blobs: every one there is, and whether a record names it.
pub(super) struct BlobUsage {
    blobs: HashMap<BlobId, AtomicBool>,
    packs: Vec<PackId>,
    /// The objects of all packs. Who names them stands in trees, which are not read here.
    packed: Blobs,
}

impl BlobUsage {
    /// Lists the blobs.
    pub(super) fn new(view: &HomeView, findings: &mut Findings) -> BlobUsage {
        let mut blobs = HashMap::new();
        let root = view.home.blobs();
        for shard in list(&*view.raw, &root, findings) {
            if view.home.is_shared_by_blobs(&root.join(&shard.name)) {
                continue;
            }
            if shard.kind != EntryKind::Dir || shard.name.len() != 2 {
                findings.add(unknown(&root, &shard));
                continue;
            }
            let directory = root.join(&shard.name);
            for entry in list(&*view.raw, &directory, findings) {
                let id = entry.name.strip_suffix(".zst").and_then(|id| id.parse::<BlobId>().ok());
                match id.filter(|id| view.home.blob_shard(id) == directory) {
                    Some(id) => drop(blobs.insert(id, AtomicBool::new(false))),
                    None => findings.add(unknown(&directory, &entry)),
                }
            }
        }
        let packs = super::packs::list_packs(view, findings);
        let packed = Blobs::new(view.raw.clone(), view.home.layout.clone(), Arc::default());
        BlobUsage { blobs, packs, packed }
    }

    /// Notes that a record names a blob, and tells whether it is there.
    pub(super) fn mark_referenced(&self, view: &HomeView, id: &BlobId) -> bool {
        match self.blobs.get(id) {
            Some(named) => {
                named.store(true, Ordering::Relaxed);
                true
            }
            // It may have been put there since the blobs were listed, or be in a pack.
            None => {
                view.raw.stat(&view.home.blob(id)).is_ok() || self.packed.contains(id).unwrap_or_default()
            }
        }
    }
}

/// Returns the blobs that a record refers to.
pub(super) fn references(record: &str) -> Vec<BlobId> {
    let mut found = Vec::new();
    // Nearly every record has none, and this is cheaper than parsing it.
    if memchr::memmem::find(record.as_bytes(), MARK).is_none() {
        return found;
    }
    if let Ok(Value::Object(record)) = serde_json::from_str(record) {
        PAYLOADS.iter().filter_map(|name| record.get(*name)).for_each(|payload| collect(payload, &mut found));
    }
    found
}

fn collect(value: &Value, found: &mut Vec<BlobId>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => {
            // Exactly what is written for a reference: an agent's own `blob` among other fields is not ours.
            let reference = (fields.len() == 2).then(|| serde_json::from_value::<BlobRef>(value.clone()));
            match reference {
                Some(Ok(reference)) => found.push(reference.blob),
                Some(Err(_)) | None => fields.values().for_each(|field| collect(field, found)),
            }
        }
        _ => {}
    }
}

/// Checks every blob's bytes and returns how many there are.
pub(super) fn check(
    view: &HomeView,
    blob_usage: &BlobUsage,
    findings: &mut Findings,
    watcher: Watcher<'_>,
) -> u64 {
    let total = blob_usage.blobs.len() as u64;
    let mut unnamed = Vec::new();
    for (done, (id, named)) in blob_usage.blobs.iter().enumerate() {
        if !named.load(Ordering::Relaxed) {
            unnamed.push(id);
        }
        let path = view.home.blob(id);
        let detail = match blob_usage.packed.copy_to(id, &mut std::io::sink()) {
            Ok(_) => None,
            // Collected, or its session deleted, since the blobs were listed.
            Err(BlobError::Missing(_)) => None,
            Err(BlobError::Damaged { detail, .. }) => Some(detail),
            Err(BlobError::Io(error)) => Some(error.source.to_string()),
            Err(other) => Some(other.to_string()),
        };
        if let Some(detail) = detail {
            let (what, remedy) =
                (format!("The blob is damaged: {detail}."), "Restore the file from a backup.");
            findings.add(Finding::new(Code::BlobDamaged, path, what, remedy));
        }
        watcher(Progress { what: "blobs", done: done as u64 + 1, total });
    }
    let packed = super::packs::check(view, &blob_usage.packs, findings, watcher);
    // Trees in packs may name any of them, and nobody has looked into those here.
    if !unnamed.is_empty() && blob_usage.packs.is_empty() {
        findings.add(unnamed_blobs(view, &mut unnamed, findings.has(Severity::Error)));
    }
    total + packed
}

fn unnamed_blobs(view: &HomeView, unnamed: &mut [&BlobId], doubtful: bool) -> Finding {
    unnamed.sort_unstable();
    let path = match unnamed {
        [one] => view.home.blob(one),
        _ => view.home.blobs(),
    };
    let what = format!("Blobs that no record names: {}.", unnamed.len());
    let remedy = if doubtful {
        "Leave them: the logs that cannot be read may name them."
    } else {
        "Nothing to do: they are collected once they are older than a day."
    };
    Finding::new(Code::BlobUnnamed, path, what, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_in_payloads_and_nowhere_else() {
        let id = BlobId::of(b"payload");
        let reference = format!(r#"{{"blob":"{}","size":7}}"#, id);
        let cases = [
            (format!(r#"{{"seq":1,"content":{reference}}}"#), 1),
            (format!(r#"{{"seq":1,"what":"torn_tail","kept":{reference}}}"#), 1),
            (format!(r#"{{"seq":1,"raw":{{"deep":[[{reference}]]}},"line":{reference}}}"#), 2),
            (format!(r#"{{"seq":1,"info":{reference}}}"#), 0),
            (format!(r#"{{"seq":1,"content":{}}}"#, Value::String(reference.clone())), 0),
            (format!(r#"{{"seq":1,"raw":{{"blob":"{}","size":7,"more":1}}}}"#, id), 0),
            (r#"{"seq":1,"raw":{"blob":"README.md","size":7}}"#.to_owned(), 0),
            (r#"not a record "blob":" "#.to_owned(), 0),
        ];
        for (record, expected) in cases {
            assert_eq!(references(&record), vec![id; expected], "{record}");
        }
    }
}
