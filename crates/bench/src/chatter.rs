//! An agent that speaks the Agent Client Protocol and nothing else: it says pieces of one length, each with its number
//! and the time it was written, as fast as its prompt asks for. Also how such a prompt is written and a piece is read.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use crate::actors::now;

/// How long each piece is: about what agents say at once.
pub(crate) const PIECE: usize = 40;

/// Pieces of a message: some paragraphs. A message that does not end stays in memory until it does.
const MESSAGE: usize = 200;

/// Digits of the time and of the number, each with a space behind it.
const TIME: usize = 20;
const NUMBER: usize = 10;

/// A prompt that is never answered.
pub(crate) const HOLD: &str = "hold";

/// So many pieces that nobody hears the last one.
pub(crate) const ENDLESS: usize = 1_000_000_000;

/// A prompt that is answered with so many pieces, one every so often.
pub(crate) fn say(count: usize, every: Duration) -> String {
    format!("say {count} {}", every.as_micros())
}

/// Returns the pieces of what was said: the time of each, and its number.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = anyhow::Result<(u64, usize)>> {
    text.as_bytes().chunks(PIECE).map(|piece| {
        let number = |digits: Option<&[u8]>| -> Option<u64> {
            digits.and_then(|digits| std::str::from_utf8(digits).ok())?.parse().ok()
        };
        ensure!(piece.len() == PIECE, "a piece was cut: {} bytes", piece.len());
        let time = number(piece.get(..TIME)).context("a piece has no time")?;
        let place = number(piece.get(TIME + 1..TIME + 1 + NUMBER)).context("a piece has no number")?;
        Ok((time, place as usize))
    })
}

fn piece(number: usize) -> String {
    format!("{:0TIME$} {number:0NUMBER$} {:x<2$}", now(), "", PIECE - TIME - NUMBER - 2)
}

/// Answers requests until the input ends.
pub(crate) fn play() -> anyhow::Result<()> {
    // Not the standard library's own, which writes line by line.
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let result = match message["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": 1, "agentCapabilities": {}}),
            Some("session/new") => json!({"sessionId": "chatter"}),
            Some("session/prompt") => match prompt(&message["params"], &mut out)? {
                Some(result) => result,
                None => continue,
            },
            _ => json!({}),
        };
        if !message["id"].is_null() {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            out.write_all(format!("{answer}\n").as_bytes())?;
        }
    }
    Ok(())
}

/// Does what a prompt asks for and returns the answer; none to one that is never answered.
fn prompt(params: &Value, out: &mut File) -> anyhow::Result<Option<Value>> {
    let text = params["prompt"][0]["text"].as_str().unwrap_or_default();
    let words: Vec<&str> = text.split(' ').collect();
    let (count, every): (usize, u64) = match words.as_slice() {
        ["say", count, micros] => (count.parse()?, micros.parse()?),
        [HOLD] => return Ok(None),
        _ => bail!("{text:?} is no prompt of ours"),
    };
    let begin = Instant::now();
    for number in 0..count {
        // By the clock, so that pauses that last too long are made up for.
        let due = Duration::from_micros(every * (number as u64 + 1));
        std::thread::sleep(due.saturating_sub(begin.elapsed()));
        out.write_all(update(number / MESSAGE, &piece(number)).as_bytes())?;
    }
    Ok(Some(json!({"stopReason": "end_turn"})))
}

/// Written by hand: what the agent takes to write is no part of what is measured.
fn update(message: usize, text: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"chatter\",\"update\":\
         {{\"sessionUpdate\":\"agent_message_chunk\",\"messageId\":\"m{message}\",\"content\":{{\"type\":\"text\",\"text\":\"{text}\"}}}}}}}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_one_length_and_tell_their_number_and_time() {
        let text = piece(7) + &piece(8);
        assert_eq!(text.len(), 2 * PIECE);
        let read: Vec<(u64, usize)> = pieces(&text).collect::<anyhow::Result<_>>().expect("pieces");
        assert_eq!((read[0].1, read[1].1), (7, 8));
        assert!(read[0].0 > 0 && read[0].0 <= read[1].0);
        assert!(pieces(&text[1..]).any(|piece| piece.is_err()));
    }

    #[test]
    fn updates_are_messages_of_one_line() {
        let line = update(0, &piece(1));
        let message: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(message["params"]["update"]["content"]["text"].as_str().map(str::len), Some(PIECE));
        assert!(line.ends_with('\n') && say(3, Duration::from_millis(2)) == "say 3 2000");
    }
}
