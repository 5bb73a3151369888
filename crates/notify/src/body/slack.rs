//! The body for Slack (incoming webhooks): what is said stands in blocks of plain text, which has no markup, and links in one with it.

use serde_json::json;

use super::link::Link;
use crate::text::{Words, defused, fit};

/// What Slack takes: of a block of text, and of the text that a notification shows.
const SECTION: usize = 2_900;
const TITLE: usize = 300;

pub(super) fn body(words: &Words, links: &[Link]) -> Vec<u8> {
    let title = escaped(&words.title, TITLE);
    let section =
        |text: &str| json!({"type": "section", "text": {"type": "plain_text", "text": text, "emoji": false}});
    let mut blocks = vec![section(&title)];
    if !words.body.is_empty() {
        blocks.push(section(&escaped(&words.body, SECTION)));
    }
    if let Some(links) = link_line(links) {
        // Verbatim: nothing but what is written as a link becomes one.
        blocks.push(json!({"type": "section", "text": {"type": "mrkdwn", "text": links, "verbatim": true}}));
    }
    let body = json!({
        "text": title,
        "mrkdwn": false,
        "link_names": false,
        "parse": "none",
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": blocks,
    });
    serde_json::to_vec(&body).expect("texts and numbers are always JSON")
}

/// Returns as many links as fit.
fn link_line(links: &[Link]) -> Option<String> {
    let mut line = String::new();
    for link in links {
        let one = format!("<{}|{}>", fit(&link.url, usize::MAX, length, escape), escaped_label(&link.label));
        if length(&line) + 3 + length(&one) > SECTION {
            break;
        }
        if !line.is_empty() {
            line.push_str(" · ");
        }
        line.push_str(&one);
    }
    (!line.is_empty()).then_some(line)
}

/// Returns what is said, which calls nobody and links nothing.
fn escaped(text: &str, most: usize) -> String {
    fit(&defused(text), most, length, escape)
}

/// Labels stand among markup, which cannot be escaped: characters that mean something there give way to those that look like them.
fn escaped_label(label: &str) -> String {
    let plain: String = label
        .chars()
        .map(|c| match c {
            '*' => '∗',
            '_' => '＿',
            '~' => '∼',
            '`' => 'ˋ',
            '|' => '¦',
            c => c,
        })
        .collect();
    escaped(&plain, TITLE)
}

fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

fn escape(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        c => out.push(c),
    }
}
