//! The body for ntfy (JSON publishing, <https://docs.ntfy.sh/publish/#publish-as-json>): plain text, and answers as buttons.

use serde_json::json;

use super::link::Link;
use crate::notice::{Message, NoticeKind};
use crate::text::{Words, fit};

/// ntfy makes a file of a message of more than 4096 bytes, and takes three buttons.
const MESSAGE: usize = 3_800;
const TITLE: usize = 240;
const BUTTONS: usize = 3;

pub(super) fn body(message: &Message, words: &Words, links: &[Link], topic: &str) -> Vec<u8> {
    let plain = |text: &str, most| fit(text, most, str::len, |c, out| out.push(c));
    let (title, text) = match words.body.as_str() {
        // Without a message ntfy would say "triggered".
        "" => ("Rekindle", words.title.as_str()),
        body => (words.title.as_str(), body),
    };
    let (tag, priority) = manner(message);
    let button = |link: &Link| json!({"action": "view", "label": link.label, "url": link.url, "clear": true});
    let mut body = json!({
        "topic": topic,
        "title": plain(title, TITLE),
        "message": plain(text, MESSAGE),
        "tags": [tag],
        "priority": priority,
        "actions": links.iter().take(BUTTONS).map(button).collect::<Vec<_>>(),
    });
    // A tap answers nothing by itself, but with several answers it could only lead to one of them.
    if let [only] = links {
        body["click"] = json!(only.url);
    }
    serde_json::to_vec(&body).expect("texts and numbers are always JSON")
}

/// Returns the emoji of a kind, and how loud it is: 3 is as usual, 4 rings longer, 2 does not ring.
fn manner(message: &Message) -> (&'static str, u8) {
    let Message::Notice(notice) = message else { return ("scroll", 3) };
    match notice.kind {
        NoticeKind::Waiting => ("raising_hand", 4),
        NoticeKind::Failed => ("x", 4),
        NoticeKind::Completed => ("white_check_mark", 3),
        NoticeKind::Interrupted => ("zap", 3),
        NoticeKind::Stalled => ("hourglass", 3),
        NoticeKind::Budget => ("moneybag", 3),
        NoticeKind::QueueEmpty => ("checkered_flag", 3),
        NoticeKind::Progress => ("gear", 2),
        NoticeKind::Resumed => ("arrow_forward", 2),
    }
}
