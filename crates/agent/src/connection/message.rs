//! A message while it is being said: pieces in, one record out.

use rekindle_domain::event::{AgentNotice, Event, MessageAgent, MessageThought, Raw};
use rekindle_domain::id::{HolderId, MessageId, RunId};
use serde_json::value::RawValue;

use crate::json::{cut, parse_raw, to_raw};
use crate::message_id::message_id;
use crate::said::{Content, Voice};

/// How much of a summary stands beside its verbatim text.
const MAX_SHOWN: usize = 4 << 10;

/// A message of which not everything was said yet. It is never empty.
#[derive(Debug, Clone)]
pub(super) struct PartialMessage {
    pub(super) voice: Voice,
    /// The agent's name for it.
    pub(super) key: Option<String>,
    /// The journal record where it begins.
    pub(super) first: u64,
    pub(super) id: MessageId,
    blocks: Vec<Block>,
    /// Size of its text so far.
    pub(super) len: usize,
}

#[derive(Debug, Clone)]
enum Block {
    Text(String),
    Other(Box<RawValue>),
}

impl PartialMessage {
    pub(super) fn new(voice: Voice, key: Option<String>, first: u64, holder: HolderId) -> PartialMessage {
        PartialMessage { voice, key, first, id: message_id(holder, first), blocks: Vec::new(), len: 0 }
    }

    pub(super) fn push(&mut self, content: &Content<'_>) {
        match (content, self.blocks.last_mut()) {
            (Content::Text(text), Some(Block::Text(before))) => before.push_str(text),
            (Content::Text(text), _) => self.blocks.push(Block::Text(text.as_ref().to_owned())),
            (Content::Block(raw), _) => self.blocks.push(Block::Other((*raw).to_owned())),
        }
        self.len += size(content);
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.len = 0;
    }

    /// Returns its text so far.
    pub(super) fn text(&self) -> String {
        let text = |block: &Block| match block {
            Block::Text(text) => Some(text.clone()),
            Block::Other(_) => None,
        };
        self.blocks.iter().filter_map(text).collect()
    }

    /// Returns its record.
    pub(super) fn event(self, run_id: Option<RunId>, partial: bool) -> Option<Event<'static>> {
        let message_id = self.id;
        Some(match self.voice {
            Voice::User => return None,
            Voice::Agent => MessageAgent { run_id, message_id, content: self.content(), partial }.into(),
            Voice::Thought => {
                MessageThought(MessageAgent { run_id, message_id, content: self.content(), partial }).into()
            }
            Voice::Summary => {
                let text = cut(&self.text(), MAX_SHOWN).into_owned();
                let raw = Some(self.content());
                AgentNotice { run_id, what: SUMMARY.into(), text: Some(text.into()), raw }.into()
            }
        })
    }

    /// Plain text is a string; with anything else in it, it is a list of blocks.
    fn content(&self) -> Raw<'static> {
        if let [Block::Text(text)] = self.blocks.as_slice() {
            return Raw::text(text);
        }
        let block = |block: &Block| match block {
            Block::Text(text) => format!(r#"{{"type":"text","text":{}}}"#, Raw::text(text).as_json()),
            Block::Other(raw) => to_raw(raw).as_json().to_owned(),
        };
        let blocks = self.blocks.iter().map(block).collect::<Vec<_>>().join(",");
        parse_raw(&format!("[{blocks}]")).unwrap_or_else(|| Raw::text(&self.text()))
    }
}

/// What a notice is called that holds the summary of a conversation.
pub(super) const SUMMARY: &str = "compaction_summary";

/// Returns how much a piece adds to a message.
pub(super) fn size(content: &Content<'_>) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Block(raw) => raw.get().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stable_distinct_and_in_order() {
        let holder: HolderId = "h_0123456789abcdef0123456789abcdef".parse().expect("an id");
        let other: HolderId = "h_0123456789abcdef0123456789abcdee".parse().expect("an id");
        insta::assert_snapshot!(message_id(holder, 5), @"msg_079esmh3nws7weq3gxskqb7scd");
        assert!(message_id(holder, 5) < message_id(holder, 6));
        assert_ne!(message_id(holder, 5), message_id(other, 5));
    }

    #[test]
    fn text_is_joined_and_blocks_are_kept() {
        let holder: HolderId = "h_1".parse().expect("an id");
        let mut half = PartialMessage::new(Voice::Agent, None, 1, holder);
        half.push(&Content::Text("a\"".into()));
        half.push(&Content::Text("b".into()));
        assert_eq!(half.content().as_json(), r#""a\"b""#);
        let image: &RawValue = serde_json::from_str(r#"{"type":"image","data":"…"}"#).expect("JSON");
        half.push(&Content::Block(image));
        half.push(&Content::Text("c".into()));
        let json =
            r#"[{"type":"text","text":"a\"b"},{"type":"image","data":"…"},{"type":"text","text":"c"}]"#;
        assert_eq!((half.content().as_json(), half.text().as_str()), (json, "a\"bc"));
    }
}
