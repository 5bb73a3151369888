//! A made-up directory: source-like text in many files, the same on every machine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rekindle_seeded::Rng;

/// Files of a thorough run: a gigabyte.
pub(super) const FILES: usize = 100_000;

/// Files of a quick run.
pub(super) const FILES_QUICK: usize = 5_000;

/// Files in a directory.
const IN_ONE: usize = 50;

/// Directories in a directory.
const DIRECTORIES: usize = 40;

/// Bytes of a file on average; each has between half and one and a half of it.
const SIZE: u64 = 10_000;

/// Makes a directory with so many files and syncs it, so that nobody pays for it later.
pub(super) fn make(root: &Path, files: usize) -> anyhow::Result<()> {
    let vocabulary = Vocabulary::new();
    let mut rng = Rng::new(1);
    for index in 0..files {
        let path = root.join(path(index));
        if index % IN_ONE == 0 {
            fs::create_dir_all(path.parent().context("a file is in a directory")?)?;
        }
        let size = SIZE / 2 + rng.below(SIZE);
        fs::write(&path, vocabulary.text(&mut rng, size as usize))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    rustix::fs::sync();
    Ok(())
}

/// Writes other contents into some files, spread over all of them. Each round has its own.
pub(super) fn change(root: &Path, files: usize, changed: usize, round: u64) -> anyhow::Result<()> {
    let vocabulary = Vocabulary::new();
    let mut rng = Rng::new(1_000 + round);
    for number in 0..changed {
        let path = root.join(path((number * files / changed + round as usize) % files));
        let size = SIZE / 2 + rng.below(SIZE);
        fs::write(&path, vocabulary.text(&mut rng, size as usize))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the path of a file.
fn path(index: usize) -> PathBuf {
    let directory = index / IN_ONE;
    format!("part{}/module{directory}/file{index}.rs", directory / DIRECTORIES).into()
}

/// Words that texts are made of.
struct Vocabulary(Vec<String>);

impl Vocabulary {
    fn new() -> Vocabulary {
        let mut rng = Rng::new(7);
        let mut word = || {
            let letters = (0..2 + rng.below(9)).map(|_| char::from(b'a' + rng.below(26) as u8));
            letters.collect()
        };
        Vocabulary((0..4096).map(|_| word()).collect())
    }

    /// Returns a text of at least this size.
    fn text(&self, rng: &mut Rng, size: usize) -> String {
        let mut text = String::with_capacity(size + 16);
        while text.len() < size {
            text.push_str(rng.pick(&self.0[..]).as_str());
            text.push(if rng.chance(1, 9) { '\n' } else { ' ' });
        }
        text
    }
}
