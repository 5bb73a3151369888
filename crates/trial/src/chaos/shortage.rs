//! A home that lacks something for a while: it is written to, killed and looked at meanwhile, and again when it lacks nothing
//! any more, first without a restart. What ran out, and how, is the caller's.

use std::path::PathBuf;
use std::time::Duration;

use rekindle_client::failure::Failure;
use rekindle_seeded::Rng;
use serde_json::{Value, json};

use super::follower::Follower;
use super::oracle::{Acknowledged, Moment, Shortage, Shown, Sight, is_explained, unanswered};
use super::plan::mark;
use super::processes::Processes;
use super::retrying_client::RetryingClient;

/// How long what goes on may take to say why it does not, and a subscriber to hear what was acknowledged.
const SAID: Duration = Duration::from_secs(8);

/// How long everything that was acknowledged may take to be done when there is room again.
const DONE: Duration = Duration::from_secs(20);

/// Changes of a title in a row, each of which has to be in the log.
const TITLES: usize = 12;

/// Something that can run out.
pub(super) trait Lack {
    /// Says what it is.
    fn words(&self) -> &'static str;
    /// It runs out.
    fn begin(&mut self, processes: &Processes, rng: &mut Rng) -> std::io::Result<()>;
    /// There is enough of it again.
    fn end(&mut self, processes: &Processes) -> std::io::Result<()>;
    /// How many sessions are begun while it lacks.
    fn newcomers(&self) -> usize;
}

/// A session that is written to, and what was acknowledged of that.
struct Witness {
    id: String,
    acknowledged: Vec<(Acknowledged, String)>,
    follower: Follower,
}

/// Everything of one scene.
struct Scene<'a> {
    asker: RetryingClient,
    request: &'a Value,
    told: PathBuf,
    witnesses: Vec<Witness>,
    refusals: Vec<(u16, String)>,
    said: usize,
}

/// Lets something run out in a home of its own, and come back.
pub(super) fn play(
    own: &mut Processes,
    lack: &mut dyn Lack,
    request: &Value,
    told: PathBuf,
    rng: &mut Rng,
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::failed("shortage", error);
    // What agents were told the last time is of other messages.
    let _ = std::fs::remove_file(&told);
    if !own.start() {
        return Ok(());
    }
    let (witnesses, refusals) = (Vec::new(), Vec::new());
    let mut scene = Scene { asker: own.asker()?, request, told, witnesses, refusals, said: 0 };
    // One whose agent waits for its next prompt, one that never had an agent, one in the middle of a turn.
    scene.create(own, Some("say ready"));
    scene.create(own, None);
    scene.look(own, lack, Moment::Over);
    scene.create(own, Some("words 400 every 4ms"));
    own.cancel.pause(rng.below(300));
    lack.begin(own, rng).map_err(failed)?;
    scene.write(own, lack);
    scene.look(own, lack, Moment::During);
    if rng.chance(1, 2) {
        own.kill();
        if own.start() {
            scene.look(own, lack, Moment::Killed);
        }
    }
    lack.end(own).map_err(failed)?;
    scene.look(own, lack, Moment::Over);
    own.kill();
    if own.start() {
        scene.look(own, lack, Moment::Restarted);
    }
    let home = own.home.clone();
    own.dismiss()?;
    own.sights.push(Sight::Left { processes: crate::ground::living(&home) });
    scene.witnesses.iter().for_each(|witness| drop(witness.follower.end(0, &own.cancel)));
    Ok(())
}

impl Scene<'_> {
    fn follow(&mut self, own: &Processes, id: String, acknowledged: Vec<(Acknowledged, String)>) {
        let follower = Follower::begin(own.home.clone(), id.clone(), own.cancel.clone());
        self.witnesses.push(Witness { id, acknowledged, follower });
    }

    /// Makes a session; what it is told first ends with a mark.
    fn create(&mut self, own: &Processes, prompt: Option<&str>) {
        let mut body = self.request.clone();
        let tag = self.tag();
        if let Some(prompt) = prompt {
            body["prompt"] = json!(format!("{prompt}\nsay {}", mark(&tag)));
        }
        let Some(reply) = self.asker.once("POST", "/api/sessions", Some(&body), Some(&tag)) else { return };
        let Some(id) = reply.text("id").filter(|_| reply.is_yes()) else {
            return self.refusals.push((reply.status, reply.body.to_string()));
        };
        // Which message that is, its log says.
        let first = Acknowledged::Message { message_id: String::new(), told: 0 };
        let acknowledged = prompt.map(|_| (first, mark(&tag))).into_iter().collect();
        self.follow(own, id, acknowledged);
    }

    fn tag(&mut self) -> String {
        self.said += 1;
        format!("lack{}", self.said)
    }

    /// Says and changes things while something is lacking: each is acknowledged or refused.
    fn write(&mut self, own: &Processes, lack: &dyn Lack) {
        for at in 0..self.witnesses.len() {
            for number in 0..TITLES {
                let title = format!("apart {at} {number} {}", "x".repeat(300));
                let path = format!("/api/sessions/{}", self.witnesses[at].id);
                let body = json!({"title": title});
                self.take(at, "PATCH", &path, &body, |_| Some(Acknowledged::Title(title.clone())), "");
            }
            let tag = self.tag();
            let prompt = format!("think {}\nsay {}", "of this and that, ".repeat(350), mark(&tag));
            let path = format!("/api/sessions/{}/messages", self.witnesses[at].id);
            let message = |reply: &Value| {
                let message_id = reply["message_id"].as_str()?.to_owned();
                Some(Acknowledged::Message { message_id, told: 0 })
            };
            self.take(at, "POST", &path, &json!({"content": prompt}), message, &mark(&tag));
        }
        for _ in 0..lack.newcomers() {
            self.create(own, Some("think of nothing"));
        }
    }

    fn take(
        &mut self,
        at: usize,
        method: &'static str,
        path: &str,
        body: &Value,
        acknowledged: impl Fn(&Value) -> Option<Acknowledged>,
        mark: &str,
    ) {
        let Some(reply) = self.asker.once(method, path, Some(body), None) else { return };
        if !reply.is_yes() {
            return self.refusals.push((reply.status, reply.body.to_string()));
        }
        self.witnesses[at].acknowledged.extend(acknowledged(&reply.body).map(|one| (one, mark.to_owned())));
    }

    /// Looks at all sessions until they are as they should be, or have had the time for it.
    fn look(&mut self, own: &mut Processes, lack: &dyn Lack, moment: Moment) {
        let lasts = matches!(moment, Moment::During | Moment::Killed);
        let mut sessions = Vec::new();
        let begin = std::time::Instant::now();
        for witness in &self.witnesses {
            let mut latest = None;
            let within = (if lasts { SAID } else { DONE }).saturating_sub(begin.elapsed());
            let _ = own.cancel.wait_for(within, || {
                let shown = self.shown(own, witness)?;
                let settled = is_settled(&shown, lasts);
                latest = Some(shown);
                settled.then_some(())
            });
            let shown = latest.or_else(|| self.shown(own, witness));
            sessions.push(shown.unwrap_or_else(|| silent(witness)));
        }
        if own.cancel.is_cancelled() {
            return;
        }
        let refusals = std::mem::take(&mut self.refusals);
        let shortage = Shortage { lack: lack.words(), moment, sessions, refusals };
        own.sights.push(Sight::Shortage(shortage));
    }

    /// Returns how a session is served; none if it is not.
    fn shown(&self, own: &Processes, witness: &Witness) -> Option<Shown> {
        let (mut log, mut after) = (Vec::new(), 0);
        loop {
            let path = format!("/api/sessions/{}/log?after={after}&limit=1000", witness.id);
            let page = self.asker.once("GET", &path, None, None)?.body;
            log.extend(page["records"].as_array()?.iter().cloned());
            match page["next"].as_u64().filter(|next| *next > after) {
                Some(next) => after = next,
                None => break,
            }
        }
        let view = self.asker.once("GET", &format!("/api/sessions/{}", witness.id), None, None)?.body;
        let told = std::fs::read_to_string(&self.told).unwrap_or_default();
        let prompts = |mark: &str| {
            told.lines().filter(|line| line.contains("session/prompt") && line.contains(mark)).count()
        };
        let first = log.iter().find(|record| record["kind"] == "message.user");
        let first = first.and_then(|record| record["message_id"].as_str()).unwrap_or_default().to_owned();
        let acknowledged = witness.acknowledged.iter().map(|(one, mark)| match one {
            Acknowledged::Message { message_id, .. } => {
                let message_id = if message_id.is_empty() { first.clone() } else { message_id.clone() };
                Acknowledged::Message { message_id, told: prompts(mark) }
            }
            Acknowledged::Title(_) => one.clone(),
        });
        let file = own.home.join(format!("sessions/{}.messages.jsonl", witness.id));
        let file = std::fs::read(file).unwrap_or_default();
        Some(Shown {
            id: witness.id.clone(),
            acknowledged: acknowledged.collect(),
            log,
            heard: witness.follower.newest(),
            view,
            in_file: file.iter().filter(|byte| **byte == b'\n').count(),
        })
    }
}

/// Tells whether a session needs no more time: all who tell of it agree, and what waits says why or is done.
fn is_settled(shown: &Shown, lasts: bool) -> bool {
    let last = shown.log.last().and_then(|record| record["seq"].as_u64());
    let agree = last == Some(shown.heard) && last == shown.view["last_seq"].as_u64();
    let kept = lasts || shown.in_file == shown.log.len() && shown.view["health"]["state"] == "ok";
    let done = unanswered(shown) == 0 && matches!(shown.view["status"].as_str(), Some("idle"));
    agree && kept && (done || lasts && is_explained(&shown.view))
}

/// Returns what is seen of a session that nobody serves.
fn silent(witness: &Witness) -> Shown {
    let acknowledged = witness.acknowledged.iter().map(|(one, _)| one.clone()).collect();
    let (log, heard) = (Vec::new(), witness.follower.newest());
    Shown { id: witness.id.clone(), acknowledged, log, heard, view: Value::Null, in_file: 0 }
}
