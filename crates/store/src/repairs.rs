//! What repairs take away or change is kept as it was: below `repairs/<time>/`, under its path in the home, with a list of
//! what was done and why. Nothing is touched before its copy, or the word that it is moved, is on disk.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_domain::id::SessionId;
use rekindle_domain::time::Timestamp;
use serde::Serialize;

use crate::disk::{DiskFile, EntryKind, OpenMode, SharedDisk, read_up_to, write_all_at};
use crate::layout::Layout;

/// The list's name.
const MANIFEST: &str = "manifest.jsonl";

/// How much is hashed at a time.
const CHUNK: usize = 1 << 20;

/// Why something is done: the finding's name and sentence.
#[derive(Debug, Clone, Copy)]
pub struct Reason<'a> {
    /// The code of the finding.
    pub code: &'a str,
    /// Its session.
    pub session: Option<SessionId>,
    /// What is the matter.
    pub what: &'a str,
}

/// One line of the list.
#[derive(Serialize)]
struct Line<'a> {
    at: Timestamp,
    action: &'a str,
    code: &'a str,
    session: Option<SessionId>,
    /// Below the home.
    path: String,
    what: &'a str,
    #[serde(flatten)]
    kept: Kept,
}

/// What is kept of it.
#[derive(Default, Serialize)]
struct Kept {
    /// Where it is kept, below this directory.
    #[serde(rename = "kept")]
    place: Option<String>,
    bytes: Option<u64>,
    /// The hash of these bytes, in hex.
    blake3: Option<String>,
    /// The byte of the file from which on they were copied.
    from: Option<u64>,
    /// The permissions before.
    mode: Option<String>,
}

/// The repairs of one run; their directory is made with the first of them.
pub struct Repairs {
    disk: SharedDisk,
    layout: Layout,
    now: Timestamp,
    dir: Option<PathBuf>,
    /// Called between any two effects: a test may have the process die there.
    between: fn(&str),
}

impl Repairs {
    /// Begins; nothing is written yet.
    pub fn new(disk: SharedDisk, layout: Layout, now: Timestamp, between: fn(&str)) -> Repairs {
        Repairs { disk, layout, now, dir: None, between }
    }

    /// Returns where things are kept, if any are.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// Moves something out of the home's way and returns where it is now.
    pub fn move_away(&mut self, path: &Path, reason: Reason<'_>) -> io::Result<PathBuf> {
        let to = self.free_place_for(path)?;
        let stat = self.disk.stat(path)?;
        let file =
            (stat.kind == EntryKind::File).then(|| self.disk.open(path, OpenMode::Read)).transpose()?;
        let hash = file.as_deref().map(|file| hash(file, 0, stat.len)).transpose()?;
        let len = file.is_some().then_some(stat.len);
        let kept = Kept { place: Some(self.relative_path(&to)), bytes: len, blake3: hash, ..Kept::default() };
        self.write_manifest_line("moved", path, reason, kept)?;
        (self.between)("repair.before_move");
        self.disk.rename(path, &to)?;
        (self.between)("repair.moved");
        self.disk.sync_dir(to.parent().unwrap_or(&to))?;
        self.disk.sync_dir(path.parent().unwrap_or(path))?;
        match stat.kind {
            EntryKind::File if stat.mode != 0o600 => self.disk.set_mode(&to, 0o600)?,
            EntryKind::Dir if stat.mode != 0o700 => self.disk.set_mode(&to, 0o700)?,
            EntryKind::File | EntryKind::Dir | EntryKind::Other => {}
        }
        Ok(to)
    }

    /// Copies what a file has from a byte on, because that is about to change.
    pub fn copy_tail(&mut self, path: &Path, from: u64, reason: Reason<'_>) -> io::Result<PathBuf> {
        let to = self.free_place_for(path)?;
        let source = self.disk.open(path, OpenMode::Read)?;
        let len = source.stat()?.len;
        let target = self.disk.open(&to, OpenMode::CreateNew)?;
        copy_to_start(&*source, &*target, from, len)?;
        target.sync()?;
        self.disk.sync_dir(to.parent().unwrap_or(&to))?;
        (self.between)("repair.copied");
        let hash = hash(&*target, 0, len.saturating_sub(from))?;
        let (place, bytes) = (Some(self.relative_path(&to)), Some(len.saturating_sub(from)));
        let kept = Kept { place, bytes, blake3: Some(hash), from: Some(from), mode: None };
        self.write_manifest_line("copied", path, reason, kept)?;
        Ok(to)
    }

    /// Gives a file or directory the permissions everything of ours has.
    pub fn restrict_permissions(&mut self, path: &Path, reason: Reason<'_>) -> io::Result<()> {
        let stat = self.disk.stat(path)?;
        let mode = if stat.kind == EntryKind::Dir { 0o700 } else { 0o600 };
        let kept = Kept { mode: Some(format!("{:04o}", stat.mode)), ..Kept::default() };
        self.write_manifest_line("permissions", path, reason, kept)?;
        (self.between)("repair.before_mode");
        self.disk.set_mode(path, mode)
    }

    /// Notes something that is done elsewhere, before it is.
    pub fn announce(&mut self, action: &str, path: &Path, reason: Reason<'_>) -> io::Result<()> {
        self.write_manifest_line(action, path, reason, Kept::default())?;
        (self.between)("repair.announced");
        Ok(())
    }

    /// Writes a line of the list, durably.
    fn write_manifest_line(
        &mut self,
        action: &str,
        path: &Path,
        reason: Reason<'_>,
        kept: Kept,
    ) -> io::Result<()> {
        let dir = self.directory()?;
        let Reason { code, session, what } = reason;
        let path = path.strip_prefix(self.layout.home()).unwrap_or(path).display().to_string();
        let line = Line { at: self.now, action, code, session, path, what, kept };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let file = self.disk.open(&dir.join(MANIFEST), OpenMode::Create)?;
        let end = file.stat()?.len;
        write_all_at(&*file, &text, end)?;
        file.sync()?;
        self.disk.sync_dir(&dir)
    }

    /// Makes room for something under its own path, and names it so that nothing that is kept already is written over.
    fn free_place_for(&mut self, path: &Path) -> io::Result<PathBuf> {
        let dir = self.directory()?;
        let inner = path.strip_prefix(self.layout.home()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{} is not in the home", path.display()))
        })?;
        let mut parent = dir;
        for name in inner.parent().into_iter().flat_map(Path::components) {
            let above = parent.clone();
            parent.push(name);
            self.disk.create_dir(&parent)?;
            self.disk.sync_dir(&above)?;
        }
        let name = inner.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(self.free_path(&parent, &name))
    }

    /// Returns a path in a directory that nothing has yet: by this name, with a number behind it where that is taken.
    fn free_path(&self, parent: &Path, name: &str) -> PathBuf {
        let numbered = (1..).map(|number| parent.join(format!("{name}.{number}")));
        let mut paths = std::iter::once(parent.join(name)).chain(numbered);
        paths.find(|path| self.disk.stat(path).is_err()).expect("numbers do not run out")
    }

    /// Makes the directory, once.
    fn directory(&mut self) -> io::Result<PathBuf> {
        if let Some(dir) = &self.dir {
            return Ok(dir.clone());
        }
        let root = self.layout.repairs();
        self.disk.create_dir(&root)?;
        self.disk.sync_dir(self.layout.home())?;
        // As in file names everywhere: no colons.
        let name = self.now.to_string().replace(':', "-");
        let dir = self.free_path(&root, &name);
        self.disk.create_dir(&dir)?;
        self.disk.sync_dir(&root)?;
        (self.between)("repair.begun");
        self.dir = Some(dir.clone());
        Ok(dir)
    }

    fn relative_path(&self, path: &Path) -> String {
        let dir = self.dir.as_deref().unwrap_or(Path::new(""));
        path.strip_prefix(dir).unwrap_or(path).display().to_string()
    }
}

/// Copies a stretch of a file to the beginning of another.
fn copy_to_start(source: &dyn DiskFile, target: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK.min(to.saturating_sub(from) as usize)];
    let mut at = from;
    while at < to {
        let wanted = buffer.len().min((to - at) as usize);
        let read = read_up_to(source, &mut buffer[..wanted], at)?;
        if read == 0 {
            break;
        }
        write_all_at(target, &buffer[..read], at - from)?;
        at += read as u64;
    }
    Ok(())
}

fn hash(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; CHUNK.min(to.saturating_sub(from) as usize)];
    let mut at = from;
    while at < to {
        let read = read_up_to(file, &mut buffer, at)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        at += read as u64;
    }
    Ok(hasher.finalize().to_hex().to_string())
}
