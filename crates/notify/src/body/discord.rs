//! The body for Discord (webhooks): Markdown in which every character of an agent's stands for itself, and nobody is called.

use serde_json::json;

use super::link::Link;
use crate::text::{Words, defused, fit};

/// What Discord takes as content.
const CONTENT: usize = 2_000;
const TITLE: usize = 300;

/// Previews of links are not shown.
const SUPPRESS_EMBEDS: u32 = 1 << 2;

pub(super) fn body(words: &Words, links: &[Link]) -> Vec<u8> {
    let title = format!("**{}**", escaped(&words.title, TITLE));
    let mut tail = String::new();
    for link in links {
        let line = format!("\n[{}](<{}>)", escaped(&link.label, TITLE), link.url);
        // Half of the room is for what is said.
        if length(&tail) + length(&line) <= CONTENT / 2 {
            tail.push_str(&line);
        }
    }
    let mut content = title;
    if !words.body.is_empty() {
        let room = CONTENT.saturating_sub(length(&content) + length(&tail) + 1);
        content.push('\n');
        content.push_str(&escaped(&words.body, room));
    }
    content.push_str(&tail);
    let body = json!({
        "content": content,
        "username": "Rekindle",
        "allowed_mentions": {"parse": []},
        "flags": SUPPRESS_EMBEDS,
    });
    serde_json::to_vec(&body).expect("texts and numbers are always JSON")
}

fn escaped(text: &str, most: usize) -> String {
    fit(&defused(text), most, length, escape)
}

fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

fn escape(c: char, out: &mut String) {
    if "\\*_~`|<>[]()#-+:@".contains(c) {
        out.push('\\');
    }
    out.push(c);
}
