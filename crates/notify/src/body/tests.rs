//! Bodies as services get them, and what agents may say to get more out of these than text.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::notice::{Notice, Question};
use crate::samples;

const FORMATS: [Format; 4] = [Format::Json, Format::Ntfy, Format::Slack, Format::Discord];

fn body(format: Format, message: &Message, links: &[AnswerLink], include: Include) -> Value {
    let bytes = match format {
        Format::Json => json(message, links, include),
        Format::Ntfy => ntfy(message, links, include, "topic"),
        Format::Slack => slack(message, links, include),
        Format::Discord => discord(message, links, include),
    };
    assert!(bytes.len() < 32 << 10, "{}", bytes.len());
    serde_json::from_slice(&bytes).expect("JSON")
}

/// Returns a notice that says something wherever it can.
fn saying(text: &str) -> Message {
    let words = Some(text.to_owned());
    let question = samples::waiting().question.map(|question| Question { text: text.to_owned(), ..question });
    Message::Notice(Notice {
        title: text.to_owned(),
        reason: words.clone(),
        question,
        last_words: words.clone(),
        agent: words.clone(),
        directory: words,
        ..samples::waiting()
    })
}

/// Returns every text in a body.
fn texts(body: &Value) -> Vec<String> {
    match body {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[test]
fn a_program_is_told_what_may_leave_the_machine() {
    let title = body(Format::Json, &samples::message(), &samples::links(), Include::Title);
    let expected = json!({
        "version": 1,
        "type": "notice",
        "event_id": "sess_01kj0000000000000000000000.12",
        "kind": "waiting",
        "at": "2026-02-21T10:00:00.000Z",
        "session_id": "sess_01kj0000000000000000000000",
        "run_id": "run_01kj0000000000000000000000",
        "task_id": "task_01kj0000000000000000000000",
        "title": "Fix the flaky test",
        "text": "Fix the flaky test: waits for you",
        "body": "",
        "links": [
            {"label": "Allow once", "url": "https://box.example/answer#wait_1.10secret"},
            {"label": "Reject", "url": "https://box.example/answer#wait_1.6secret"},
        ],
    });
    assert_eq!(title, expected);
    let question = body(Format::Json, &samples::message(), &[], Include::Question);
    assert_eq!(question["question"]["text"], "May I run `cargo test`?");
    assert_eq!(
        (&question["reason"], &question["last_words"]),
        (&json!("a permission is asked for"), &Value::Null)
    );
    let full = body(Format::Json, &samples::message(), &[], Include::Full);
    assert_eq!((&full["agent"], &full["directory"]), (&json!("claude"), &json!("/repo/app")));
    let summary = body(Format::Json, &samples::summary(), &[], Include::Title);
    assert_eq!((&summary["type"], &summary["counts"]["failed"]), (&json!("summary"), &json!(2)));
    assert_eq!(
        (&summary["event_id"], &summary["until"]),
        (&json!("sess_2.3"), &json!("2026-02-21T10:01:00.000Z"))
    );
}

#[test]
fn ntfy_gets_a_title_a_message_and_buttons() {
    let asked = body(Format::Ntfy, &samples::message(), &samples::links(), Include::Question);
    let expected = json!({
        "topic": "topic",
        "title": "Fix the flaky test: waits for you",
        "message": "a permission is asked for\n\nMay I run `cargo test`?",
        "tags": ["raising_hand"],
        "priority": 4,
        "actions": [
            {"action": "view", "label": "Allow once", "url": "https://box.example/answer#wait_1.10secret", "clear": true},
            {"action": "view", "label": "Reject", "url": "https://box.example/answer#wait_1.6secret", "clear": true},
        ],
    });
    assert_eq!(asked, expected);
    let only = body(Format::Ntfy, &samples::message(), &samples::links()[..1], Include::Title);
    assert_eq!(only["click"], samples::links()[0].url);
    assert_eq!(
        (&only["title"], &only["message"]),
        (&json!("Rekindle"), &json!("Fix the flaky test: waits for you"))
    );
    let many: Vec<AnswerLink> = samples::links().into_iter().cycle().take(20).collect();
    let many = body(Format::Ntfy, &samples::message(), &many, Include::Title);
    assert_eq!(many["actions"].as_array().map(Vec::len), Some(3));
}

#[test]
fn slack_gets_plain_text_and_links_beside_it() {
    let asked = body(Format::Slack, &saying("<!channel> *x* & @here"), &samples::links(), Include::Title);
    assert_eq!(asked["text"], "&lt;!channel&gt; *x* &amp; @\u{200b}here: waits for you");
    assert_eq!(asked["blocks"][0]["text"]["type"], "plain_text");
    assert_eq!(asked["blocks"][0]["text"]["text"], asked["text"]);
    let links = &asked["blocks"][1]["text"];
    assert_eq!((&links["type"], &links["verbatim"]), (&json!("mrkdwn"), &json!(true)));
    let expected = "<https://box.example/answer#wait_1.10secret|Allow once> · <https://box.example/answer#wait_1.6secret|Reject>";
    assert_eq!(links["text"], expected);
    assert_eq!((&asked["unfurl_links"], &asked["parse"]), (&json!(false), &json!("none")));
}

#[test]
fn discord_gets_text_that_stands_for_itself_and_calls_nobody() {
    let asked =
        body(Format::Discord, &saying("@everyone **x** <@1>"), &samples::links()[..1], Include::Title);
    let content = "**\\@\u{200b}everyone \\*\\*x\\*\\* \\<\\@\u{200b}1\\>: waits for you**\n[Allow once](<https://box.example/answer#wait_1.10secret>)";
    assert_eq!(asked["content"], content.replace(": waits", "\\: waits"));
    assert_eq!(asked["allowed_mentions"], json!({"parse": []}));
    assert_eq!(asked["flags"], 4);
}

#[test]
fn only_links_to_the_web_become_links() {
    let bad = [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ftp://x",
        "https://x/|<!channel>",
        "https://x/ y",
        "https://x/>)",
        "https://x/\u{202e}",
        "//x",
        "",
    ];
    let bad: Vec<AnswerLink> =
        bad.iter().map(|url| AnswerLink { label: "No".to_owned(), url: (*url).to_owned() }).collect();
    let long = AnswerLink { label: "No".to_owned(), url: format!("https://x/{}", "a".repeat(2000)) };
    for format in FORMATS {
        let without = body(format, &samples::message(), &[], Include::Title);
        let with =
            body(format, &samples::message(), &[bad.clone(), vec![long.clone()]].concat(), Include::Title);
        assert_eq!(with, without, "{format:?}");
    }
}

/// What is dangerous somewhere.
const PIECES: &[&str] = &[
    "@everyone",
    "@here",
    "@channel",
    "<!channel>",
    "<!here|x>",
    "<@U123>",
    "<@&99>",
    "<#C1>",
    "<https://evil.example|ok>",
    "[ok](https://evil.example)",
    "https://evil.example",
    "://",
    "@",
    "<",
    ">",
    "|",
    "\\",
    "`",
    "```",
    "*",
    "_",
    "~",
    "&lt;",
    "&",
    "\u{1b}[31m",
    "\u{1b}]8;;http://x\u{7}",
    "\u{9b}2J",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{200d}",
    "\u{feff}",
    "\u{ad}",
    "\0",
    "\r",
    "\n",
    "\u{2028}",
    "\u{e0041}",
    "a",
    "ü",
    "🎉",
    " ",
];

/// Texts made of it.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat()),
        prop::collection::vec(prop::sample::select(PIECES), 80..200).prop_map(|pieces| pieces.concat()),
        ".*",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_dangerous_passes(text in hostile(), label in hostile()) {
        let links = [AnswerLink { label, url: "https://box.example/answer#w.s".to_owned() }];
        for format in FORMATS {
            let told = body(format, &saying(&text), &links, Include::Full);
            for text in texts(&told) {
                for c in text.chars() {
                    let broken = c == '\u{200b}' && matches!(format, Format::Slack | Format::Discord);
                    let plain = !c.is_control() || matches!(c, '\n' | '\t');
                    prop_assert!(plain && !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'), "{c:?}");
                    prop_assert!(c != '\u{200b}' || broken, "hidden");
                }
            }
            match format {
                Format::Slack => slack_is_safe(&told)?,
                Format::Discord => discord_is_safe(&told)?,
                Format::Ntfy => {
                    prop_assert!(told["message"].as_str().is_some_and(|text| !text.is_empty() && text.len() <= 4096));
                    prop_assert!(told["title"].as_str().is_some_and(|text| text.len() <= 250));
                }
                Format::Json => {}
            }
        }
    }
}

/// Calls nobody, links nothing but ours, and is no longer than Slack takes.
fn slack_is_safe(told: &Value) -> Result<(), TestCaseError> {
    let ours = "<https://box.example/answer#w.s|";
    for text in texts(told) {
        let rest = match text.strip_prefix(ours) {
            Some(label) => label.strip_suffix('>').expect("one link"),
            None => &text,
        };
        prop_assert!(!rest.contains(['<', '>']) && !rest.contains("://"), "{text}");
        prop_assert!(!calls_anybody(rest), "{text}");
        prop_assert!(text.encode_utf16().count() <= 3000);
        // An entity is never cut.
        for (at, _) in rest.match_indices('&') {
            prop_assert!(
                ["&amp;", "&lt;", "&gt;"].iter().any(|entity| rest[at..].starts_with(entity)),
                "{text}"
            );
        }
    }
    Ok(())
}

fn discord_is_safe(told: &Value) -> Result<(), TestCaseError> {
    let content = told["content"].as_str().expect("content");
    prop_assert!(content.encode_utf16().count() <= 2000);
    let ours = "](<https://box.example/answer#w.s>)";
    let at = content.rfind(ours).expect("the link is there, whatever is said");
    prop_assert!(!content[..at].contains("://") && !calls_anybody(&content[..at]), "{content}");
    // Beyond the marks of ours everything that means something is escaped.
    let (mut special, mut escaped) = (String::new(), false);
    for c in content.chars() {
        if !escaped && "*_~`|<>[]()@".contains(c) {
            special.push(c);
        }
        escaped = !escaped && c == '\\';
    }
    prop_assert_eq!(special, "****[](<>)");
    Ok(())
}

/// Tells whether a service would find somebody to call.
fn calls_anybody(text: &str) -> bool {
    // Where it is cut nothing follows any more.
    text.split('@').skip(1).any(|rest| !rest.starts_with(['\u{200b}', '…']))
}
