//! `rekindle answer`: ends a wait with one of the agent's own options, or with words.

use crate::completers::ids;
use rekindle_client::completion::IdKind;
use rekindle_client::{Exit, Failure};
use rekindle_display::hints::{attach, ours};
use rekindle_display::live::{Ask, pick};
use rekindle_domain::id::WaitId;
use rekindle_wire::request::NewAnswer;
use rekindle_wire::token_text::TokenText;
use rekindle_wire::view::{WaitState, WaitView};

use super::{Context, late_answer};

/// Answer a question of an agent
///
/// An option is named by its number, its id, its kind (allow_once, reject_once, …) or its words; `yes` and `no` mean
/// once. The first answer wins, wherever it comes from; repeating it is not an error and does nothing.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "rekindle answer [OPTIONS] [WAIT] [OPTION]",
    after_help = "Examples:
  rekindle answer yes                        # if only one is open
  rekindle answer wait_01khz0p6r8 2
  rekindle answer wait_01khz0p6r8 reject_once
  rekindle answer wait_01khz0p6r8 --text \"use Postgres\""
)]
pub(crate) struct Args {
    /// The option, behind the wait's id or the beginning of it unless only one is open
    #[arg(value_name = "OPTION", num_args = 0..=2, add = ids(IdKind::Wait))]
    words: Vec<String>,

    /// Answer with a text of your own
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,

    /// Answer by the token of the wait, as `rekindle waits --mint` shows it: nothing else is needed, from elsewhere either. The option
    /// is named by its id or kind
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let (wait, option) = match (args.words.as_slice(), &args.text) {
        ([wait, option], None) => (Some(wait.as_str()), Some(option.as_str())),
        ([option], None) => (None, Some(option.as_str())),
        ([wait], Some(_)) => (Some(wait.as_str()), None),
        ([], Some(_)) => (None, None),
        ([], None) => return Err(usage("the answer is missing")),
        (_, Some(_)) => return Err(usage("give either an option or a text, not both")),
        (_, None) => return Err(usage("there are too many arguments")),
    };
    if let Some(token) = &args.token {
        let wait = wait.ok_or_else(|| usage("--token also needs the id of its wait"))?;
        return answer_by_token(context, wait, option, args.text.as_deref(), token);
    }
    let answer = |ask: &Ask| match (option, &args.text) {
        (Some(word), _) => pick(&ask.choices, word).ok_or_else(|| no_such_option(ask, word)),
        (None, text) => Ok(NewAnswer::text(text.as_deref().unwrap_or_default())),
    };
    let client = context.daemon_or_start()?;
    let waits: Vec<WaitView> = client.all("waits", &[])?;
    if let (None, Some(word)) = (wait, option) {
        half_an_answer(word, &waits)?;
    }
    let wait = match (find(wait, &waits), wait) {
        (Err(failure), Some(name)) if failure.code() != "wait_ambiguous" => {
            // It may have been open a moment ago.
            let Some(late) = late_answer::anywhere(context, &client, name) else { return Err(failure) };
            return late.again(context, &client, &answer(&late.ask)?);
        }
        (found, _) => found?,
    };
    let ask = Ask::read(wait.wait_id.as_str(), wait.kind.as_str(), &wait.asked());
    let answer = answer(&ask)?;
    let body = match client.post(&format!("/api/waits/{}/answer", wait.wait_id), &answer) {
        Err(failure) if failure.is_too_late() => {
            let late =
                late_answer::in_session(context, &client, wait.session_id.as_str(), wait.wait_id.as_str());
            return Err(late.map_or(failure, |late| late.failure(&answer)));
        }
        body => body?,
    };
    context.acknowledge(&body, format_args!("answered; watch it with: {}", attach(wait.session_id)))
}

/// Answers a wait by its token alone: whoever has one may not be allowed to look at anything.
fn answer_by_token(
    context: &Context,
    wait: &str,
    option: Option<&str>,
    text: Option<&str>,
    token: &str,
) -> Result<Exit, Failure> {
    let wait: WaitId = wait.parse().map_err(|_| usage("--token needs the whole id of its wait"))?;
    let answer = NewAnswer {
        option: option.map(str::to_owned),
        text: text.map(str::to_owned),
        token: Some(TokenText(token.to_owned())),
        ..NewAnswer::default()
    };
    let body = context.daemon_or_start()?.post(&format!("/api/waits/{wait}/answer"), &answer)?;
    context.acknowledge(&body, "answered")
}

fn usage(message: &str) -> Failure {
    Failure::usage("bad_answer", message.into())
        .hint("rekindle answer [WAIT] OPTION, or rekindle answer [WAIT] --text TEXT")
}

/// Returns the wait that a name means; without a name the only one, or the only one whose agent still waits.
pub(super) fn find<'a>(name: Option<&str>, waits: &'a [WaitView]) -> Result<&'a WaitView, Failure> {
    let means = |wait: &&WaitView| {
        let Some(name) = name else { return true };
        let bare = |text: &str, prefix: &str| text.strip_prefix(prefix).unwrap_or(text).to_owned();
        wait.wait_id.as_str() == name
            || bare(wait.wait_id.as_str(), "wait_").starts_with(&bare(name, "wait_"))
            || bare(wait.session_id.as_str(), "sess_").starts_with(&bare(name, "sess_"))
    };
    let mut matching: Vec<&WaitView> = waits.iter().filter(means).collect();
    let is_open = |wait: &&WaitView| wait.state != WaitState::Void;
    if name.is_none() && matching.iter().copied().filter(is_open).count() == 1 {
        matching.retain(is_open);
    }
    let list: String =
        matching.iter().map(|wait| format!("\n  {} of {}", wait.wait_id, wait.session_id)).collect();
    match matching.as_slice() {
        [one] => Ok(one),
        [] if waits.is_empty() => {
            Err(Failure::failed("nothing_asked", anyhow::anyhow!("there are no open questions"))
                .hint("rekindle ps"))
        }
        [] => {
            Err(Failure::usage("wait_unknown", "there is no such open question".into())
                .hint("rekindle waits"))
        }
        _ => Err(Failure::usage("wait_ambiguous", format!("{} open questions match", matching.len()))
            .hint(format!("name one:{list}"))),
    }
}

/// Refuses a wait's id that comes without an answer: it would be taken for the answer to another question.
fn half_an_answer(word: &str, waits: &[WaitView]) -> Result<(), Failure> {
    if !word.starts_with("wait_") {
        return Ok(());
    }
    let options = find(Some(word), waits).map_or_else(
        |_| String::new(),
        |wait| {
            let ask = Ask::read(wait.wait_id.as_str(), wait.kind.as_str(), &wait.asked());
            ask.options().into_iter().map(|(_, line)| format!("\n{line}")).collect()
        },
    );
    let message = format!("the answer to {word} is missing: give an option after its id");
    Err(Failure::usage("no_answer", message).hint(match options.as_str() {
        "" => format!("{}, or --text TEXT", ours(format_args!("answer {word} OPTION"))),
        options => {
            format!("{}, where OPTION is one of:{options}", ours(format_args!("answer {word} OPTION")))
        }
    }))
}

fn no_such_option(ask: &Ask, word: &str) -> Failure {
    let options: String = ask.options().into_iter().map(|(_, line)| format!("\n{line}")).collect();
    Failure::usage("no_such_option", format!("there is no option {word:?}"))
        .hint(format!("there is:{options}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wait_without_an_answer_is_not_taken_for_one() {
        let value = json!({"wait_id": "wait_01a", "session_id": "sess_02x", "run_id": "run_1", "kind": "permission",
            "state": "open", "since": "2026-02-21T10:01:25Z",
            "request": {"params": {"options": [{"optionId": "a", "name": "Allow"}]}}});
        let waits: [WaitView; 1] = [serde_json::from_value(value).expect("a wait")];
        let failure = half_an_answer("wait_01a", &waits).expect_err("no answer");
        let told = failure.to_json().to_string();
        assert!(failure.code() == "no_answer" && told.contains("answer wait_01a OPTION"), "{told}");
        assert!(told.contains("1  Allow"), "{told}");
        assert!(half_an_answer("yes", &waits).is_ok());
    }

    #[test]
    fn a_wait_is_named_by_its_beginning_its_session_or_not_at_all() {
        let wait = |id: &str, session: &str| -> WaitView {
            let value = json!({"wait_id": id, "session_id": session, "run_id": "run_1", "kind": "permission", "state": "open",
                "since": "2026-02-21T10:01:25Z"});
            serde_json::from_value(value).expect("a wait")
        };
        let waits = [wait("wait_01a", "sess_02x"), wait("wait_01b", "sess_02y")];
        let id = |name| {
            find(name, &waits)
                .map(|wait| wait.wait_id.to_string())
                .map_err(|failure| failure.code().to_owned())
        };
        assert_eq!(id(Some("01b")), Ok("wait_01b".into()));
        assert_eq!(id(Some("wait_01a")), Ok("wait_01a".into()));
        assert_eq!(id(Some("sess_02y")), Ok("wait_01b".into()));
        assert_eq!(id(Some("01")), Err("wait_ambiguous".into()));
        assert_eq!(id(None), Err("wait_ambiguous".into()));
        assert_eq!(id(Some("z")), Err("wait_unknown".into()));
        let mut gone = waits.clone();
        gone[0].state = WaitState::Void;
        assert_eq!(find(None, &gone).map(|wait| wait.wait_id.as_str()).ok(), Some("wait_01b"));
        gone[1].state = WaitState::Void;
        assert_eq!(
            find(None, &gone).map_err(|failure| failure.code().to_owned()).err(),
            Some("wait_ambiguous".into())
        );
        assert_eq!(find(None, &waits[..1]).map(|wait| wait.wait_id.as_str()).ok(), Some("wait_01a"));
    }
}
