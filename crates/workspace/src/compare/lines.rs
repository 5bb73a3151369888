//! What changed inside a file: lines that were added and removed, and the unified diff that `git apply` takes.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use similar::{DiffOp, TextDiff};

use super::Changed;
use crate::objects::ObjectSource;
use crate::tree::{FileMode, OwnedNode};

/// Files above this size have no line counts.
pub const MAX_COUNTED_BYTES: u64 = 1 << 20;

/// Counting that takes longer is given up.
pub const COUNT_TIME: Duration = Duration::from_millis(200);

/// Files above this size have no diff: nobody reads it.
pub const MAX_DIFF_BYTES: u64 = 8 << 20;

/// A diff that takes longer is still right, and less short than it could be.
const DIFF_TIME: Duration = Duration::from_secs(1);

/// How much of a file is searched for a NUL byte, which text does not have. As git does.
const BINARY_PROBE_BYTES: usize = 8000;

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// Lines that came and went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LineCounts {
    /// Lines that came.
    pub added: u64,
    /// Lines that went.
    pub removed: u64,
}

/// Counts the lines that came and went in a file; nothing if that is not known: it is binary, above
/// [`MAX_COUNTED_BYTES`], no file, or takes longer than [`COUNT_TIME`].
pub fn count_lines(source: &dyn ObjectSource, changed: &Changed) -> io::Result<Option<LineCounts>> {
    let text = |node: &Option<OwnedNode>| match node {
        None => Ok(Some(Vec::new())),
        Some(OwnedNode::File { size, .. }) if *size > MAX_COUNTED_BYTES => Ok(None),
        Some(OwnedNode::File { content, .. }) => {
            source.get(content, MAX_COUNTED_BYTES).map(|bytes| Some(bytes).filter(|bytes| !is_binary(bytes)))
        }
        Some(_) => Ok(None),
    };
    let (Some(old), Some(new)) = (text(&changed.old)?, text(&changed.new)?) else { return Ok(None) };
    if changed.old.is_none() && changed.new.is_none() {
        return Ok(None);
    }
    let (old, new) = (lines(&old), lines(&new));
    if old.is_empty() || new.is_empty() {
        return Ok(Some(LineCounts { added: new.len() as u64, removed: old.len() as u64 }));
    }
    let deadline = Instant::now() + COUNT_TIME;
    let diff = TextDiff::configure().deadline(deadline).diff_slices(&old, &new);
    if Instant::now() >= deadline {
        return Ok(None);
    }
    let mut counts = LineCounts { added: 0, removed: 0 };
    for op in diff.ops() {
        if !matches!(op, DiffOp::Equal { .. }) {
            counts.added += op.new_range().len() as u64;
            counts.removed += op.old_range().len() as u64;
        }
    }
    Ok(Some(counts))
}

/// What a diff shows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diff {
    /// Its lines.
    Text,
    /// That it changed: it is binary.
    Binary,
    /// That it changed: it is above [`MAX_DIFF_BYTES`].
    TooLarge,
}

/// Writes the unified diff of a change as git does, so that `git apply` takes it; nothing for directories, which git has none of.
pub fn write_unified(source: &dyn ObjectSource, changed: &Changed, out: &mut dyn Write) -> io::Result<Diff> {
    if changed.is_directory() {
        return Ok(Diff::Text);
    }
    if changed.change == super::Change::TypeChanged {
        // One thing goes, another comes: that is what git writes too.
        let gone = Changed { change: super::Change::Deleted, new: None, ..changed.clone() };
        let come = Changed { change: super::Change::Added, old: None, ..changed.clone() };
        let shown = write_unified(source, &gone, out)?;
        let also = write_unified(source, &come, out)?;
        return Ok(if shown == Diff::Text { also } else { shown });
    }
    let (a, b) = (quoted(b"a/", &changed.path), quoted(b"b/", &changed.path));
    writeln!(out, "diff --git {a} {b}")?;
    match (git_mode(&changed.old), git_mode(&changed.new)) {
        (None, Some(mode)) => writeln!(out, "new file mode {mode}")?,
        (Some(mode), None) => writeln!(out, "deleted file mode {mode}")?,
        (Some(old), Some(new)) if old != new => write!(out, "old mode {old}\nnew mode {new}\n")?,
        _ => {}
    }
    if changed.change == super::Change::ModeChanged {
        return Ok(Diff::Text);
    }
    let (Some(old), Some(new)) = (content(source, &changed.old)?, content(source, &changed.new)?) else {
        writeln!(out, "Files {a} and {b} differ; they are too large to show")?;
        return Ok(Diff::TooLarge);
    };
    if is_binary(&old) || is_binary(&new) {
        writeln!(out, "Binary files {a} and {b} differ")?;
        return Ok(Diff::Binary);
    }
    let (old, new) = (lines(&old), lines(&new));
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_slices(&old, &new);
    let nothing = || "/dev/null".to_owned();
    let mut head = Some((
        if changed.old.is_some() { a } else { nothing() },
        if changed.new.is_some() { b } else { nothing() },
    ));
    for group in diff.grouped_ops(CONTEXT_LINES) {
        if let Some((old, new)) = head.take() {
            write!(out, "--- {old}\n+++ {new}\n")?;
        }
        write_hunk(&group, &old, &new, out)?;
    }
    Ok(Diff::Text)
}

fn write_hunk(ops: &[DiffOp], old: &[&[u8]], new: &[&[u8]], out: &mut dyn Write) -> io::Result<()> {
    let (Some(first), Some(last)) = (ops.first(), ops.last()) else { return Ok(()) };
    let range = |start: usize, end: usize| match end - start {
        // A range without lines is named by the line before it.
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        count => format!("{},{count}", start + 1),
    };
    let olds = range(first.old_range().start, last.old_range().end);
    let news = range(first.new_range().start, last.new_range().end);
    writeln!(out, "@@ -{olds} +{news} @@")?;
    for op in ops {
        let is_equal = matches!(op, DiffOp::Equal { .. });
        if is_equal {
            write_lines(b' ', &old[op.old_range()], out)?;
        } else {
            write_lines(b'-', &old[op.old_range()], out)?;
            write_lines(b'+', &new[op.new_range()], out)?;
        }
    }
    Ok(())
}

fn write_lines(mark: u8, lines: &[&[u8]], out: &mut dyn Write) -> io::Result<()> {
    for line in lines {
        out.write_all(&[mark])?;
        out.write_all(line)?;
        if !line.ends_with(b"\n") {
            out.write_all(b"\n\\ No newline at end of file\n")?;
        }
    }
    Ok(())
}

/// Returns what a diff is made of: a file's content, a link's target; nothing if it is too large.
fn content(source: &dyn ObjectSource, node: &Option<OwnedNode>) -> io::Result<Option<Vec<u8>>> {
    match node {
        None | Some(OwnedNode::Directory { .. }) => Ok(Some(Vec::new())),
        Some(OwnedNode::Link { target }) => Ok(Some(target.clone())),
        Some(OwnedNode::File { size, .. }) if *size > MAX_DIFF_BYTES => Ok(None),
        Some(OwnedNode::File { content, .. }) => source.get(content, MAX_DIFF_BYTES).map(Some),
    }
}

/// Returns the mode that git has for it; none for what git does not know.
fn git_mode(node: &Option<OwnedNode>) -> Option<&'static str> {
    match node {
        None | Some(OwnedNode::Directory { .. }) => None,
        Some(OwnedNode::Link { .. }) => Some("120000"),
        Some(OwnedNode::File { mode: FileMode::Plain | FileMode::Private, .. }) => Some("100644"),
        Some(OwnedNode::File { mode: FileMode::Executable | FileMode::PrivateExecutable, .. }) => {
            Some("100755")
        }
    }
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(BINARY_PROBE_BYTES)].contains(&0)
}

/// Returns the lines of a text, each with its end.
fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Returns a path as git writes it in a diff: as it is, or in quotes with escapes if it has bytes that would confuse a reader
/// or a terminal.
pub fn quoted(before: &[u8], path: &[u8]) -> String {
    let path = [before, path].concat();
    match std::str::from_utf8(&path) {
        Ok(text) if !text.chars().any(|c| c.is_control() || matches!(c, '"' | '\\')) => {
            return text.to_owned();
        }
        _ => {}
    }
    let mut quoted = String::from("\"");
    for byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', byte as char]),
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            0x20..0x7f => quoted.push(byte as char),
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}
