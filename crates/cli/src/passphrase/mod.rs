//! Passphrases of sealed bundles: from a file, or asked for at the terminal, where nobody sees them. Never from the command line,
//! which everybody on the machine can read.

mod terminal;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rekindle_client::failure::Failure;
use rekindle_service::bundles::sealed::Passphrase;

use crate::context::Context;

/// Longest passphrase, in bytes.
const MAX: usize = 4096;

/// Returns the passphrase that a bundle is to be sealed with; asked for twice.
pub(crate) fn for_sealing(context: &Context, file: Option<&Path>) -> Result<Passphrase, Failure> {
    if let Some(file) = file {
        return from_file(file);
    }
    let first = ask(context, "passphrase for the bundle: ")?;
    let again = ask(context, "the same once more: ")?;
    if first != again {
        let message = "these are two different passphrases; nothing was written".to_owned();
        return Err(Failure::usage("passphrases_differ", message).hint("try it again"));
    }
    checked(first)
}

/// Returns the passphrase that opens a bundle.
pub(crate) fn for_opening(context: &Context, file: Option<&Path>) -> Result<Passphrase, Failure> {
    match file {
        Some(file) => from_file(file),
        None => checked(ask(context, "passphrase of the bundle: ")?),
    }
}

fn ask(context: &Context, question: &str) -> Result<String, Failure> {
    let nobody = || {
        let message = "a passphrase is needed, and there is no terminal to ask for it".to_owned();
        Failure::usage("passphrase_needed", message)
            .hint("--passphrase-file FILE, whose first line is the passphrase")
    };
    // Where a program reads what is written, nobody sits there to answer.
    let mut terminal = (!context.json).then(terminal::Terminal::open).flatten().ok_or_else(nobody)?;
    let read = terminal.read_secret(question, MAX)?;
    read.ok_or_else(|| Failure::usage("cancelled", "no passphrase was given; nothing was changed".to_owned()))
}

/// Reads the first line of a file.
fn from_file(path: &Path) -> Result<Passphrase, Failure> {
    let unreadable = |error: std::io::Error| {
        let message = format!("cannot read {}", path.display());
        Failure::failed("passphrase_unreadable", anyhow::Error::new(error).context(message))
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX as u64 + 2).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() > MAX {
        let message = format!("the first line of {} is longer than {MAX} bytes", path.display());
        return Err(Failure::usage("passphrase_too_long", message));
    }
    let text = String::from_utf8(line.to_vec()).map_err(|_| {
        let message = format!("the first line of {} is not valid UTF-8", path.display());
        Failure::usage("passphrase_unreadable", message)
    })?;
    checked(text)
}

fn checked(text: String) -> Result<Passphrase, Failure> {
    let message = || "the passphrase is empty".to_owned();
    Passphrase::new(text).ok_or_else(|| {
        Failure::usage("passphrase_empty", message())
            .hint("several words that are hard to guess make a good one")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_file_is_the_passphrase() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("passphrase");
        let long = "x".repeat(MAX + 1);
        for (text, code) in [
            (&b"four words of mine"[..], None),
            (b"four words of mine\n", None),
            (b"four words of mine\r\nand more", None),
            (b"", Some("passphrase_empty")),
            (b"\nsecond", Some("passphrase_empty")),
            (b"\xff\xfe", Some("passphrase_unreadable")),
            (long.as_bytes(), Some("passphrase_too_long")),
        ] {
            std::fs::write(&path, text).expect("written");
            let refused = from_file(&path).err();
            assert_eq!(refused.as_ref().map(|failure| failure.code()), code, "{text:?}");
        }
        assert!(from_file(&directory.path().join("none")).is_err());
    }
}
