//! Debian packages: an `ar` archive of a version, what the package manager is told, and the files.

use std::io;

use flate2::{Compression, GzBuilder};

use crate::Result;
use crate::archive;
use crate::contents::{Contents, File};
use crate::target::Target;

/// Makes the package.
pub(crate) fn make(contents: &Contents, target: &Target, version: &str, epoch: u32) -> Result<Vec<u8>> {
    let files = files(contents)?;
    let size: usize = files.iter().map(|file| file.bytes.len().div_ceil(1024)).sum();
    let control = [File::new("control", control(target, version, size))];
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", archive::make(&control, epoch)?),
        ("data.tar.gz", archive::make(&files, epoch)?),
    ];
    join(&members, epoch).map_err(|error| format!("the Debian package: {error}"))
}

fn join(members: &[(&str, Vec<u8>)], epoch: u32) -> io::Result<Vec<u8>> {
    let mut package = ar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        header.set_mode(0o100_644);
        header.set_mtime(epoch.into());
        package.append(&header, &bytes[..])?;
    }
    package.into_inner()
}

/// Returns what the package manager is told. Static binaries need no other package.
fn control(target: &Target, version: &str, size: usize) -> String {
    format!(
        "Package: rekindle\n\
         Version: {version}\n\
         Architecture: {}\n\
         Maintainer: The Rekindle developers <rekindle@localhost>\n\
         Installed-Size: {size}\n\
         Section: devel\n\
         Priority: optional\n\
         Suggests: git, systemd\n\
         Description: runs coding agents so that a crash never costs work\n \
         Rekindle runs coding agents in the background. What they say and do is on\n \
         disk before it is shown; whatever dies, the session is found, shown as\n \
         what it is, and continued without repeating finished work.\n",
        target.architecture()
    )
}

/// Returns the files, each where Debian wants it.
fn files(contents: &Contents) -> Result<Vec<File>> {
    let moved = |file: &File, dir: &str| File { path: format!("{dir}/{}", file.path), ..file.clone() };
    let mut files: Vec<File> = contents.binaries.iter().map(|file| moved(file, "usr/bin")).collect();
    for page in &contents.manuals {
        let bytes = compressed(&page.bytes).map_err(|error| format!("{}: {error}", page.path))?;
        files.push(File::new(format!("usr/share/man/man1/{}.gz", page.path), bytes));
    }
    for (shell, text) in &contents.completions {
        let path = match *shell {
            "bash" => "usr/share/bash-completion/completions/rekindle",
            "zsh" => "usr/share/zsh/vendor-completions/_rekindle",
            _ => "usr/share/fish/vendor_completions.d/rekindle.fish",
        };
        files.push(File::new(path, text.clone()));
    }
    files.push(File::new("usr/lib/systemd/user/rekindle.service", contents.unit.clone()));
    let mut copyright = b"Rekindle may be used under either of the two licenses that follow.\n".to_vec();
    for text in &contents.texts {
        if text.path.starts_with("LICENSE") {
            copyright.extend_from_slice(&[b"\n", &text.bytes[..]].concat());
        } else {
            files.push(moved(text, "usr/share/doc/rekindle"));
        }
    }
    files.push(File::new("usr/share/doc/rekindle/copyright", copyright));
    Ok(files)
}

fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    io::Write::write_all(&mut gzip, bytes)?;
    gzip.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read as _;

    use super::*;

    fn unpacked(gz: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(gz));
        let entries = archive.entries().expect("entries").map(|entry| {
            let mut entry = entry.expect("an entry");
            let path = entry.path().expect("a path").to_string_lossy().into_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("its bytes");
            (path, bytes)
        });
        entries.collect()
    }

    #[test]
    fn every_kind_of_file_is_where_debian_looks_for_it() {
        let contents = Contents {
            binaries: vec![File { executable: true, ..File::new("rekindle", "elf") }],
            manuals: vec![File::new("rekindle-run.1", ".TH")],
            completions: vec![("bash", b"b".into()), ("zsh", b"z".into()), ("fish", b"f".into())],
            texts: vec![File::new("README.md", "read me"), File::new("LICENSE-MIT", "may")],
            unit: b"[Unit]".into(),
        };
        let target = Target::parse("x86_64-unknown-linux-musl").expect("known");
        let package = make(&contents, &target, "1.2.3", 7).expect("packed");
        assert_eq!(package, make(&contents, &target, "1.2.3", 7).expect("packed"), "the same bytes");
        let mut members = BTreeMap::new();
        let mut archive = ar::Archive::new(&package[..]);
        while let Some(member) = archive.next_entry() {
            let mut member = member.expect("a member");
            let name = String::from_utf8(member.header().identifier().to_vec()).expect("a name");
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes).expect("its bytes");
            members.insert(name, bytes);
        }
        assert_eq!(members["debian-binary"], b"2.0\n");
        let control =
            String::from_utf8(unpacked(&members["control.tar.gz"])["control"].clone()).expect("text");
        for line in ["Package: rekindle", "Version: 1.2.3", "Architecture: amd64", "Installed-Size: 8"] {
            assert!(control.lines().any(|one| one == line), "{line}: {control}");
        }
        let files = unpacked(&members["data.tar.gz"]);
        for path in [
            "usr/bin/rekindle",
            "usr/share/man/man1/rekindle-run.1.gz",
            "usr/share/bash-completion/completions/rekindle",
            "usr/share/zsh/vendor-completions/_rekindle",
            "usr/share/fish/vendor_completions.d/rekindle.fish",
            "usr/lib/systemd/user/rekindle.service",
            "usr/share/doc/rekindle/README.md",
        ] {
            assert!(files.contains_key(path), "{path}: {:?}", files.keys());
        }
        assert!(files["usr/share/doc/rekindle/copyright"].ends_with(b"\nmay"));
    }
}
