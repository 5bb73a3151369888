//! Archives (`.tar.gz`): the same files make the same bytes, whoever packs them and when.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use crate::Result;
use crate::contents::File;

/// Packs files, with the directories that they are in before them.
pub(crate) fn make(files: &[File], epoch: u32) -> Result<Vec<u8>> {
    pack(files, epoch).map_err(|error| format!("the files could not be packed: {error}"))
}

fn pack(files: &[File], epoch: u32) -> io::Result<Vec<u8>> {
    // The head of the stream has a time as well; without one it is the same always.
    let gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    let mut archive = Builder::new(gzip);
    let mut entries: Vec<(String, Option<&File>)> =
        files.iter().map(|file| (file.path.clone(), Some(file))).collect();
    let dirs: BTreeSet<String> = entries.iter().flat_map(|(path, _)| dirs_of(path)).collect();
    entries.extend(dirs.into_iter().map(|dir| (format!("{dir}/"), None)));
    // A directory's name is the beginning of what is in it, and sorts before that.
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (path, file) in entries {
        let mut header = Header::new_gnu();
        header.set_mtime(epoch.into());
        header.set_entry_type(if file.is_some() { EntryType::Regular } else { EntryType::Directory });
        header.set_mode(if file.is_none_or(|file| file.executable) { 0o755 } else { 0o644 });
        let bytes = file.map_or(&[][..], |file| &file.bytes);
        header.set_size(bytes.len() as u64);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        archive.append_data(&mut header, &path, bytes)?;
    }
    archive.into_inner()?.finish()
}

/// Returns the directories that a path is in; not the one that is packed.
fn dirs_of(path: &str) -> Vec<String> {
    let above = Path::new(path).ancestors().skip(1).map(|dir| dir.to_string_lossy().into_owned());
    above.filter(|dir| !dir.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_make_the_same_bytes_in_any_order() {
        let run = File { executable: true, ..File::new("top/bin/run", "x") };
        let text = File::new("top/text", "y");
        let one = make(&[run.clone(), text.clone()], 7).expect("packed");
        assert_eq!(one, make(&[text, run], 7).expect("packed"));
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&one[..]));
        let mut found = Vec::new();
        for entry in archive.entries().expect("entries") {
            let entry = entry.expect("an entry");
            let header = entry.header();
            assert_eq!((header.mtime().ok(), header.uid().ok()), (Some(7), Some(0)));
            let path = entry.path().expect("a path").to_string_lossy().into_owned();
            found.push((path, header.mode().expect("a mode")));
        }
        let expected = [("top/", 0o755), ("top/bin/", 0o755), ("top/bin/run", 0o755), ("top/text", 0o644)];
        assert_eq!(found, expected.map(|(path, mode)| (path.to_owned(), mode)));
    }
}
