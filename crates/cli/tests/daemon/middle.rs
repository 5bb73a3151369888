//! Coming in the middle of a message: what was said before is heard too.

use serde_json::{Value, json};

use crate::lab::{Events, Lab};

/// Hears until there are words, and returns them with where they begin.
fn words(events: &mut Events) -> (u64, String) {
    loop {
        let heard = events.next().expect("an event");
        if heard.event == "delta" {
            let text = heard.data["text"].as_str().expect("a text").to_owned();
            return (heard.data["at"].as_u64().expect("a number"), text);
        }
    }
}

// I4: a follower has the whole text, whenever it came and whoever supervised.
#[test]
fn whoever_comes_in_the_middle_of_a_message_hears_it_from_its_beginning() {
    let mut lab = Lab::new();
    let id = lab.run("say one\nbarrier here\nsay two");
    lab.reach("here");
    for life in 0..2 {
        let mut events = lab.follow(&id, None);
        let (at, text) = words(&mut events);
        assert_eq!(at, 0, "in life {life}");
        assert!(text.starts_with("one"), "{text:?} in life {life}");
        let mut second = lab.follow(&id, None);
        assert_eq!(words(&mut second), (0, text));
        if life == 0 {
            lab.kill();
            lab.start();
        }
    }
    let mut events = lab.follow(&id, None);
    let (_, before) = words(&mut events);
    let mut heard = before;
    // Whoever comes now disturbs nobody.
    let mut third = lab.follow(&id, None);
    words(&mut third);
    lab.pass("here");
    loop {
        let next = events.next().expect("an event");
        match next.event.as_str() {
            "delta" => {
                let at = next.data["at"].as_u64().expect("a number") as usize;
                let text = next.data["text"].as_str().expect("a text");
                assert_eq!(at, heard.len(), "nothing is missing, and nothing comes twice");
                heard.push_str(text);
            }
            "message.agent" => {
                assert_eq!(next.data["content"], json!(heard));
                break;
            }
            _ => {}
        }
    }
}

/// Hears until so many turns are over, and returns every record with its id.
fn records(events: &mut Events, turns: usize) -> Vec<(String, Value)> {
    let (mut records, mut over) = (Vec::new(), 0);
    while over < turns {
        let heard = events.next().expect("an event");
        over += usize::from(heard.event == "run.completed");
        records.extend(heard.id.map(|id| (id, heard.data)));
    }
    records
}

// I2, I4: whoever of many followers reads a record from the log, each of them hears it once and in its place.
#[test]
fn all_who_follow_hear_every_record_whenever_they_came() {
    let lab = Lab::new();
    let id = lab.run("say one\ntool read a file\nbarrier here\nsay two");
    lab.reach("here");
    let mut early = [(); 3].map(|()| lab.follow(&id, None));
    let begun = early.each_mut().map(|events| events.next().expect("the first record").id);
    lab.pass("here");
    lab.wait_end(&id);
    let mut between = lab.follow(&id, begun[0].as_deref());
    lab.post(&format!("/api/sessions/{id}/messages"), &json!({"content": "tool edit a file\nsay three"}));
    let mut late = lab.follow(&id, None);
    let whole = records(&mut late, 2);
    let lines: Vec<_> = whole.iter().map(|(_, line)| line.clone()).collect();
    assert_eq!(lines, lab.log(&id)[..lines.len()], "as the log has it");
    for events in early.iter_mut().chain([&mut between]) {
        assert_eq!(records(events, 2), whole[1..]);
    }
}
