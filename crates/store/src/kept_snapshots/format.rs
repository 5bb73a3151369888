//! A kept snapshot as a file: one JSON object whose last field is a checksum of everything before it, compressed or not.

use std::io::{self, Read, Write};

use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rekindle_domain::event::Compression;
use rekindle_domain::kept_snapshot::{KeptSnapshot, SnapshotName};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;

use super::migrations::{MIGRATIONS, Migration, migrate, newest};

/// Largest snapshot that is read: a state holds no messages, so anything near this is rubbish.
const MAX_PLAIN: u64 = 64 << 20;

/// Length of `,"checksum":"0123456789abcdef"}`.
const CHECKSUM_SUFFIX: usize = 31;

/// Fast, and good enough for text.
const ZSTD_LEVEL: i32 = 3;

/// Returns what the names of files end in that are compressed so.
fn suffix(compression: Compression) -> &'static str {
    match compression {
        Compression::Zstd => ".json.zst",
        Compression::Gzip => ".json.gz",
        Compression::None => ".json",
    }
}

/// Returns the name of a snapshot's file.
pub(super) fn file_name(name: SnapshotName, compression: Compression) -> String {
    format!("{name}{}", suffix(compression))
}

/// Returns the snapshot that a file is of, and how it is compressed.
pub(super) fn parse_file_name(file: &str) -> Option<(SnapshotName, Compression)> {
    Compression::ALL
        .into_iter()
        .find_map(|compression| Some((file.strip_suffix(suffix(compression))?.parse().ok()?, compression)))
}

/// Why a file is no snapshot that can be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// A newer version wrote it.
    Newer(u32),
    /// Its bytes are not what was written.
    Corrupted(String),
}

/// Returns the bytes of a snapshot's file.
pub(super) fn encode(snapshot: &KeptSnapshot, compression: Compression) -> io::Result<Vec<u8>> {
    let mut plain = serde_json::to_vec(snapshot)?;
    plain.pop();
    let sum = checksum(&plain);
    plain.extend_from_slice(format!(",\"checksum\":\"{sum}\"}}").as_bytes());
    match compression {
        Compression::Zstd => zstd::bulk::compress(&plain, ZSTD_LEVEL),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(&plain)?;
            encoder.finish()
        }
        Compression::None => Ok(plain),
    }
}

/// Reads a snapshot's file, with suspicion; one of an earlier version is brought up to date.
pub(super) fn decode(bytes: &[u8], compression: Compression) -> Result<KeptSnapshot, Unusable> {
    decode_with(bytes, compression, MIGRATIONS)
}

fn decode_with(
    bytes: &[u8],
    compression: Compression,
    migrations: &[Migration],
) -> Result<KeptSnapshot, Unusable> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let corrupted = |detail: String| Unusable::Corrupted(detail);
    let plain = plain(bytes, compression).map_err(|error| corrupted(error.to_string()))?;
    let version = serde_json::from_slice(&plain).ok().map(|Versioned { version }| version);
    let newest = newest(migrations);
    // What a newer version means by the rest is not ours to judge.
    if let Some(newer) = version.filter(|version| *version > newest) {
        return Err(Unusable::Newer(newer));
    }
    let body = plain.len().checked_sub(CHECKSUM_SUFFIX).map(|at| plain.split_at(at));
    let (body, suffix) = body.ok_or_else(|| corrupted("it is too short".into()))?;
    if suffix != format!(",\"checksum\":\"{}\"}}", checksum(body)).as_bytes() {
        return Err(corrupted("its checksum does not match its contents".into()));
    }
    let read = match version {
        Some(version) if version == newest => serde_json::from_slice(&plain),
        _ => serde_json::from_slice(&plain).and_then(|mut document| {
            migrate(&mut document, migrations).map_err(serde_json::Error::custom)?;
            serde_json::from_value(Value::Object(document))
        }),
    };
    let mut snapshot: KeptSnapshot = read.map_err(|error| corrupted(error.to_string()))?;
    snapshot.extra.remove("checksum");
    Ok(snapshot)
}

fn checksum(body: &[u8]) -> String {
    blake3::hash(body).to_hex()[..16].to_owned()
}

/// Returns the plain bytes of a snapshot's file, whatever they say.
pub(super) fn plain(bytes: &[u8], compression: Compression) -> io::Result<Vec<u8>> {
    let plain = decompress(bytes, compression)?;
    if plain.len() as u64 > MAX_PLAIN {
        let message = format!("it is larger than {MAX_PLAIN} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(plain)
}

/// Returns the plain bytes, and one more than allowed of a bomb.
fn decompress(bytes: &[u8], compression: Compression) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    let limit = MAX_PLAIN + 1;
    match compression {
        Compression::Zstd => zstd::Decoder::new(bytes)?.take(limit).read_to_end(&mut plain)?,
        Compression::Gzip => GzDecoder::new(bytes).take(limit).read_to_end(&mut plain)?,
        Compression::None => bytes.take(limit).read_to_end(&mut plain)?,
    };
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use rekindle_domain::kept_snapshot::SnapshotReason;
    use rekindle_domain::session::SessionState;
    use rekindle_domain::time::Timestamp;

    use super::super::migrations::test_migrations::TEST_MIGRATIONS;
    use super::*;

    fn snapshot() -> KeptSnapshot {
        let mut state = SessionState::empty("sess_1".parse().expect("an id"));
        state.title = "Fix the flaky test".into();
        KeptSnapshot::new(state, SnapshotReason::Request, Timestamp::from_millis(1_000), None)
    }

    #[test]
    fn a_snapshot_comes_back_however_it_is_compressed() {
        for compression in Compression::ALL {
            let bytes = encode(&snapshot(), compression).expect("encoded");
            assert_eq!(decode(&bytes, compression), Ok(snapshot()), "{compression:?}");
            let name = SnapshotName { seq: 148, number: 2 };
            assert_eq!(parse_file_name(&file_name(name, compression)), Some((name, compression)));
        }
        for foreign in ["", "148.json", "148-1.json.tmp", "148-0.json", "x-1.json.zst", "148-1"] {
            assert_eq!(parse_file_name(foreign), None, "{foreign}");
        }
    }

    // I12
    #[test]
    fn any_byte_that_is_changed_or_cut_off_is_noticed() {
        for compression in Compression::ALL {
            let bytes = encode(&snapshot(), compression).expect("encoded");
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 0x04;
                // A header's time or system means nothing; whatever is read must be what was written.
                let read = decode(&changed, compression);
                assert!(read.is_err() || read == Ok(snapshot()), "{compression:?}, byte {at}: {read:?}");
                assert!(decode(&bytes[..at], compression).is_err(), "{compression:?}, cut at {at}");
            }
        }
    }

    // I12: what an earlier version kept is read, with what it knew and we do not; a checksum is of what is in the file.
    #[test]
    fn a_snapshot_of_an_earlier_version_is_brought_up_to_date() {
        let today = KeptSnapshot { version: 3, ..snapshot() };
        let mut old = serde_json::to_value(&today).expect("JSON");
        let reason = old["reason"].as_str().expect("a text").to_uppercase();
        (old["version"], old["cause"], old["mood"]) = (1.into(), reason.into(), "fine".into());
        old.as_object_mut().expect("an object").remove("reason");
        let mut plain = serde_json::to_vec(&old).expect("JSON");
        plain.pop();
        let sum = checksum(&plain);
        plain.extend_from_slice(format!(",\"checksum\":\"{sum}\"}}").as_bytes());
        let read = decode_with(&plain, Compression::None, TEST_MIGRATIONS).expect("read");
        assert_eq!(read.extra.get("mood").and_then(Value::as_str), Some("fine"));
        assert_eq!(KeptSnapshot { extra: serde_json::Map::new(), ..read }, today);
        // What is newer is refused; what is damaged is never migrated.
        assert!(matches!(decode(&plain[..plain.len() - 1], Compression::None), Err(Unusable::Corrupted(_))));
        let newer = encode(&KeptSnapshot { version: 4, ..snapshot() }, Compression::None).expect("encoded");
        assert_eq!(decode_with(&newer, Compression::None, TEST_MIGRATIONS), Err(Unusable::Newer(4)));
        let at = plain.iter().position(|byte| *byte == b'F').expect("the title");
        plain[at] ^= 1;
        assert!(matches!(
            decode_with(&plain, Compression::None, TEST_MIGRATIONS),
            Err(Unusable::Corrupted(_))
        ));
    }

    #[test]
    fn a_newer_version_is_told_from_a_damaged_one_and_a_bomb_is_refused() {
        let text = String::from_utf8(encode(&snapshot(), Compression::None).expect("encoded")).expect("text");
        let newer = text.replacen("\"version\":1", "\"version\":7", 1);
        assert_eq!(decode(newer.as_bytes(), Compression::None), Err(Unusable::Newer(7)));
        let bomb = zstd::bulk::compress(&vec![b' '; MAX_PLAIN as usize + 1], 1).expect("compressed");
        assert!(matches!(decode(&bomb, Compression::Zstd), Err(Unusable::Corrupted(_))));
    }
}
