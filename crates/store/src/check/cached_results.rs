//! Results of steps that runs of pipelines share: caches, so that whatever is wrong with one costs a step that is done once more.

use super::HomeView;
use super::code::Code;
use super::finding::{Finding, Findings};
use super::home::{list, unknown};
use crate::disk::{Entry, EntryKind};
use crate::step_cache::{CacheFileName, StepCache};

/// Reads every result, if the home has some.
pub(super) fn check(view: &HomeView, findings: &mut Findings) {
    let directory = view.home.cached_results();
    for entry in list(&*view.raw, &directory, findings) {
        if entry.kind != EntryKind::Dir || view.home.cached_results_of(&entry.name).is_none() {
            findings.add(unknown(&directory, &entry));
        }
    }
    let cache = StepCache::new(view.raw.clone(), view.home.layout.clone());
    // One that cannot be listed was told above, or is told with its permissions.
    for file in cache.files().unwrap_or_default() {
        match (file.name, cache.read(&file)) {
            (_, Some(Err(why))) => {
                let what = format!("A shared result of a step is not used: {why}.");
                let remedy =
                    "Nothing to do: the step is done once more, and its result takes the place of this one.";
                findings.add(Finding::new(Code::CachedResultDamaged, file.path, what, remedy));
            }
            (CacheFileName::Temporary | CacheFileName::Foreign, None) => {
                let name =
                    file.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                let entry = Entry { name, kind: EntryKind::File };
                findings.add(unknown(file.path.parent().unwrap_or(&directory), &entry));
            }
            (CacheFileName::Result(_), None) | (_, Some(Ok(_))) => {}
        }
    }
}
