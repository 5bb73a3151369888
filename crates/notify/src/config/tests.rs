//! The section as people write it: what each key means, and what is said about a wrong one.

use std::collections::BTreeSet;

use super::*;
use crate::body::Format;
use crate::notice::NoticeKind;
use crate::rules::{Rules, When};
use crate::secret::SecretSource;
use crate::text::Include;

fn read(text: &str) -> Result<NotifyConfig, toml::de::Error> {
    toml::from_str(text)
}

fn sink(text: &str) -> SinkConfig {
    let config = read(&format!("[sinks.phone]\n{text}")).expect(text);
    config.sinks["phone"].clone()
}

#[test]
fn what_is_not_said_is_as_usual() {
    let usual = read("").expect("a section");
    assert_eq!(usual, NotifyConfig::default());
    assert_eq!((usual.settle, usual.progress_every), (SETTLE, PROGRESS));
    let sink = sink("type = \"desktop\"");
    assert_eq!(sink.rules, Rules::default());
    assert_eq!((sink.include, sink.rate.map(|rate| rate.get())), (Include::Title, Some(30)));
}

#[test]
fn every_key_is_read() {
    let config = read(
        "base_url = \"https://box.example/rekindle/\"\nsettle = \"0s\"\nquiet_hours = \"22:00-07:00\"\nprogress_every = \"1h\"",
    )
    .expect("a section");
    assert_eq!(config.base_url.expect("an address").as_str(), "https://box.example/rekindle");
    assert_eq!((config.settle, config.progress_every.as_secs()), (Duration::ZERO, 3600));
    assert_eq!(config.quiet_hours.expect("hours").to_string(), "22:00-07:00");

    let every = sink(
        "type = \"webhook\"\nurl = \"env:NTFY_URL\"\nformat = \"ntfy\"\nsecret = \"file:/keys/ntfy\"\n\
         headers = { Authorization = \"env:NTFY_TOKEN\", X-Team = \"night\" }\nallow_private = true\nca_file = \"/ca.pem\"\n\
         events = [\"waiting\", \"progress\"]\nurgent = [\"waiting\"]\ninclude = \"full\"\nwhen = \"always\"\nrate = \"off\"\n\
         agents = [\"claude\"]\ndirectories = [\"/work\"]\nquiet_hours = \"off\"",
    );
    let expected = WebhookConfig {
        url: SecretSource::Variable("NTFY_URL".to_owned()),
        format: Format::Ntfy,
        secret: Some(SecretSource::File("/keys/ntfy".into())),
        headers: [
            ("Authorization".to_owned(), SecretSource::Variable("NTFY_TOKEN".to_owned())),
            ("X-Team".to_owned(), SecretSource::Text("night".to_owned())),
        ]
        .into(),
        allow_private: true,
        ca_file: Some("/ca.pem".into()),
    };
    assert_eq!(every.kind, SinkType::Webhook(expected));
    assert_eq!((every.include, every.rate, every.quiet_hours), (Include::Full, None, Some(None)));
    assert_eq!(every.rules.events, BTreeSet::from([NoticeKind::Waiting, NoticeKind::Progress]));
    assert_eq!(every.rules.when, When::Always);
    let hook = sink("type = \"command\"\ncommand = [\"tell\", \"--loud\"]\nenv = [\"TOKEN\"]\nrate = 5");
    let (program, arguments, env) = ("tell".to_owned(), vec!["--loud".to_owned()], vec!["TOKEN".to_owned()]);
    assert_eq!(hook.kind, SinkType::Command(CommandConfig { program, arguments, env }));
    assert_eq!(hook.rate.map(|rate| rate.get()), Some(5));
    assert_eq!(sink("type = \"bell\"").kind, SinkType::Bell);
}

#[test]
fn what_is_wrong_is_named_and_never_repeated_if_it_is_secret() {
    let webhook = "type = \"webhook\"\nurl = \"https://hooks.example/hunter2\"\n";
    let with = |more: &str| format!("{webhook}{more}");
    let cases = [
        ("type = \"webhook\"".to_owned(), "url is missing"),
        ("type = \"webhook\"\nurl = \"http://hooks.example/hunter2\"".to_owned(), "url uses http"),
        ("type = \"webhook\"\nurl = \"hunter2\"".to_owned(), "url begins with neither"),
        ("type = \"webhook\"\nurl = \"env:\"".to_owned(), "url has env: without"),
        ("type = \"webhook\"\nurl = \"https://ntfy.sh\"\nformat = \"ntfy\"".to_owned(), "url has no topic"),
        ("url = \"https://hooks.example/hunter2\"".to_owned(), "type"),
        ("type = \"pigeon\"".to_owned(), "command"),
        (with("format = \"teams\""), "discord"),
        (with("secret = \"hunter2\""), "a secret must not be written into"),
        (with("secret = \"file:hunter2\""), "secret has file: without"),
        (with("headers = { Host = \"x\" }"), "headers has Host"),
        (with("headers = { X-Rekindle-Signature = \"x\" }"), "headers has X-Rekindle-Signature"),
        (with("headers = { \"a b\" = \"x\" }"), "not the name of a header"),
        (with("headers = { X-A = \"hunter2\\nX-B: y\" }"), "the header X-A"),
        (with("ca_file = \"ca.pem\""), "ca_file is not an absolute path"),
        (with("command = [\"x\"]"), "command belongs to sinks with type"),
        (with("event = [\"waiting\"]"), "event"),
        (with("events = []"), "events is empty"),
        (with("events = [\"waitng\"]"), "waiting"),
        (with("urgent = [\"progress\"]"), "urgent has progress"),
        (with("include = \"all\""), "question"),
        (with("when = \"never\""), "always"),
        (with("rate = 0"), "how many messages an hour"),
        (with("rate = \"many\""), "how many messages an hour"),
        (with("quiet_hours = \"night\""), "not a range of quiet hours"),
        (with("directories = [\"work\"]"), "directories has"),
        ("type = \"command\"".to_owned(), "command is missing"),
        ("type = \"command\"\ncommand = [\"bin/tell\"]".to_owned(), "not an absolute path"),
        ("type = \"command\"\ncommand = [\"tell\"]\nenv = [\"TOKEN=hunter2\"]".to_owned(), "env has"),
        (
            "type = \"command\"\ncommand = [\"tell\"]\nurl = \"https://x\"".to_owned(),
            "url belongs to sinks with type",
        ),
        ("type = \"desktop\"\nallow_private = true".to_owned(), "allow_private belongs"),
    ];
    for (written, words) in cases {
        let error = read(&format!("[sinks.phone]\n{written}")).expect_err(&written);
        let said = error.message();
        assert!(said.contains(words), "{written}: {said}");
        assert!(!said.contains("hunter2"), "{written}: {said}");
    }
    for (written, words) in [
        ("settle = \"1h\"", "settle must be at most 10m"),
        ("settle = 2", "string"),
        ("progress_every = \"1s\"", "progress_every must be at least 1m"),
        ("quiet_hours = \"22-7\"", "quiet hours"),
        ("base_url = \"http://box.example\"", "base_url"),
        ("sink = {}", "sink"),
        ("[sinks.Phone]\ntype = \"bell\"", "not a valid name for a sink"),
        ("[sinks.\"\"]\ntype = \"bell\"", "not a valid name for a sink"),
    ] {
        let said = read(written).expect_err(written).message().to_owned();
        assert!(said.contains(words), "{written}: {said}");
    }
    let many: String = (0..=MOST_SINKS).map(|n| format!("[sinks.s{n}]\ntype = \"bell\"\n")).collect();
    assert!(read(&many).is_err());
}

#[test]
fn no_secret_is_shown() {
    let config = read(
        "[sinks.phone]\ntype = \"webhook\"\nurl = \"https://hooks.example/hunter2\"\nheaders = { Authorization = \"Bearer hunter2\" }",
    )
    .expect("a section");
    let shown = format!("{config:?} {config:#?}");
    assert!(!shown.contains("hunter2") && shown.contains("Authorization"), "{shown}");
}
