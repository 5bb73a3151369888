//! Random trees, changed at random: a capture with the cache of the one before is the capture without any, and both have
//! what is on disk. `REKINDLE_SEED=n` repeats one seed; `REKINDLE_TEST_LONG=1` runs many more trees.

use rekindle_seeded::Rng;

use super::*;

const NAMES: &[&[u8]] = &[
    b"a",
    b"b",
    b"a.b",
    b"a-b",
    b"\xff\xfe",
    b"with space",
    b"\xc3\xa9",
    b"new\nline",
    b"A",
    b".hidden",
    b"...",
    b"-",
];

/// Trees that are drawn, each captured after each of its changes.
const TREES: u64 = 10;
const TREES_LONG: u64 = 200;

fn seeds() -> Vec<u64> {
    let one =
        std::env::var("REKINDLE_SEED").ok().map(|seed| seed.parse().expect("REKINDLE_SEED is a number"));
    let is_long = std::env::var_os("REKINDLE_TEST_LONG").is_some();
    one.map_or_else(|| (0..if is_long { TREES_LONG } else { TREES }).collect(), |seed| vec![seed])
}

/// Does one random thing somewhere below a directory.
fn change(rng: &mut Rng, root: &Path) {
    let mut place = root.to_owned();
    for _ in 0..rng.below(4) {
        place.push(OsStr::from_bytes(NAMES[rng.index(NAMES.len())]));
    }
    // Whatever is in the way stays; then nothing happens.
    if place.symlink_metadata().is_ok_and(|file| !file.is_dir()) || fs::create_dir_all(&place).is_err() {
        return;
    }
    let path = place.join(OsStr::from_bytes(NAMES[rng.index(NAMES.len())]));
    let size = *rng.pick(&[0, 1, 10, 5_000, read::WHOLE_BYTES, read::WHOLE_BYTES + 1]);
    let mut content = vec![0; size];
    rng.fill(&mut content);
    _ = match rng.below(9) {
        0..=3 => fs::write(&path, content),
        4 => symlink(OsStr::from_bytes(NAMES[rng.index(NAMES.len())]), &path),
        5 => fs::create_dir(&path),
        6 => fs::remove_file(&path),
        7 => fs::remove_dir_all(&path),
        _ => path
            .symlink_metadata()
            .and_then(|file| if file.is_file() { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) })
            .and_then(|()| {
                fs::set_permissions(
                    &path,
                    fs::Permissions::from_mode(*rng.pick(&[0o644, 0o755, 0o600, 0o700])),
                )
            }),
    };
}

/// Returns what is below a directory by the plain means of the standard library, as lines.
fn on_disk(directory: &Path, below: &[u8], lines: &mut Vec<(Vec<u8>, String)>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = [below, path.file_name().expect("a name").as_bytes()].concat();
        let file = path.symlink_metadata().expect("it is there");
        if file.is_symlink() {
            let target = fs::read_link(&path).expect("a link");
            lines.push((name, format!("l {}", target.display())));
        } else if file.is_dir() {
            on_disk(&path, &[name.as_slice(), b"/"].concat(), lines);
            lines.push((name, "d".to_owned()));
        } else {
            let mode = crate::tree::FileMode::from_permissions(file.permissions().mode());
            let content = BlobId::of(&fs::read(&path).expect("a file"));
            lines.push((name, format!("{} {content}", mode.letter() as char)));
        }
    }
}

fn in_tree(lab: &Lab, tree: BlobId) -> Vec<(Vec<u8>, String)> {
    let line = |entry: crate::tree::WalkedEntry| {
        let what = match entry.node {
            OwnedNode::File { mode, content, .. } => format!("{} {content}", mode.letter() as char),
            OwnedNode::Link { target } => format!("l {}", crate::as_path(&target).display()),
            OwnedNode::Directory { .. } => "d".to_owned(),
        };
        (entry.path, what)
    };
    TreeWalk::new(&lab.objects, tree, Limits::default()).map(|entry| line(entry.expect("valid"))).collect()
}

#[test]
fn random_trees_are_captured_as_they_are_on_disk_cold_and_warm() {
    for seed in seeds() {
        let mut rng = Rng::new(seed);
        let lab = Lab::new();
        let mut cache = StatCache::new();
        for _ in 0..20 {
            for _ in 0..rng.below(12) {
                change(&mut rng, &lab.root());
            }
            let options = CaptureOptions { threads: Some(1 + rng.index(3)), ..lab.options() };
            let warm = capture(&options, &lab.objects, &cache).expect("captured");
            let mut expected = Vec::new();
            on_disk(&lab.root(), b"", &mut expected);
            expected.sort();
            let mut found = in_tree(&lab, warm.tree);
            found.sort();
            assert_eq!(found, expected, "REKINDLE_SEED={seed}");
            let cold = capture(&options, &MemoryObjects::new(), &StatCache::new()).expect("captured");
            assert_eq!(
                (warm.tree, warm.totals, warm.rules),
                (cold.tree, cold.totals, cold.rules),
                "REKINDLE_SEED={seed}"
            );
            cache = warm.cache.unwrap_or(cache);
        }
    }
}
