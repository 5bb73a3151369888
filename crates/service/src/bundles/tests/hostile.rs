//! Bundles that somebody changed, or made to do harm: each is refused, with what is wrong, and the home is as it was.

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::{CONTENTS, Contents, Member, MemberName};
use rekindle_workspace::tree::MAGIC;

use super::super::archive::{BLOCK, END, header, padding, trailer};
use super::super::read::verify;
use super::*;

/// Members by their names.
pub(super) type Members = Vec<(String, Vec<u8>)>;

/// The parts of a bundle.
pub(super) struct Parts {
    pub(super) contents: Contents,
    pub(super) members: Members,
}

/// Takes a bundle apart.
pub(super) fn parts(bundle: &[u8]) -> Parts {
    let mut members = Vec::new();
    let mut visit = |member: &Member, bytes: &mut dyn std::io::Read| {
        let mut content = Vec::new();
        bytes.read_to_end(&mut content).expect("read");
        members.push((member.name.to_string(), content));
        Ok(())
    };
    let contents = super::super::read::read(&mut Cursor::new(bundle), &mut visit, "", &mut |_| {});
    Parts { contents: contents.expect("a bundle"), members }
}

/// Compresses an archive, and puts the hash behind it.
fn packed(archive: &[u8]) -> Vec<u8> {
    let mut bundle = zstd::encode_all(archive, 1).expect("compressed");
    let trailer = trailer(&blake3::hash(&bundle));
    bundle.extend_from_slice(&trailer);
    bundle
}

fn add(archive: &mut Vec<u8>, header: &[u8; BLOCK], bytes: &[u8]) {
    archive.extend_from_slice(header);
    archive.extend_from_slice(bytes);
    archive.extend_from_slice(&END[..padding(bytes.len() as u64)]);
}

/// Puts a bundle together, with whatever table there is.
pub(super) fn forged(
    table: &[u8],
    members: &[(String, Vec<u8>)],
    change: impl Fn(usize, &mut [u8; BLOCK]),
) -> Vec<u8> {
    let mut archive = Vec::new();
    add(&mut archive, &header(CONTENTS, table.len() as u64).expect("a header"), table);
    for (index, (name, bytes)) in members.iter().enumerate() {
        let mut header = header(name, bytes.len() as u64).expect("a header");
        change(index, &mut header);
        add(&mut archive, &header, bytes);
    }
    archive.extend_from_slice(&END);
    packed(&archive)
}

/// Says that a header is of another kind, with the checksum that this has.
fn retype(header: &mut [u8; BLOCK], kind: u8) {
    header[156] = kind;
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// Returns a table with a text in it replaced, and a checksum that fits.
fn rewritten(contents: &Contents, from: &str, to: &str) -> Vec<u8> {
    let text = serde_json::to_string(contents).expect("text");
    assert!(text.contains(from), "{from} in {text}");
    let mut text = text.replacen(from, to, 1);
    text.pop();
    let sum = BlobId::of(text.as_bytes());
    format!("{text},\"checksum\":\"{sum}\"}}").into_bytes()
}

#[test]
fn any_byte_that_is_changed_or_cut_off_is_noticed_and_named() {
    let bundle = exported(&home_with_session());
    verify(&mut Cursor::new(&bundle[..]), &mut |_| {}).expect("a bundle");
    for at in 0..bundle.len() {
        let mut changed = bundle.clone();
        changed[at] ^= 1 << (at % 8);
        let refused = verify(&mut Cursor::new(&changed[..]), &mut |_| {}).expect_err("refused").to_string();
        assert!(refused.contains("bundle"), "byte {at}: {refused}");
        assert!(verify(&mut Cursor::new(&bundle[..at]), &mut |_| {}).is_err(), "cut at {at}");
    }
}

#[test]
fn hostile_bundles_are_refused_before_anything_is_written() {
    let disk = home_with_session();
    let (bundle, Parts { contents, members }) = (exported(&disk), parts(&exported(&disk)));
    let table = contents.to_bytes().expect("a table");
    let plain = |_: usize, _: &mut [u8; BLOCK]| {};
    assert!(parts(&forged(&table, &members, plain)).contents == contents, "what is forged well is read");
    let name = &members[0].0;
    let renamed = |to: &str| forged(&rewritten(&contents, name, to), &members, plain);
    let with = |change: &dyn Fn(&mut Contents, &mut Members)| {
        let (mut contents, mut members) = (contents.clone(), members.clone());
        change(&mut contents, &mut members);
        forged(&contents.to_bytes().expect("a table"), &members, plain)
    };
    let retyped = |kind: u8| {
        forged(&table, &members, move |index, header| {
            if index == 0 {
                retype(header, kind)
            }
        })
    };
    let mut huge_table = Vec::new();
    add(&mut huge_table, &header(CONTENTS, 20 << 30).expect("a header"), &table);
    let log_edited = with(&|contents, members| {
        let text = String::from_utf8(members[0].1.clone()).expect("text").replacen("hello", "hullo", 1);
        members[0].1 = text.into_bytes();
        contents.members[0].hash = BlobId::of(&members[0].1);
    });
    let half_a_log = with(&|contents, members| {
        let cut = members[0].1.len() - 10;
        members[0].1.truncate(cut);
        contents.members[0].size = members[0].1.len() as u64;
        contents.members[0].hash = BlobId::of(&members[0].1);
    });
    let tree_of = |bytes: Vec<u8>| {
        with(&|contents, members| {
            let id = BlobId::of(&bytes);
            contents.sessions[0].tree = Some(id);
            let name = MemberName::Blob(id);
            members.push((name.to_string(), bytes.clone()));
            contents.members.push(Member { name, size: bytes.len() as u64, hash: id });
        })
    };
    // A file called `..`, and one whose content is nowhere.
    let climbing = tree_of([MAGIC, b"f\x02..\x01", BlobId::of(b"a payload").as_bytes()].concat());
    let hollow = tree_of([MAGIC, b"f\x01a\x09", BlobId::of(b"elsewhere").as_bytes()].concat());
    let checkpoints = |bytes: &[Vec<u8>]| {
        with(&|contents, members| {
            for bytes in bytes {
                let id = BlobId::of(bytes);
                let name = MemberName::Blob(id);
                members.push((name.to_string(), bytes.clone()));
                contents.members.push(Member { name, size: bytes.len() as u64, hash: id });
                contents.sessions[0].checkpoints = vec![id];
            }
        })
    };
    // Each has two directories, which are the same: few objects, and more entries than anybody could count.
    let levels = |count: usize, width: &[&[u8]]| {
        let mut trees = vec![MAGIC.to_vec()];
        for level in 0..count {
            let below = BlobId::of(&trees[level]);
            let entries = width.iter().map(|name| [b"d\x01", *name, below.as_bytes()].concat());
            trees.push([MAGIC.to_vec(), entries.collect::<Vec<_>>().concat()].concat());
        }
        trees
    };
    assert!(verify(&mut Cursor::new(checkpoints(&levels(10, &[b"a", b"b"]))), &mut |_| {}).is_ok());
    for (what, hostile) in [
        ("nothing", Vec::new()),
        ("no bundle", b"PK\x03\x04 something else altogether, and longer than a hash".to_vec()),
        ("half of one", bundle[..bundle.len() / 2].to_vec()),
        ("more behind it", [&bundle[..], &bundle[..]].concat()),
        ("an absolute path", renamed("/etc/passwd")),
        ("a way out", renamed("../../sess_1.jsonl")),
        ("a way out below", renamed("sessions/../../sess_1.jsonl")),
        ("a place of ours that no member has", renamed("wal/00000001.wal")),
        ("a hard link", retyped(b'1')),
        ("a symbolic link", retyped(b'2')),
        ("a device", retyped(b'3')),
        ("a directory", retyped(b'5')),
        ("a sparse file", retyped(b'S')),
        ("a longer name", retyped(b'L')),
        ("other names", retyped(b'x')),
        ("another name than announced", {
            let mut members = members.clone();
            members[0].0 = "sessions/sess_2.jsonl".into();
            forged(&table, &members, plain)
        }),
        ("a member that is not announced", {
            let mut members = members.clone();
            members.push(("sessions/sess_2.jsonl".into(), b"x".to_vec()));
            forged(&table, &members, plain)
        }),
        ("a member that is missing", forged(&table, &members[..1], plain)),
        ("a wrong hash", with(&|contents, _| contents.members[0].hash = BlobId::of(b"y"))),
        ("a size that is not so", with(&|contents, _| contents.members[0].size += 1)),
        ("a bomb", with(&|contents, _| contents.members[0].size = 1 << 39)),
        ("more than there can be", with(&|contents, _| contents.members[0].size = u64::MAX)),
        ("a table of ten million entries", packed(&huge_table)),
        ("another format", with(&|contents, _| contents.format = 9)),
        ("a session that is announced otherwise", with(&|contents, _| contents.sessions[0].seq += 1)),
        ("a record that was changed, with hashes that fit", log_edited),
        ("a log that is cut off, with hashes that fit", half_a_log),
        ("a tree that climbs", climbing),
        ("a tree without its contents", hollow),
        ("a checkpoint without a directory", checkpoints(&levels(3, &[b"a"])[2..])),
        ("a checkpoint that is no tree", checkpoints(&[b"a payload of another kind".to_vec()])),
        (
            "a checkpoint that is not there",
            with(&|contents, _| {
                contents.sessions[0].checkpoints = vec![BlobId::of(b"nowhere")];
            }),
        ),
        ("more entries than anybody could count", checkpoints(&levels(70, &[b"a", b"b"]))),
        ("directories without a ground", checkpoints(&levels(600, &[b"a"]))),
        (
            "a transcript that is not announced",
            with(&|contents, members| {
                let name = MemberName::Transcript(contents.sessions[0].session_id);
                members.push((name.to_string(), b"x".to_vec()));
                contents.members.push(Member { name, size: 1, hash: BlobId::of(b"x") });
            }),
        ),
    ] {
        let to = SimDisk::new(2);
        drop(open(&to));
        let before = files(&to, Path::new(HOME));
        let refused = imported(&to, &hostile).expect_err(what);
        assert!(!refused.to_string().is_empty(), "{what}");
        assert_eq!(files(&to, Path::new(HOME)), before, "{what}: {refused}");
        assert_eq!(errors(&to), Vec::<String>::new(), "{what}");
    }
}
