//! Reading a bundle, with suspicion: it comes from anywhere. The table of contents is read and checked first; from there on every
//! header is known beforehand and compared byte for byte, every member has the announced size and hash, and nothing else is there.

use std::io::{self, BufReader, Read, Seek, SeekFrom, Take};

use rekindle_domain::blob_id::BlobId;
use rekindle_domain::bundle::{BadContents, CONTENTS, Contents, MAX_CONTENTS, Member, MemberName};

use super::archive::{BLOCK, END, Hashing, TRAILER, header, is_trailer, padding, size_in};
use super::verify_trees::WholeTrees;
use super::{BundleError, Progress, Watcher};

/// Logs and snapshots of up to so many bytes are taken whatever the size of the bundle.
const ALWAYS: u64 = 1 << 30;

/// How many times larger than the bundle they may be beyond that: no log compresses so well.
const MOST_EXPANDED: u64 = 200;

/// A file that is read more than once.
pub trait BundleFile: Read + Seek {}

impl<T: Read + Seek> BundleFile for T {}

type Decoder<'a> = zstd::Decoder<'a, BufReader<Hashing<Take<&'a mut dyn BundleFile>>>>;

/// What is done with a member; whatever of it is not read is read afterwards.
pub(super) type Visit<'a> = &'a mut dyn FnMut(&Member, &mut dyn Read) -> Result<(), BundleError>;

/// Reads a bundle from its beginning to its end, and shows each member to `visit`. Only if this returns is everything of it what was
/// written.
pub(super) fn read(
    file: &mut dyn BundleFile,
    visit: Visit<'_>,
    doing: &'static str,
    watcher: Watcher<'_>,
) -> Result<Contents, BundleError> {
    let (expected, len) = read_trailer(file)?;
    let hashing = Hashing::new(file.take(len - TRAILER as u64));
    let decoder = zstd::Decoder::with_buffer(BufReader::with_capacity(1 << 17, hashing));
    let mut decoder = decoder.map_err(BundleError::unread)?.single_frame();
    let contents = read_contents(&mut decoder)?;
    refuse_bomb(&contents, len)?;
    let total = contents.members.iter().map(|member| member.size).sum();
    let mut done = 0;
    for member in &contents.members {
        read_member(&mut decoder, member, visit)?;
        done += member.size;
        watcher(Progress { doing, done, total });
    }
    let mut end = [0; END.len()];
    let mut more = [0; 1];
    let ended = decoder.read_exact(&mut end).and_then(|()| decoder.read(&mut more));
    match ended {
        Ok(0) if end == END => {}
        Ok(_) => return Err(BundleError::Damaged("there is data after its last member".into())),
        Err(error) => return Err(BundleError::Damaged(format!("its end cannot be read: {error}"))),
    }
    let mut rest = decoder.finish();
    let behind = io::copy(&mut rest, &mut io::sink()).map_err(BundleError::unread)?;
    let hashed = rest.into_inner();
    if behind > 0 {
        return Err(BundleError::Damaged("there is data after its end".into()));
    }
    if *hashed.hash().as_bytes() != expected {
        return Err(BundleError::Damaged("its bytes do not match the hash after them".into()));
    }
    Ok(contents)
}

/// Reads a bundle without keeping anything: whether everything in it is what was written, and the files of its directories are all
/// there. Returns what it knows of its objects, too.
pub(super) fn verify(
    file: &mut dyn BundleFile,
    watcher: Watcher<'_>,
) -> Result<(Contents, WholeTrees), BundleError> {
    let mut trees = WholeTrees::default();
    let mut visit = |member: &Member, bytes: &mut dyn Read| {
        let MemberName::Blob(id) = member.name else { return Ok(()) };
        let noted = trees.note(id, member.size, bytes);
        noted.map_err(|error| BundleError::Member { name: member.name.clone(), why: error.to_string() })
    };
    let contents = read(file, &mut visit, "reading", watcher)?;
    for session in &contents.sessions {
        for tree in session.tree.iter().chain(&session.checkpoints) {
            let checked = trees.check(tree);
            checked.map_err(|why| BundleError::Files { session: session.session_id, why })?;
        }
    }
    for run in &contents.runs {
        for tree in run.tree.iter().chain(&run.trees) {
            let checked = trees.check(tree);
            checked.map_err(|why| BundleError::FilesOfRun { run: run.run_id, why })?;
        }
    }
    Ok((contents, trees))
}

/// Reads the hash behind everything, and how long the file is; leaves the file at its beginning.
fn read_trailer(file: &mut dyn BundleFile) -> Result<([u8; 32], u64), BundleError> {
    let len = file.seek(SeekFrom::End(0)).map_err(BundleError::unread)?;
    let mut trailer = [0; TRAILER];
    if len <= TRAILER as u64 {
        return Err(BundleError::NotABundle("it is too short"));
    }
    let read = file.seek(SeekFrom::Start(len - TRAILER as u64)).and_then(|_| file.read_exact(&mut trailer));
    read.and_then(|()| file.seek(SeekFrom::Start(0))).map_err(BundleError::unread)?;
    if !is_trailer(&trailer) {
        return Err(BundleError::NotABundle("it does not end as a bundle does; it may have been cut off"));
    }
    let mut hash = [0; 32];
    hash.copy_from_slice(&trailer[TRAILER - 32..]);
    Ok((hash, len))
}

fn read_contents(decoder: &mut Decoder<'_>) -> Result<Contents, BundleError> {
    let unreadable = |error: io::Error| BadContents::Damaged(error.to_string());
    let mut first = [0; BLOCK];
    decoder.read_exact(&mut first).map_err(|_| BundleError::NotABundle("it cannot be decompressed"))?;
    let size = size_in(&first).unwrap_or(u64::MAX);
    if header(CONTENTS, size).map_err(unreadable)? != first {
        return Err(BundleError::NotABundle("it does not begin with bundle.json"));
    }
    if size > MAX_CONTENTS {
        return Err(BadContents::TooLarge.into());
    }
    let mut bytes = Vec::new();
    decoder.take(size).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 != size {
        return Err(BadContents::Damaged("it is cut off".into()).into());
    }
    skip_padding(decoder, size).map_err(BadContents::Damaged)?;
    Ok(Contents::read(&bytes)?)
}

/// Refuses a table that announces more than what is written as it is could come to.
fn refuse_bomb(contents: &Contents, len: u64) -> Result<(), BundleError> {
    let files = contents.members.iter().filter(|member| !matches!(member.name, MemberName::Blob(_)));
    let bytes: u64 = files.map(|member| member.size).sum();
    if bytes > ALWAYS.max(len.saturating_mul(MOST_EXPANDED)) {
        return Err(BadContents::TooLarge.into());
    }
    Ok(())
}

fn read_member(decoder: &mut Decoder<'_>, member: &Member, visit: Visit<'_>) -> Result<(), BundleError> {
    let damaged = |why: String| BundleError::Member { name: member.name.clone(), why };
    let text = |error: io::Error| damaged(error.to_string());
    let mut found = [0; BLOCK];
    decoder.read_exact(&mut found).map_err(text)?;
    if header(&member.name.to_string(), member.size).map_err(text)? != found {
        return Err(damaged(
            "there is a different member in its place, or one of a different kind or size".into(),
        ));
    }
    let mut hashing = Hashing::new((&mut *decoder).take(member.size));
    visit(member, &mut hashing)?;
    io::copy(&mut hashing, &mut io::sink()).map_err(text)?;
    let (count, id) = (hashing.count, hashing.id());
    if count != member.size {
        return Err(damaged("it is cut off".into()));
    }
    if id != member.hash {
        return Err(damaged("its bytes do not match the hash in bundle.json".into()));
    }
    skip_padding(decoder, member.size).map_err(damaged)
}

fn skip_padding(decoder: &mut Decoder<'_>, size: u64) -> Result<(), String> {
    let mut zeros = vec![0; padding(size)];
    decoder.read_exact(&mut zeros).map_err(|error| error.to_string())?;
    if zeros.iter().any(|byte| *byte != 0) { Err("there is data after it".into()) } else { Ok(()) }
}

/// Tells whether a blob is among the members.
pub(super) fn blobs(contents: &Contents) -> impl Iterator<Item = BlobId> {
    contents.members.iter().filter_map(|member| match member.name {
        MemberName::Blob(id) => Some(id),
        _ => None,
    })
}
