//! The body for programs: what a notice says as far as it may leave the machine, with the words for people beside it.

use std::collections::BTreeMap;

use rekindle_domain::time::Timestamp;
use serde::Serialize;

use super::link::Link;
use crate::notice::{Message, Notice, NoticeKind};
use crate::text::{Include, Words, included, words};

/// The version of this shape; it changes when something is taken away or means something else, not when something is added.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Body<'a> {
    version: u32,
    #[serde(flatten)]
    message: Told<'a>,
    /// The words for people: one line, and the rest.
    text: &'a str,
    body: &'a str,
    links: Vec<BodyLink<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Told<'a> {
    Notice(&'a Notice),
    Summary { event_id: &'a str, counts: &'a BTreeMap<NoticeKind, u64>, since: Timestamp, until: Timestamp },
}

#[derive(Serialize)]
struct BodyLink<'a> {
    label: &'a str,
    url: &'a str,
}

pub(super) fn body(message: &Message, links: &[Link], include: Include) -> Vec<u8> {
    let Words { title, body } = words(message, include);
    let notice;
    let told = match message {
        Message::Notice(whole) => {
            notice = included(whole, include);
            Told::Notice(&notice)
        }
        Message::Summary(summary) => Told::Summary {
            event_id: &summary.event_id,
            counts: &summary.counts,
            since: summary.since,
            until: summary.until,
        },
    };
    let links = links.iter().map(|link| BodyLink { label: &link.label, url: &link.url }).collect();
    let body = Body { version: VERSION, message: told, text: &title, body: &body, links };
    serde_json::to_vec(&body).expect("texts and numbers are always JSON")
}
