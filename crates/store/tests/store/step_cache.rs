//! Results of steps that runs share, as whoever checks a home finds them.

use std::sync::Arc;

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::id::{RunName, StepKey};
use rekindle_domain::pipeline::cached_result::CachedResult;
use rekindle_domain::time::Timestamp;
use rekindle_store::check::{Code, Holding, check};
use rekindle_store::disk::{SharedDisk, replace};
use rekindle_store::home;
use rekindle_store::layout::Layout;
use rekindle_store::step_cache::StepCache;
use rekindle_testkit::sim::SimDisk;

#[test]
fn a_result_that_is_not_whole_is_a_note_and_what_is_none_is_named() {
    let disk = Arc::new(SimDisk::new(1)) as SharedDisk;
    let layout = Layout::new("/home");
    home::prepare(&*disk, &layout).expect("a home");
    let cache = StepCache::new(disk.clone(), layout.clone());
    for n in 1..=2 {
        let result = CachedResult {
            key: StepKey::from_bytes([n; 32]),
            outcome: "completed".into(),
            payload: None,
            payload_blob: None,
            to: BlobId::of(b"tree"),
            made_by: RunName::mint(1, 1),
            at: Timestamp::from_millis(1),
        };
        cache.keep("builder", &result).expect("kept");
    }
    let found = || {
        let report = check(disk.clone(), "/home", Holding::Nothing, &mut |_| {}).expect("checked");
        let below = report.findings.into_iter().filter(|finding| finding.path.starts_with("/home/cache"));
        let mut codes: Vec<Code> = below.map(|finding| finding.code).collect();
        codes.sort_unstable();
        codes
    };
    assert_eq!(found(), []);
    let agent = layout.cached_results_of("builder").expect("a name");
    replace(&*disk, &agent.join(StepKey::from_bytes([1; 32]).file_name()), b"{").expect("written");
    replace(&*disk, &agent.join("notes"), b"mine").expect("written");
    replace(&*disk, &agent.join("ik-1.json.tmp"), b"half").expect("written");
    disk.create_dir(&layout.cached_results().join("not a name")).expect("made");
    let mut expected =
        vec![Code::CachedResultDamaged, Code::ForeignName, Code::ForeignName, Code::TemporaryFile];
    expected.sort_unstable();
    assert_eq!(found(), expected);
}
