//! The manifest of a tree: facts about its content, and the list of its entries for people and programs.
//! A manifest can be made again from the tree; facts about one capture are in that capture's record.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rekindle_domain::blob_id::BlobId;
use serde::{Deserialize, Serialize};

use crate::objects::ObjectSource;
use crate::path_name::PathName;
use crate::tree::{Limits, OwnedNode, TreeWalk, WalkError, WalkedEntry};

/// The version of manifests that is written.
pub const MANIFEST_VERSION: u32 = 1;

/// Facts about the content of a tree: `workspaces/<tree hash>.manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`]; a newer one is left alone by whoever reads it.
    pub version: u32,
    /// The tree hash.
    pub tree: BlobId,
    /// How many regular files there are.
    pub files: u64,
    /// Bytes of their contents.
    pub bytes: u64,
}

impl Manifest {
    /// Returns the manifest of a tree whose facts are known.
    pub fn new(tree: BlobId, files: u64, bytes: u64) -> Manifest {
        Manifest { version: MANIFEST_VERSION, tree, files, bytes }
    }

    /// Makes the manifest from the tree.
    pub fn rebuild(source: &dyn ObjectSource, tree: BlobId, limits: Limits) -> Result<Manifest, WalkError> {
        let mut manifest = Manifest::new(tree, 0, 0);
        for entry in TreeWalk::new(source, tree, limits) {
            if let OwnedNode::File { size, .. } = entry?.node {
                manifest.files += 1;
                manifest.bytes += size;
            }
        }
        Ok(manifest)
    }
}

/// An entry of a tree as JSON shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownEntry {
    /// The path from the root: `path`, or `path_b64` if it is not UTF-8.
    #[serde(flatten)]
    pub path: PathName,
    /// What it is.
    #[serde(flatten)]
    pub node: ShownNode,
}

/// What an entry is, as JSON shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ShownNode {
    /// A regular file.
    File {
        /// Permission bits in octal: 0644, 0755, 0600 or 0700.
        mode: String,
        /// Length in bytes.
        size: u64,
        /// BLAKE3 of the content.
        hash: BlobId,
    },
    /// A symbolic link.
    Link {
        /// Where it points to, if that is UTF-8.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// The same in base64, if it is not.
        #[serde(skip_serializing_if = "Option::is_none")]
        target_b64: Option<String>,
    },
    /// A directory.
    Directory {
        /// BLAKE3 of its tree object.
        hash: BlobId,
    },
}

impl From<&WalkedEntry> for ShownEntry {
    fn from(entry: &WalkedEntry) -> ShownEntry {
        let node = match &entry.node {
            OwnedNode::File { mode, size, content } => {
                ShownNode::File { mode: format!("{:04o}", mode.permissions()), size: *size, hash: *content }
            }
            OwnedNode::Link { target } => match std::str::from_utf8(target) {
                Ok(target) => ShownNode::Link { target: Some(target.to_owned()), target_b64: None },
                Err(_) => ShownNode::Link { target: None, target_b64: Some(STANDARD.encode(target)) },
            },
            OwnedNode::Directory { tree } => ShownNode::Directory { hash: *tree },
        };
        ShownEntry { path: PathName::from(entry.path.as_slice()), node }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{MemoryObjects, ObjectSink};
    use crate::tree::{Entry, FileMode, Node, TreeBuilder};

    fn tree(objects: &MemoryObjects) -> BlobId {
        let content = objects.put(b"text").expect("kept");
        let file = |mode| Node::File { mode, size: 4, content };
        let mut inner = TreeBuilder::new();
        inner.push(&Entry { name: b"\xff", node: file(FileMode::Private) }).expect("allowed");
        let inner = objects.put(inner.finish().bytes()).expect("kept");
        let mut root = TreeBuilder::new();
        root.push(&Entry { name: b"a", node: Node::Directory { tree: inner } }).expect("allowed");
        root.push(&Entry { name: b"l", node: Node::Link { target: b"\xfe" } }).expect("allowed");
        root.push(&Entry { name: b"m", node: Node::Link { target: b"a" } }).expect("allowed");
        root.push(&Entry { name: b"x", node: file(FileMode::Executable) }).expect("allowed");
        objects.put(root.finish().bytes()).expect("kept")
    }

    #[test]
    fn a_manifest_is_rebuilt_from_the_tree() {
        let objects = MemoryObjects::new();
        let tree = tree(&objects);
        let manifest = Manifest::rebuild(&objects, tree, Limits::default()).expect("valid");
        assert_eq!(manifest, Manifest::new(tree, 2, 8));
        let json = serde_json::to_string(&manifest).expect("JSON");
        assert_eq!(json, format!(r#"{{"version":1,"tree":"{tree}","files":2,"bytes":8}}"#));
        assert_eq!(serde_json::from_str::<Manifest>(&json).expect("a manifest"), manifest);
        assert!(Manifest::rebuild(&objects, tree, Limits { entries: 3, ..Limits::default() }).is_err());
    }

    #[test]
    fn entries_are_shown_with_every_byte_of_their_names() {
        let objects = MemoryObjects::new();
        let tree = tree(&objects);
        let text = BlobId::of(b"text");
        let shown: Vec<String> = TreeWalk::new(&objects, tree, Limits::default())
            .map(|entry| serde_json::to_string(&ShownEntry::from(&entry.expect("valid"))).expect("JSON"))
            .collect();
        assert_eq!(shown.len(), 5);
        assert!(shown[0].starts_with(r#"{"path":"a","type":"directory","hash":""#), "{}", shown[0]);
        assert_eq!(
            shown[1],
            format!(r#"{{"path_b64":"YS//","type":"file","mode":"0600","size":4,"hash":"{text}"}}"#)
        );
        assert_eq!(shown[2], r#"{"path":"l","type":"link","target_b64":"/g=="}"#);
        assert_eq!(shown[3], r#"{"path":"m","type":"link","target":"a"}"#);
        assert_eq!(
            shown[4],
            format!(r#"{{"path":"x","type":"file","mode":"0755","size":4,"hash":"{text}"}}"#)
        );
    }
}
