//! A whole turn, from the prompt to the agent's first word and to the record of its end, heard by a subscriber. Raw: the
//! same agent driven over its pipes, with nothing on disk and nobody who could come back to it.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rekindle_lab::{Connection, Process};
use serde_json::{Value, json};

use crate::actors;
use crate::chatter;
use crate::context::Context;
use crate::ears::{Ear, WORDS};
use crate::lab::{Lab, message};
use crate::measure::{Latencies, interleave, micros};
use crate::table::{Row, Target, Unit};

/// What a prompt may take longer than without us, in milliseconds.
const MORE: f64 = 5.0;

pub(crate) fn run(context: &Context) -> anyhow::Result<Vec<Row>> {
    let (turns, rounds) = context.pick((50, 11), (20, 5));
    let mut direct = Direct::start()?;
    let lab = Lab::new(context)?;
    let mut link = lab.link()?;
    let (session, mut ear) = lab.warm_session(&mut link)?;
    let request = message(&session, &chatter::say(1, Duration::ZERO));
    let what = "a turn of one word";
    let [first, end] = interleave(
        what,
        rounds,
        || direct.turns(turns),
        || ours(&mut link, &mut ear, request.as_bytes(), turns),
    )?;
    Ok(vec![
        Row::compared("prompt to the agent's first word", Unit::Millis, &first, Target::MoreAtMost(MORE)),
        Row::compared("… to the end of the turn", Unit::Millis, &end, Target::MoreAtMost(MORE)),
    ])
}

fn ours(link: &mut Connection, ear: &mut Ear, request: &[u8], turns: usize) -> anyhow::Result<[f64; 2]> {
    let [mut firsts, mut ends] = [Latencies::default(), Latencies::default()];
    for _ in 0..turns {
        let begin = Instant::now();
        link.send(request)?;
        let mut first = None;
        ear.turn(|event, _| {
            if event == WORDS {
                first.get_or_insert_with(|| begin.elapsed());
            }
            Ok(())
        })?;
        ends.note(micros(begin.elapsed()));
        firsts.note(micros(first.context("the agent said nothing")?));
        link.receive()?.expect(202)?;
    }
    Ok([firsts, ends].map(|latencies| latencies.percentile(0.5) / 1000.0))
}

/// The agent alone.
struct Direct {
    _process: Process,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl Direct {
    fn start() -> anyhow::Result<Direct> {
        let mut command = actors::chatter_process()?;
        let mut process = Process::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let input = process.take_input()?;
        let output = process.stdout.take().context("the agent has no output")?;
        let mut direct = Direct { _process: process, input, output: BufReader::new(output), requests: 0 };
        direct.call("initialize", &json!({"protocolVersion": 1}))?;
        direct.call("session/new", &json!({"cwd": "/", "mcpServers": []}))?;
        Ok(direct)
    }

    /// Asks, and waits for the answer; returns when the first line came and when the answer.
    fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<[Duration; 2]> {
        self.requests += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.requests, "method": method, "params": params});
        let line = format!("{request}\n");
        let (begin, mut first) = (Instant::now(), None);
        self.input.write_all(line.as_bytes())?;
        loop {
            let mut line = String::new();
            ensure!(self.output.read_line(&mut line)? > 0, "the agent ended");
            let first = *first.get_or_insert_with(|| begin.elapsed());
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == self.requests {
                return Ok([first, begin.elapsed()]);
            }
        }
    }

    fn turns(&mut self, turns: usize) -> anyhow::Result<[f64; 2]> {
        let text = chatter::say(1, Duration::ZERO);
        let params = json!({"sessionId": "chatter", "prompt": [{"type": "text", "text": text}]});
        let [mut firsts, mut ends] = [Latencies::default(), Latencies::default()];
        for _ in 0..turns {
            let [first, end] = self.call("session/prompt", &params)?;
            firsts.note(micros(first));
            ends.note(micros(end));
        }
        Ok([firsts, ends].map(|latencies| latencies.percentile(0.5) / 1000.0))
    }
}
