//! Transcripts: where agents keep what they wrote down of a session themselves. A place is a pattern of path segments below a directory
//! of the user, so that a path of elsewhere is either one that the agent itself would have, or refused. Nothing here reads a file.

/// Longest name that stands for a directory as it is; a longer one is cut there, and ends with a dash and a hash of its path.
const MAX_DIRECTORY_NAME: usize = 200;

/// Longest hash of a path: 32 bits without their sign, to the base 36.
const MAX_HASH: usize = 6;

/// Longest id of an agent's session, and longest name of anything else.
const MAX_NAME: usize = 128;

/// Where an agent keeps transcripts.
#[derive(Debug, Clone, Copy)]
pub struct TranscriptPlace {
    /// The variable that names the agent's directory, if one does.
    pub variable: Option<&'static str>,
    /// The directory below the user's, unless the variable names another.
    pub directory: &'static str,
    /// The segments of a path below that.
    pub segments: &'static [Segment],
}

/// A segment of the path of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// Always the same.
    Fixed(&'static str),
    /// So many digits: a year, a month, a day.
    Digits(usize),
    /// The working directory, with - for whatever is no letter and no digit, and a hash at its end if it is long.
    WorkingDir,
    /// What the agent calls the working directory, which nobody else can tell.
    Project,
    /// The file: what it begins with; the time, if it is in the name; so many characters of the id of the agent's session; `.jsonl`.
    File {
        /// What it begins with.
        before: &'static str,
        /// The time stands before the id.
        has_time: bool,
        /// Most characters of the id.
        id_chars: usize,
    },
}

impl Segment {
    /// Tells whether a name fits.
    pub fn fits(&self, name: &str, id: &str) -> bool {
        match self {
            Segment::Fixed(fixed) => name == *fixed,
            Segment::Digits(count) => name.len() == *count && name.bytes().all(|byte| byte.is_ascii_digit()),
            Segment::WorkingDir => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                (1..=MAX_DIRECTORY_NAME + 1 + MAX_HASH).contains(&name.len()) && name.bytes().all(is_plain)
            }
            Segment::Project => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
                let is_short = (1..=MAX_NAME).contains(&name.len());
                is_short && !name.starts_with('.') && name.bytes().all(is_plain)
            }
            Segment::File { before, has_time, id_chars } => {
                let behind = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(".jsonl"));
                // Ids are plain characters of one byte each.
                let time = behind.and_then(|rest| rest.strip_suffix(id.get(..*id_chars).unwrap_or(id)));
                match time {
                    Some(time) if *has_time => {
                        let time = time.strip_suffix('-').unwrap_or_default();
                        let is_time = |byte: u8| byte.is_ascii_digit() || b"T-".contains(&byte);
                        (1..=MAX_NAME).contains(&time.len()) && time.bytes().all(is_time)
                    }
                    Some(time) => time.is_empty(),
                    None => false,
                }
            }
        }
    }
}

impl TranscriptPlace {
    /// Tells whether a path is one that the agent would have for its session of this id.
    pub fn fits(&self, path: &str, id: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        is_plain_id(id)
            && names.len() == self.segments.len()
            && self.segments.iter().zip(names).all(|(segment, name)| segment.fits(name, id))
    }

    /// Returns the path that a transcript has for another working directory; none if that cannot be told.
    pub fn moved(&self, path: &str, id: &str, (from, to): (&str, &str)) -> Option<String> {
        if !self.fits(path, id) {
            return None;
        }
        let mut moved = Vec::new();
        for (segment, name) in self.segments.iter().zip(path.split('/')) {
            moved.push(match segment {
                Segment::WorkingDir => name_of_directory(to),
                Segment::Project if from != to => return None,
                _ => name.to_owned(),
            });
        }
        Some(moved.join("/"))
    }
}

/// Tells whether the id of an agent's session can be part of a path.
pub fn is_plain_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (8..=MAX_NAME).contains(&id.len()) && id.bytes().all(is_plain)
}

/// Returns what stands for a working directory: of each UTF-16 unit its letter or digit, or a dash.
fn name_of_directory(path: &str) -> String {
    let plain = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte),
        _ => '-',
    };
    let mut name: String = path.encode_utf16().map(plain).collect();
    if name.len() > MAX_DIRECTORY_NAME {
        name.truncate(MAX_DIRECTORY_NAME);
        name.push('-');
        name.push_str(&path_hash(path));
    }
    name
}

/// Returns the hash of a path as agents written in JavaScript compute it: times 31 and plus the next UTF-16 unit, in 32 bits; its
/// amount to the base 36.
fn path_hash(path: &str) -> String {
    let hash = path.encode_utf16().fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(unit.into()));
    let (mut rest, mut digits) = (hash.unsigned_abs(), Vec::new());
    loop {
        digits.extend(char::from_digit(rest % 36, 36));
        rest /= 36;
        if rest == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::by_id;
    use super::*;

    const ID: &str = "0f8c2a44-7d1e-4f7b-9a55-3f1f0e6a2b11";

    fn place(agent: &str) -> TranscriptPlace {
        by_id(agent).and_then(|agent| agent.transcript).expect("its place is known")
    }

    #[test]
    fn paths_are_those_that_the_agent_itself_has() {
        for (agent, path, fits) in [
            ("claude", "projects/-home-me-work/ID.jsonl", true),
            ("claude", "projects/-home-me-work/other.jsonl", false),
            ("claude", "projects/../ID.jsonl", false),
            ("claude", "projects//ID.jsonl", false),
            ("claude", "/projects/-home-me-work/ID.jsonl", false),
            ("claude", "projects/-home-me-work/ID.jsonl/", false),
            ("claude", "projects/-home-me-work/IDID.jsonl", false),
            ("claude", "settings.json", false),
            ("codex", "sessions/2026/02/21/rollout-2026-02-21T10-15-30-ID.jsonl", true),
            ("codex", "sessions/2026/02/21/rollout-ID.jsonl", false),
            ("codex", "sessions/2026/2/21/rollout-2026-02-21T10-15-30-ID.jsonl", false),
            ("codex", "sessions/2026/02/21/rollout-2026/../x-ID.jsonl", false),
            ("gemini", "tmp/my-project/chats/session-2026-02-21T10-15-0f8c2a44.jsonl", true),
            ("gemini", "tmp/../chats/session-2026-02-21T10-15-0f8c2a44.jsonl", false),
            ("gemini", "tmp/my-project/chats/session-2026-02-21T10-15-ffffffff.jsonl", false),
        ] {
            assert_eq!(place(agent).fits(&path.replace("ID", ID), ID), fits, "{agent}: {path}");
        }
        assert!(!place("claude").fits("projects/x/../../../y.jsonl", "../../../y"), "an id is no path");
        assert!(!place("claude").fits("projects/x/short.jsonl", "short"));
    }

    #[test]
    fn a_transcript_moves_with_the_working_directory_where_that_can_be_told() {
        let moved = |agent: &str, path: &str, to: &str| {
            place(agent).moved(&path.replace("ID", ID), ID, ("/home/me/work", to))
        };
        let claude = "projects/-home-me-work/ID.jsonl";
        let expected = format!("projects/-srv-a-b-c/{ID}.jsonl");
        assert_eq!(moved("claude", claude, "/srv/a b.c"), Some(expected));
        let cut = format!("projects/{}-HASH/{ID}.jsonl", "-long".repeat(40));
        let long = moved("claude", claude, &"/long".repeat(50)).expect("cut");
        assert_eq!(long, cut.replace("HASH", "9lqleo"));
        assert!(place("claude").fits(&long, ID), "{long}");
        // A character beyond the first 65,536 is two units.
        assert_eq!(moved("claude", claude, "/a😀b"), Some(format!("projects/-a--b/{ID}.jsonl")));
        let codex = "sessions/2026/02/21/rollout-2026-02-21T10-15-30-ID.jsonl";
        assert_eq!(moved("codex", codex, "/elsewhere"), Some(codex.replace("ID", ID)));
        let gemini = "tmp/p/chats/session-2026-02-21T10-15-0f8c2a44.jsonl";
        assert_eq!(moved("gemini", gemini, "/elsewhere"), None);
        assert_eq!(moved("gemini", gemini, "/home/me/work"), Some(gemini.into()));
        assert_eq!(moved("claude", "projects/../ID.jsonl", "/srv"), None);
    }
}
