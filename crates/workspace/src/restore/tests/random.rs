//! A thousand random trees in real directories: changed, restored, taken back.

use rekindle_seeded::Rng;

use super::tapped::Tapped;
use super::things::{capture, change, draw, ignored, keep, make, read};
use super::*;

#[test]
fn a_thousand_random_trees_come_back_as_they_were() {
    let base = scratch();
    let objects = MemoryObjects::new();
    let journal = MemoryJournal::default();
    let nothing = |_: &'static str, _: &[u8]| Ok(());
    let mut left_out = 0;
    for seed in 0..1_000 {
        let mut rng = Rng::new(seed);
        let with_ignored = seed % 4 == 0;
        let wanted = draw(&mut rng, 2, false);
        let now = change(&mut rng, &wanted, 2, with_ignored);
        let path = base.path().join(seed.to_string());
        std::fs::create_dir(&path).expect("made");
        let opened = if seed % 2 == 0 { DirRoot::open(&path) } else { DirRoot::open_step_by_step(&path) };
        let opened = opened.expect("opened");
        let root = Tapped::new(&opened, &nothing);
        make(&root, b"", &now);

        let (before, tree) = (capture(&root, &objects), keep(&objects, &wanted));
        let restored = restore_to(&root, &objects, &journal, tree).expect("restored");
        assert_eq!(
            ignored(b"", &read(&root, b"")),
            ignored(b"", &now),
            "seed {seed}: ignored files are untouched"
        );
        assert_eq!(restored.undo, before, "seed {seed}");
        if restored.is_complete() {
            assert_eq!(capture(&root, &objects), tree, "seed {seed}");
        } else {
            assert!(with_ignored, "seed {seed}: {:?}", restored.left);
            assert!(
                restored.left.iter().all(|left| left.why == LeftWhy::UnknownFiles),
                "{:?}",
                restored.left
            );
            left_out += 1;
        }
        let back = restore_to(&root, &objects, &journal, restored.undo).expect("restored");
        assert_eq!((back.left, read(&root, b"")), (Vec::new(), now), "seed {seed}");
    }
    assert!(left_out > 10, "only {left_out} trees had ignored files in the way");
}
