//! The command line of the packager.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use crate::Result;
use crate::target::Target;

const USAGE: &str = "\
Usage: rekindle-dist --binaries DIR --target TRIPLE --root DIR --out DIR [--epoch SECONDS] [--any-linking]

  --binaries DIR   where rekindle and rekindle-holder are
  --target TRIPLE  what they were built for
  --root DIR       the workspace: licenses and the unit come from there
  --out DIR        where the packages go
  --epoch SECONDS  the time of every file in them; the same input makes the same bytes [default: 0]
  --any-linking    take binaries that are not linked statically";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) binaries: PathBuf,
    pub(crate) target: Target,
    pub(crate) root: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) epoch: u32,
    pub(crate) any_linking: bool,
}

impl Arguments {
    /// Reads the arguments behind the program's name.
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Arguments> {
        Self::read(lexopt::Parser::from_args(args)).map_err(|error| format!("{error}\n\n{USAGE}"))
    }

    fn read(mut args: lexopt::Parser) -> std::result::Result<Arguments, lexopt::Error> {
        let (mut binaries, mut target, mut root, mut out) = (None, None, None, None);
        let (mut epoch, mut any_linking) = (0, false);
        while let Some(arg) = args.next()? {
            match arg {
                Long("binaries") => binaries = Some(args.value()?.into()),
                Long("target") => target = Some(args.value()?.parse_with(Target::parse)?),
                Long("root") => root = Some(args.value()?.into()),
                Long("out") => out = Some(args.value()?.into()),
                Long("epoch") => epoch = args.value()?.parse()?,
                Long("any-linking") => any_linking = true,
                other => return Err(other.unexpected()),
            }
        }
        let missing = |name: &str| lexopt::Error::from(format!("--{name} is missing"));
        Ok(Arguments {
            binaries: binaries.ok_or_else(|| missing("binaries"))?,
            target: target.ok_or_else(|| missing("target"))?,
            root: root.ok_or_else(|| missing("root"))?,
            out: out.ok_or_else(|| missing("out"))?,
            epoch,
            any_linking,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &str) -> Result<Arguments> {
        Arguments::parse(words.split_whitespace().map(OsString::from))
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        let all = "--binaries b --target x86_64-unknown-linux-musl --root r --out o";
        let given = parsed(all).expect("understood");
        assert_eq!((given.epoch, given.any_linking, given.out), (0, false, "o".into()));
        assert_eq!(parsed(&format!("{all} --epoch 7")).expect("understood").epoch, 7);
        for (words, told) in [
            ("--target x86_64-unknown-linux-musl", "--binaries is missing"),
            ("--target z80-unknown-linux-musl", "z80"),
            ("--binaries b --out o --root r", "--target is missing"),
            ("--outt", "--outt"),
        ] {
            let error = parsed(words).expect_err("it is refused");
            assert!(error.contains(told) && error.contains("Usage:"), "{words}: {error}");
        }
    }
}
