//! Every byte of a pack and of its index: what is damaged is named with its place and its object.

use std::io;
use std::path::{Path, PathBuf};

use rekindle_domain::blob_id::BlobId;

use super::format::{MAGIC, Object, PackId, Scanner, Step};
use super::index::{Index, MAX_INDEX, Row, encode};
use crate::disk::{Disk, OpenMode, if_exists, read_all};
use crate::layout::Layout;

/// What is wrong with a pack or an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackFinding {
    /// Which of the two, and how.
    pub(crate) kind: PackFindingKind,
    /// The file.
    pub(crate) path: PathBuf,
    /// Where in it.
    pub(crate) byte: Option<u64>,
    /// Which object.
    pub(crate) object: Option<BlobId>,
    /// What is the matter.
    pub(crate) detail: String,
}

/// The kinds of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PackFindingKind {
    /// Objects are lost.
    Pack,
    /// The index is wrong, and can be made again.
    Index,
    /// The index is missing, and can be made again.
    IndexMissing,
}

/// Verifies a pack and its index; returns its objects, good or not, each once.
pub(crate) fn verify(
    disk: &dyn Disk,
    layout: &Layout,
    id: PackId,
    found: &mut dyn FnMut(PackFinding),
) -> io::Result<Vec<BlobId>> {
    let (path, index_path) = (layout.pack(&id), layout.pack_index(&id));
    let Some(file) = if_exists(disk.open(&path, OpenMode::Read))? else { return Ok(Vec::new()) };
    let index_bytes = match if_exists(read_all(disk, &index_path, MAX_INDEX)) {
        Ok(bytes) => bytes,
        Err(error) => {
            let detail = format!("it cannot be read: {error}");
            found(PackFinding {
                kind: PackFindingKind::Index,
                path: index_path.clone(),
                byte: None,
                object: None,
                detail,
            });
            None
        }
    };
    let mut walk = Walk { scanner: Scanner::new(&*file)?, path: &path, found };
    let index = index_bytes.as_ref().map(|bytes| Index::read(bytes.clone(), Some(id)));
    if let Some(Ok(index)) = index {
        let rows = index.rows_by_offset()?;
        walk.by_index(&rows)?;
        return Ok(rows.into_iter().map(|row| row.id).collect());
    }
    let (mut rows, whole) = walk.without_index()?;
    let len = rows.last().map_or(0, Row::end);
    let rebuilt = encode(&mut rows, len);
    if whole && PackId::of_index(&rebuilt) != id {
        let detail = "its objects do not match its name: some are missing or were added".into();
        found(PackFinding { kind: PackFindingKind::Pack, path, byte: Some(len), object: None, detail });
    }
    let (kind, byte, detail) = match (index_bytes, index) {
        (Some(bytes), Some(Err(detail))) => {
            let differs = bytes.iter().zip(&rebuilt).position(|(a, b)| a != b);
            let at = differs.unwrap_or(bytes.len().min(rebuilt.len()));
            // Beside a damaged pack it is evidence, and stays.
            let kind = if whole { PackFindingKind::Index } else { PackFindingKind::Pack };
            (kind, whole.then_some(at as u64), detail)
        }
        _ => (PackFindingKind::IndexMissing, None, "it is missing".into()),
    };
    found(PackFinding { kind, path: index_path, byte, object: None, detail });
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// A walk through a pack that tells what it finds.
struct Walk<'a, 'b> {
    scanner: Scanner<'a>,
    path: &'a Path,
    found: &'b mut dyn FnMut(PackFinding),
}

impl Walk<'_, '_> {
    fn damaged(&mut self, byte: u64, object: Option<BlobId>, detail: impl Into<String>) {
        let (kind, path) = (PackFindingKind::Pack, self.path.to_owned());
        (self.found)(PackFinding { kind, path, byte: Some(byte), object, detail: detail.into() });
    }

    /// Visits every object that the index knows. Objects lie without gaps from the mark to the end, so that every byte is seen.
    fn by_index(&mut self, rows: &[Row]) -> io::Result<()> {
        let mut end = MAGIC.len() as u64;
        if let Step::Damaged { offset: 0, detail, .. } = self.scanner.step_to(0)? {
            self.damaged(0, None, detail);
        }
        for row in rows {
            let offset = u64::from(row.offset);
            if offset != end {
                self.damaged(end, None, "these bytes belong to no object");
            }
            end = row.end();
            let wrong = match self.scanner.step_to(offset)? {
                Step::Object(_, object) if is(row, &object) => object.unpack().err(),
                Step::Object(..) => Some("there is a different object where the index says it is".into()),
                Step::End => Some("the pack ends before it".into()),
                Step::Damaged { detail, .. } => Some(detail),
            };
            if let Some(detail) = wrong {
                self.damaged(offset, Some(row.id), detail);
            }
        }
        if self.scanner.len() > end {
            self.damaged(end, None, "there is data after the last object");
        }
        Ok(())
    }

    /// Visits object by object as far as that goes; returns them, and whether nothing was damaged.
    fn without_index(&mut self) -> io::Result<(Vec<Row>, bool)> {
        let (mut rows, mut whole) = (Vec::new(), true);
        loop {
            let (offset, id, detail) = match self.scanner.step()? {
                Step::End => return Ok((rows, whole)),
                Step::Object(offset, object) => {
                    let row =
                        Row { id: object.id, offset: offset as u32, stored: object.stored.len() as u32 };
                    rows.push(row);
                    match object.unpack() {
                        Ok(_) => continue,
                        Err(detail) => (offset, Some(row.id), detail),
                    }
                }
                Step::Damaged { offset, id, detail } => {
                    let detail = format!("{detail}; what follows cannot be found without the index");
                    self.damaged(offset, id, detail);
                    return Ok((rows, false));
                }
            };
            whole = false;
            self.damaged(offset, id, detail);
        }
    }
}

fn is(row: &Row, object: &Object<'_>) -> bool {
    object.id == row.id && object.stored.len() == row.stored as usize
}
