//! An answer that comes too late: what was answered instead, by whom, read from the log of the session that asked.

use rekindle_client::{Client, Exit, Failure};
use rekindle_display::hints::attach;
use rekindle_display::live::{Ask, QuestionEnd, answer_text, short_answer_text};
use rekindle_display::record_text::{payload, word};
use rekindle_domain::event::Event;
use rekindle_domain::line::Line;
use rekindle_wire::request::NewAnswer;
use rekindle_wire::view::{LogPage, SessionView};

use super::Context;

/// Records of a session that are looked through for the end of its question: it is among the newest.
const RECORDS: u64 = 256;

/// Sessions that are looked through for a question that is not open any more, where anything happened last first.
const SESSIONS: usize = 20;

/// A question that is over.
pub(super) struct LateAnswer {
    /// Who asked.
    pub(super) session: String,
    /// What was asked.
    pub(super) ask: Ask,
    /// How it ended.
    pub(super) over: QuestionEnd,
}

impl LateAnswer {
    /// Answers once more if it is the answer that was given, as whoever did not hear of its success does; the daemon says
    /// again what it said then, and does nothing.
    pub(super) fn again(
        &self,
        context: &Context,
        client: &Client,
        answer: &NewAnswer,
    ) -> Result<Exit, Failure> {
        if !self.over.is_answered_so(&self.ask, &answer_text(&self.ask, answer)) {
            return Err(self.failure(answer));
        }
        let body = client.post(&format!("/api/waits/{}/answer", self.over.wait_id), answer)?;
        let how = self.over.text(&self.ask);
        let attach = attach(&self.session);
        let text = format!("it was already {how}, with the same answer; watch it with: {attach}");
        context.acknowledge(&body, text)
    }

    /// Says so to someone whose answer was not used.
    pub(super) fn failure(&self, answer: &NewAnswer) -> Failure {
        let (how, answer) = (self.over.text(&self.ask), short_answer_text(&self.ask, answer));
        let error = anyhow::anyhow!("too late: it was {how}; your answer ({answer}) was not used");
        Failure::failed("token_consumed", error).hint(attach(&self.session))
    }
}

/// Looks in one session for a question that is over.
pub(super) fn in_session(
    context: &Context,
    client: &Client,
    session: &str,
    wait: &str,
) -> Option<LateAnswer> {
    find(context, client, &client.session(session).ok()?, wait)
}

/// Looks in the newest sessions for a question that is over, named by its id or the beginning of it.
pub(super) fn anywhere(context: &Context, client: &Client, wait: &str) -> Option<LateAnswer> {
    let mut sessions: Vec<SessionView> = client.all("sessions", &[]).ok()?;
    sessions.sort_by_key(|session| std::cmp::Reverse(session.updated_at));
    sessions.iter().take(SESSIONS).find_map(|session| find(context, client, session, wait))
}

fn find(context: &Context, client: &Client, session: &SessionView, wait: &str) -> Option<LateAnswer> {
    let after = session.last_seq.saturating_sub(RECORDS);
    let page: LogPage =
        client.get(&format!("/api/sessions/{}/log?after={after}&limit={RECORDS}", session.id)).ok()?;
    let bare = |text: &str| text.strip_prefix("wait_").unwrap_or(text).to_owned();
    let meant = |id: &str| bare(id).starts_with(&bare(wait));
    let blobs = context.blobs();
    let (mut asked, mut late) = (None, None);
    for raw in &page.records {
        let Ok(line) = Line::parse(raw.get().as_bytes()) else { continue };
        match line.event() {
            Ok(Event::RunWaiting(waiting)) if meant(waiting.wait_id.as_str()) => {
                let request = waiting.request.as_ref().map(|raw| payload(raw, &blobs)).unwrap_or_default();
                asked = Some(Ask::read(waiting.wait_id.as_str(), &word(&waiting.wait_kind), &request));
            }
            Ok(Event::RunResumed(resumed)) if meant(resumed.wait_id.as_str()) => {
                let over = QuestionEnd::read(&resumed, &blobs);
                late = asked.take().map(|ask| LateAnswer { session: session.id.to_string(), ask, over });
            }
            _ => {}
        }
    }
    late
}
