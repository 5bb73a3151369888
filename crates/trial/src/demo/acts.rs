//! What is shown: a daemon that dies in mid-sentence, an agent that dies in mid-turn, a question that outlives its
//! daemon. Everything is a real process and a real `kill -9`; what is said of it comes from records, statuses and pids.

use rekindle_client::content_text::{asked, value_text};
use rekindle_client::failure::Failure;
use rekindle_domain::projector::SessionStatus;
use serde_json::Value;

use super::stage::{News, Stage, killed};
use super::timeline::Tone::{Good, Kill, Plain};
use crate::ground::ended;

/// Words of the sentence in whose middle the daemon dies: it lasts for three seconds, so that people can follow.
pub(super) const WORDS: u64 = 400;

/// What the agent is asked, an act each; its script is the prompt.
pub(super) const PROMPTS: [&str; 3] = [
    "words 400 every 7ms",
    "append work.txt one\nappend work.txt two\nwords 2000 every 7ms\nappend work.txt three\nsay All three are done.",
    "ask May I tidy up?\nsay Tidied up, thank you.",
];

/// What the second prompt leaves in its file, a line each.
pub(super) const STEPS: [&str; 3] = ["one", "two", "three"];

/// How often another daemon finds an agent that lives.
pub(super) const TAKEOVERS: usize = 2;

/// Words after which somebody is killed.
const ENOUGH: u64 = 130;

/// Plays all acts; returns how many words of the sentence that its agent did not survive were heard.
pub(super) fn play(stage: &mut Stage, agent: &[String]) -> Result<u64, Failure> {
    stage.timeline.act("A daemon dies in mid-sentence")?;
    the_daemon_dies(stage, agent)?;
    stage.timeline.act("An agent dies in mid-turn")?;
    let heard = the_agent_dies(stage)?;
    stage.timeline.act("A question outlives its daemon")?;
    a_question_is_asked(stage)?;
    the_end(stage)?;
    Ok(heard)
}

fn the_daemon_dies(stage: &mut Stage, agent: &[String]) -> Result<(), Failure> {
    start(stage, "a daemon listens")?;
    stage.create(agent, PROMPTS[0])?;
    let known = format!("session {}", short(stage.session()));
    stage.timeline.note(Plain, &format!("an agent is asked for {WORDS} words"), &known)?;
    stage.record(&["agent.started"])?;
    let pair = stage.pair()?;
    let (agent, holder) = (pair.agent.pid, pair.holder.pid);
    stage.timeline.note(Plain, "the agent speaks", &format!("pid {agent} in holder {holder}"))?;
    let heard = stage.words(ENOUGH)?;
    let daemon = stage.kill_daemon()?;
    stage.timeline.note(Kill, "kill -9 of the daemon", &format!("pid {daemon} is gone, at word {heard}"))?;
    ensure(pair.lives(), "the agent, alive")?;
    let known = format!("pids {agent} and {holder} live");
    stage.timeline.note(Plain, "nobody listens; the agent lives on", &known)?;
    start(stage, "another daemon listens")?;
    taken_over(stage)?;
    stage.record(&["run.completed"])?;
    ensure(stage.pair()? == pair, "the same agent")?;
    let known = format!("run.completed; still pid {agent}");
    stage.timeline.note(Good, "the same agent ends its sentence", &known)?;
    Ok(())
}

fn the_agent_dies(stage: &mut Stage) -> Result<u64, Failure> {
    stage.send(PROMPTS[1])?;
    stage.timeline.note(Plain, "it is asked for three steps", "the session's next message")?;
    for _ in 0..2 {
        stage.until("a finished step", finished_tool)?;
    }
    let known = work(stage);
    stage.timeline.note(Plain, "two are done, it speaks", &known)?;
    let pair = stage.pair()?;
    let heard = stage.words(ENOUGH)?;
    let agent = killed(&pair.agent, "the agent")?;
    stage.timeline.note(Kill, "kill -9 of the agent", &format!("pid {agent} is gone, at word {heard}"))?;
    stage.record(&["run.interrupted"])?;
    // It goes on by itself in a moment: on a busy machine that may be over before it is looked at.
    let known = match stage.show()?.status {
        status @ SessionStatus::InterruptedAgent => format!("status {status}"),
        _ => "run.interrupted".to_owned(),
    };
    stage.timeline.note(Plain, "Rekindle notices the interruption", &known)?;
    loop {
        let next = stage.record(&["run.started", "agent.started", "session.restored", "run.completed"])?;
        let (what, known) = match text(&next["kind"]).as_str() {
            "run.started" => {
                ("it continues automatically", format!("run.started, attempt {}", next["attempt"]))
            }
            "agent.started" => {
                let known = format!("pid {} in holder {}", next["agent"]["pid"], next["holder"]["pid"]);
                ("another agent is started", known)
            }
            "session.restored" => ("its memory is held against the log", restored(&next)),
            _ => break,
        };
        stage.timeline.note(Plain, what, &known)?;
    }
    let known = work(stage);
    stage.timeline.note(Good, "the turn ends, no step done twice", &known)?;
    Ok(heard)
}

fn a_question_is_asked(stage: &mut Stage) -> Result<(), Failure> {
    stage.send(PROMPTS[2])?;
    let waiting = stage.record(&["run.waiting"])?;
    let wait = text(&waiting["wait_id"]);
    let known = format!("“{}” {}", asked(&waiting["request"]), short(&wait));
    stage.timeline.note(Plain, "the agent asks for a permission", &known)?;
    let daemon = stage.kill_daemon()?;
    stage.timeline.note(Kill, "kill -9 of the daemon", &format!("pid {daemon} is gone"))?;
    start(stage, "another daemon listens")?;
    taken_over(stage)?;
    let session = stage.show()?;
    let open: Vec<&str> = session.waits.iter().map(|wait| wait.wait_id.as_str()).collect();
    ensure(open == [wait.as_str()], "the same question")?;
    let known = format!("{}; status {}", short(&wait), session.status);
    stage.timeline.note(Plain, "the same question is open", &known)?;
    stage.answer(&wait, "allow_once")?;
    let consumed = stage.record(&["token.consumed"])?;
    let known = format!("token.consumed {}", short(&text(&consumed["resume_token_id"])));
    stage.timeline.note(Plain, "it is answered: yes, once", &known)?;
    let said = stage.record(&["message.agent"])?;
    stage.record(&["run.completed"])?;
    let known = format!("“{}”", value_text(&said["content"]).trim());
    stage.timeline.note(Good, "the agent has it, the turn ends", &known)?;
    Ok(())
}

/// Everybody leaves.
fn the_end(stage: &mut Stage) -> Result<(), Failure> {
    let daemon = stage.dismiss()?;
    ensure(ended(&daemon), "the end of the daemon")?;
    let left = stage.ground.living();
    ensure(left == 0, "the end of every agent")?;
    stage.timeline.note(Plain, "daemon and agent are told to end", &format!("{left} processes left"))?;
    Ok(())
}

fn start(stage: &mut Stage, what: &str) -> Result<(), Failure> {
    let (daemon, epoch) = stage.start_daemon()?;
    stage.timeline.note(Plain, what, &format!("pid {daemon}, epoch {epoch}"))?;
    Ok(())
}

fn taken_over(stage: &mut Stage) -> Result<(), Failure> {
    let adopted = stage.record(&["run.adopted"])?;
    let known = format!("run.adopted, {} lines behind", adopted["gap"]);
    stage.timeline.note(Plain, "it takes the agent over", &known)?;
    Ok(())
}

fn finished_tool(news: &News) -> Option<()> {
    match news {
        News::Record(record) => {
            (record["kind"] == "tool.update" && record["status"] == "completed").then_some(())
        }
        News::Word(_) => None,
    }
}

fn restored(record: &Value) -> String {
    let (method, verdict, counts) = (text(&record["method"]), text(&record["verdict"]), &record["counts"]);
    format!("{method}: {verdict}, {} of {} found", counts["found"], counts["expected"])
}

/// Returns what the steps left, in one line.
fn work(stage: &Stage) -> String {
    let work = std::fs::read_to_string(stage.ground.at("work/work.txt")).unwrap_or_default();
    format!("work.txt: {}", work.lines().collect::<Vec<_>>().join(", "))
}

fn ensure(holds: bool, what: &str) -> Result<(), Failure> {
    let error = || Failure::failed("demo", anyhow::anyhow!("looked in vain for {what}"));
    if holds { Ok(()) } else { Err(error()) }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Shortens an id to what tells it from others nearby: its kind and its end.
fn short(id: &str) -> String {
    let (kind, rest) = id.split_once('_').unwrap_or(("", id));
    let tail: String = rest.chars().skip(rest.chars().count().saturating_sub(6)).collect();
    format!("{kind}_…{tail}")
}
