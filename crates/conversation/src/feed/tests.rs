//! Records become pieces and facts, once each, whatever an agent writes into them.

use std::sync::Arc;

use rekindle_display::live::Piece;
use rekindle_store::blobs::Blobs;
use rekindle_store::disk::RealDisk;
use rekindle_store::layout::Layout;

use super::*;

fn feed(after: u64) -> Feed {
    Feed::new(Payloads::Here(Blobs::reading(Arc::new(RealDisk), Layout::new("/nowhere"))), after)
}

fn heard(seq: u64, fields: &str) -> Heard {
    Heard::Record(format!(r#"{{"seq":{seq},"ts":"2026-02-21T10:01:25.000Z",{fields}}}"#))
}

fn the_facts(news: Vec<News>) -> Vec<Fact> {
    let fact = |news| if let News::Fact(fact) = news { Some(fact) } else { None };
    news.into_iter().filter_map(fact).collect()
}

#[test]
fn a_record_is_taken_once() {
    let mut feed = feed(4);
    let said = r#""kind":"message.agent","message_id":"msg_1","content":"x""#;
    assert!(feed.hear(heard(4, said)).is_empty(), "it begins behind this one");
    assert!(!feed.hear(heard(5, said)).is_empty());
    assert!(feed.hear(heard(5, said)).is_empty());
    assert_eq!(feed.seq(), 5);
    feed.hear(Heard::Reset { last_seq: 3 });
    assert!(!feed.hear(heard(4, said)).is_empty(), "what was lost in a crash is another record now");
}

#[test]
fn a_queued_message_is_not_shown_before_its_turn() {
    let queued = r#""kind":"message.user","message_id":"msg_1","content":"a\u001b[2Jb","queued":true"#;
    let news = feed(0).hear(heard(1, queued));
    assert_eq!(the_facts(news), [Fact::Queued { id: "msg_1".into(), text: "ab".into() }]);
    let direct = r#""kind":"message.user","message_id":"msg_1","content":"ab""#;
    let news = feed(0).hear(heard(1, direct));
    assert!(matches!(&news[..], [News::Piece(Piece::Line((_, text)))] if text == "> ab"), "{news:?}");
}

#[test]
fn a_fork_leaves_the_queue_behind() {
    let created = r#""kind":"session.created","title":"t","working_dir":"/w","provider":{"type":"acp"},"options":{},"env_names":[]"#;
    assert_eq!(the_facts(feed(0).hear(heard(1, created))), []);
    let from = r#","forked_from":{"session_id":"sess_1","seq":4,"h":"0123456789abcdef"}"#;
    assert_eq!(the_facts(feed(0).hear(heard(5, &format!("{created}{from}")))), [Fact::QueueLeft]);
}

#[test]
fn what_an_agent_offers_is_read_clean() {
    let commands = r#""kind":"agent.notice","what":"available_commands","raw":{"availableCommands":[
        {"name":"re\u001b[2Jview","description":"looks"},{"description":"nameless"},7]}"#;
    let command = AgentCommand { name: "review".into(), description: "looks".into() };
    assert_eq!(the_facts(feed(0).hear(heard(1, commands))), [Fact::Commands(vec![command])]);
    let options = r#""kind":"agent.notice","what":"session_options","raw":{"modes":{"currentModeId":"ask",
        "availableModes":[{"id":"ask","name":"Ask"},{"id":"yolo","name":"Never\u001b[2J"}]}}"#;
    let facts = the_facts(feed(0).hear(heard(1, options)));
    let [Fact::Offers { modes, models }] = &facts[..] else { panic!("{facts:?}") };
    assert!(models.is_empty() && modes[0].current && modes[1].name == "Never", "{modes:?}");
    let rubbish = r#""kind":"agent.notice","what":"available_commands","raw":{"availableCommands":"x"}"#;
    assert_eq!(the_facts(feed(0).hear(heard(1, rubbish))), []);
}

#[test]
fn a_cancel_by_a_person_clears_the_queue_and_another_does_not() {
    for (why, expected) in [("user", vec![Fact::QueueCleared]), ("new_message", vec![])] {
        let cancel = format!(r#""kind":"run.cancel_requested","run_id":"run_1","why":"{why}""#);
        assert_eq!(the_facts(feed(0).hear(heard(1, &cancel))), expected, "{why}");
    }
}

#[test]
fn an_agent_is_being_started_until_it_is_ready_or_gone() {
    let of = |fields: &str| the_facts(feed(0).hear(heard(1, fields)));
    let launching = r#""kind":"agent.launching","holder_id":"h_1","argv":["agent"]"#;
    assert_eq!(of(launching), [Fact::Starting(true)]);
    let prompt = r#""kind":"input.queued","run_id":"run_1","holder_id":"h_1","input_seq":1,"what":"prompt","line":"x","sha256":"""#;
    let exited = r#""kind":"agent.exited","holder_id":"h_1","code":1,"signal":null"#;
    for over in [r#""kind":"agent.ready","holder_id":"h_1""#, prompt, exited] {
        assert_eq!(of(over), [Fact::Starting(false)], "{over}");
    }
    assert_eq!(of(&prompt.replace("prompt", "setup")), [], "it is asked who it is, and has not answered");
}
