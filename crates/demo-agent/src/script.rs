//! What a prompt asks for: directives, one a line, else plain words. Pure: text in, steps out. Any text is a
//! prompt, and what is not quite a directive is plain words, so nothing here can fail.

use std::time::Duration;

use crate::units::{parse_duration, parse_size};

/// The longest line that `huge` sends: above every limit worth testing.
const MOST_HUGE: u64 = 256 << 20;

/// The most words that `words` streams: an hour of them, one each millisecond.
const MOST_WORDS: u64 = 3_600_000;

/// The most bytes that `stderr` writes before it ends; `endless` is there for more.
const MOST_STDERR: u64 = 1 << 30;

/// The kinds of tools that the protocol knows.
const TOOL_KINDS: [&str; 9] =
    ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"];

/// Stands at the start of a line of a prompt that primes an agent after an interruption.
const RESUME_CONTEXT: &str = "[Resume Context]";

/// Stands before what is asked by whoever is told what happened before.
const END_OF_CONTEXT: &str = "[End of Resume Context]";

/// What is asked then, if it is to continue what was cut; anything else is a message.
const CONTINUES: [&str; 2] = ["The request:", "Go on from there"];

/// A prompt, understood.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Prompt {
    /// Steps to carry out.
    Script(Vec<Step>),
    /// Words without any directive.
    Plain,
    /// The client says that an earlier turn was interrupted; what it quotes is not carried out.
    Resume,
}

/// One directive.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// A message.
    Say(String),
    /// A thought.
    Think(String),
    /// A plan whose entries get done one after the other.
    Plan(Vec<String>),
    /// Not a directive of its own: a plan of which so many entries are done.
    PlanAt(Vec<String>, usize),
    /// A tool call that does nothing.
    Tool { kind: String, title: String },
    /// A file that is written anew.
    Write { path: String, text: String },
    /// A line at the end of a file.
    Append { path: String, text: String },
    /// A shell command.
    Run(String),
    /// A command that is only told of when permission is asked for it.
    Guarded(String),
    /// Permissions, all asked for at once.
    Ask(Vec<String>),
    /// A question that is taken back.
    Withdraw { after: Duration, text: String },
    /// A question with a form.
    Question(String),
    /// A pause.
    Sleep(Duration),
    /// A message of so many words.
    Words { count: u64, every: Duration },
    /// Tokens and their cost.
    Usage { input: u64, output: u64, cost: f64 },
    /// Another mode.
    Mode(String),
    /// A name for the session.
    Title(String),
    /// A notice, which is no part of the conversation.
    Notice(String),
    /// The list of slash commands.
    Commands,
    /// Updates that nobody knows.
    UnknownUpdate,
    /// A tool update between two parts of one message.
    ToolBetween,
    /// Silence; a deaf turn ignores cancels from its start.
    Hang { deaf: bool },
    /// The end of the process.
    Crash(Crash),
    /// Bytes that are no message.
    Noise(Vec<u8>),
    /// An update with a line of so many bytes.
    Huge(u64),
    /// Request ids begin at 0 again.
    RepeatIds,
    /// A meeting with a test.
    Barrier(String),
    /// So many bytes, or without end.
    Stderr(Option<u64>),
    /// A child that is left behind.
    Grandchild { seconds: u64, detach: bool },
    /// SIGTERM is ignored.
    IgnoreTerm,
    /// A wait for any line.
    Poke,
    /// An error as the answer to the prompt.
    Refuse { code: i64, text: String },
    /// The reason that the turn's end is given.
    StopReason(String),
    /// The session cannot be loaded any more.
    Forget,
    /// The end of stdin is not ours.
    EofLinger,
    /// Something that happened, on the way.
    Event(String),
    /// A sign of life.
    Heartbeat(String),
    /// A file that was made, with the hash that is claimed for it if that is not its own.
    Artifact { path: String, sha256: Option<String> },
}

/// How and when the process ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crash {
    /// With an exit code, here.
    Exit(u8),
    /// By SIGKILL, here.
    Signal,
    /// When the prompt comes in, before anything is kept or sent.
    Before,
    /// Right after the prompt was answered.
    After,
    /// After the answer was kept, and before it is said.
    Kept,
    /// In the middle of a line.
    MidLine,
}

/// Understands a prompt.
pub(crate) fn parse(text: &str) -> Prompt {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.iter().any(|line| line.starts_with(RESUME_CONTEXT)) {
        let end = lines.iter().position(|line| line.starts_with(END_OF_CONTEXT));
        let message = end.map_or(&[][..], |end| &lines[end + 1..]);
        let continues =
            message.first().is_none_or(|line| CONTINUES.iter().any(|front| line.starts_with(front)));
        return if continues { Prompt::Resume } else { parse(&message.join("\n")) };
    }
    // What a step of a pipeline came to is said last: what stands behind it is for agents that read.
    let end = lines.iter().position(|line| outcome(line).is_some()).map_or(lines.len(), |end| end + 1);
    let lines = &lines[..end];
    let steps: Vec<Option<Step>> = lines.iter().map(|line| step(line)).collect();
    let opening = lines.first().zip(steps.first());
    if opening.is_some_and(|(line, step)| step.is_none() && line.to_lowercase().contains("interrupted")) {
        return Prompt::Resume;
    }
    if steps.iter().all(Option::is_none) {
        return Prompt::Plain;
    }
    // Words between directives are said as they stand.
    let say = |(line, step): (&&str, Option<Step>)| step.unwrap_or_else(|| Step::Say((*line).to_owned()));
    Prompt::Script(lines.iter().zip(steps).map(say).collect())
}

/// Returns the steps that a prompt asks for; none if it only tells of an interruption.
pub(crate) fn steps_of(text: &str) -> Option<Vec<Step>> {
    match parse(text) {
        Prompt::Script(steps) => Some(steps),
        Prompt::Plain => Some(plain_steps(text)),
        Prompt::Resume => None,
    }
}

/// Returns the steps of a prompt in plain words: a turn that looks like work and touches nothing.
fn plain_steps(text: &str) -> Vec<Step> {
    let wish: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short: String = wish.chars().take(60).collect();
    let plan: Vec<String> = ["Look at the code", "Make the change", "Check it"].map(str::to_owned).into();
    let tool = |kind: &str, title: &str| Step::Tool { kind: kind.to_owned(), title: title.to_owned() };
    vec![
        Step::Title(if short.is_empty() { "Nothing in particular".to_owned() } else { short }),
        Step::Think("Let me see what this is about before I touch anything.".to_owned()),
        Step::PlanAt(plan.clone(), 0),
        tool("read", "README.md"),
        Step::PlanAt(plan.clone(), 1),
        tool("edit", "nothing: a demonstration changes no file"),
        Step::PlanAt(plan.clone(), 2),
        Step::Say(format!(
            "I was asked: {wish}\n\nI am a demonstration, so I read a little, changed nothing and can report that all is well.{}",
            asked_outcome(text).map(|name| outcome_block(&name, "")).unwrap_or_default()
        )),
        Step::PlanAt(plan, 3),
    ]
}

/// Returns the first outcome that a prompt offers, if it asks for one: it shows the block that is to be filled in.
fn asked_outcome(text: &str) -> Option<String> {
    let shown = text.lines().map(str::trim).filter(|line| line.starts_with("{\"outcome\""));
    let mut names = shown.filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    names.find_map(|block| block["outcome"].as_str().filter(|name| is_name(name)).map(str::to_owned))
}

/// Returns the end of a message that says what came of a step of a pipeline.
fn outcome_block(name: &str, findings: &str) -> String {
    let block = serde_json::json!({"outcome": name, "findings": findings});
    format!("\n\n```json\n{block}\n```")
}

/// Reads one directive, or finds that the line is none.
fn step(line: &str) -> Option<Step> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let text = || (!rest.is_empty()).then(|| rest.to_owned());
    let alone = |step: Step| rest.is_empty().then_some(step);
    Some(match word {
        "say" => Step::Say(text()?),
        "think" => Step::Think(text()?),
        "plan" => Step::Plan(list(rest, ';')?),
        "tool" => tool(rest)?,
        "write" => path_and_text(rest).map(|(path, text)| Step::Write { path, text })?,
        "append" => path_and_text(rest).map(|(path, text)| Step::Append { path, text })?,
        "run" => Step::Run(text()?),
        "guarded" => Step::Guarded(text()?),
        "ask" => Step::Ask(vec![text()?]),
        "ask-two" => Step::Ask(list(rest, '|').filter(|asked| asked.len() > 1)?),
        "withdraw" => withdraw(rest)?,
        "question" => Step::Question(text()?),
        "sleep" => Step::Sleep(parse_duration(rest)?),
        "words" => words(rest)?,
        "usage" => usage(rest)?,
        "mode" => Step::Mode(one_word(rest)?),
        "title" => Step::Title(text()?),
        "notice" => Step::Notice(text()?),
        "commands" => alone(Step::Commands)?,
        "unknown-update" => alone(Step::UnknownUpdate)?,
        "tool-between" => alone(Step::ToolBetween)?,
        "hang" if rest == "deaf" => Step::Hang { deaf: true },
        "hang" => alone(Step::Hang { deaf: false })?,
        "crash" => Step::Crash(crash(rest)?),
        "crash-signal" => alone(Step::Crash(Crash::Signal))?,
        "crash-before" => alone(Step::Crash(Crash::Before))?,
        "crash-after" => alone(Step::Crash(Crash::After))?,
        "crash-kept" => alone(Step::Crash(Crash::Kept))?,
        "noise" => Step::Noise(noise(rest)?),
        "huge" => Step::Huge(parse_size(rest).filter(|size| *size <= MOST_HUGE)?),
        "repeat-ids" => alone(Step::RepeatIds)?,
        "barrier" => Step::Barrier(one_word(rest).filter(|name| is_name(name))?),
        "stderr" if rest == "endless" => Step::Stderr(None),
        "stderr" => Step::Stderr(Some(parse_size(rest).filter(|size| *size <= MOST_STDERR)?)),
        "grandchild" => grandchild(rest)?,
        "ignore-term" => alone(Step::IgnoreTerm)?,
        "poke" => alone(Step::Poke)?,
        "refuse" => refuse(rest)?,
        "stop-reason" => Step::StopReason(one_word(rest)?),
        "forget" => alone(Step::Forget)?,
        "eof-linger" => alone(Step::EofLinger)?,
        "event" => Step::Event(one_word(rest)?),
        "heartbeat" => Step::Heartbeat(one_word(rest)?),
        "artifact" => artifact(rest)?,
        "outcome" => outcome(line)?,
        _ => return None,
    })
}

/// Reads the outcome of a step of a pipeline, as a message has it: a fenced block of JSON at its end.
fn outcome(line: &str) -> Option<Step> {
    let rest = line.strip_prefix("outcome")?.strip_prefix(char::is_whitespace)?.trim();
    let (name, findings) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    is_name(name).then(|| Step::Say(format!("Done.{}", outcome_block(name, findings.trim()))))
}

fn artifact(text: &str) -> Option<Step> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (path, sha256) = match words[..] {
        [path] => (path, None),
        [path, sha256] => (path, Some(sha256.to_owned())),
        _ => return None,
    };
    Some(Step::Artifact { path: path.to_owned(), sha256 })
}

fn one_word(text: &str) -> Option<String> {
    (!text.is_empty() && !text.contains(char::is_whitespace)).then(|| text.to_owned())
}

/// A name that is safe as a part of a file's name.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    !text.is_empty() && text.len() <= 100 && text.bytes().all(plain)
}

fn list(text: &str, separator: char) -> Option<Vec<String>> {
    let entries = text.split(separator).map(str::trim).filter(|entry| !entry.is_empty());
    let entries: Vec<String> = entries.map(str::to_owned).collect();
    (!entries.is_empty()).then_some(entries)
}

fn tool(text: &str) -> Option<Step> {
    let (kind, title) = match text.split_once(char::is_whitespace) {
        Some((kind, title)) if TOOL_KINDS.contains(&kind) => (kind, title.trim()),
        _ => ("other", text),
    };
    (!title.is_empty()).then(|| Step::Tool { kind: kind.to_owned(), title: title.to_owned() })
}

fn path_and_text(text: &str) -> Option<(String, String)> {
    let (path, text) = text.split_once(char::is_whitespace)?;
    Some((path.to_owned(), text.trim().to_owned()))
}

fn withdraw(text: &str) -> Option<Step> {
    /// Long enough for the question to be seen, short enough for a test.
    const MOMENT: Duration = Duration::from_millis(100);
    let timed =
        text.split_once(char::is_whitespace).and_then(|(first, rest)| Some((parse_duration(first)?, rest)));
    let (after, text) = timed.unwrap_or((MOMENT, text));
    (!text.is_empty()).then(|| Step::Withdraw { after, text: text.trim().to_owned() })
}

fn words(text: &str) -> Option<Step> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (count, every) = match words[..] {
        [count] => (count, Duration::ZERO),
        [count, "every", every] => (count, parse_duration(every)?),
        _ => return None,
    };
    let count = count.parse().ok().filter(|count| *count <= MOST_WORDS)?;
    Some(Step::Words { count, every })
}

fn usage(text: &str) -> Option<Step> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [input, output, cost] = words[..] else { return None };
    let cost: f64 = cost.parse().ok().filter(|cost: &f64| cost.is_finite())?;
    let tokens = |text: &str| text.parse::<u32>().ok().map(u64::from);
    Some(Step::Usage { input: tokens(input)?, output: tokens(output)?, cost })
}

fn crash(text: &str) -> Option<Crash> {
    match text {
        "" => Some(Crash::Exit(1)),
        "mid-line" => Some(Crash::MidLine),
        code => code.parse().ok().map(Crash::Exit),
    }
}

fn noise(text: &str) -> Option<Vec<u8>> {
    Some(match text {
        "" => return None,
        "binary" => b"\x00\x01\xfe\xff{\xc3\x28}\x80\n".into(),
        "blank" => b"\n".into(),
        "escape" => b"\x1b]0;agent\x07\x1b[31mred\x1b[0m\x1b[2J\r\n".into(),
        "string" => b"\"just a string\"\n".into(),
        text => format!("{text}\n").into(),
    })
}

fn grandchild(text: &str) -> Option<Step> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (seconds, detach) = match words[..] {
        [seconds] => (seconds, false),
        [seconds, "detach"] => (seconds, true),
        _ => return None,
    };
    Some(Step::Grandchild { seconds: seconds.parse::<u16>().ok()?.into(), detach })
}

fn refuse(text: &str) -> Option<Step> {
    /// Internal error, the code that agents use for whatever went wrong.
    const INTERNAL: i64 = -32603;
    let coded = text.split_once(char::is_whitespace);
    let coded = coded.and_then(|(code, text)| Some((code.parse().ok().filter(|code| *code < 0)?, text)));
    let (code, text) = coded.unwrap_or((INTERNAL, text));
    (!text.is_empty()).then(|| Step::Refuse { code, text: text.trim().to_owned() })
}

#[cfg(test)]
mod tests;
