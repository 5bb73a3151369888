//! Which options of a wait get a link. Pure: from what is asked to the options, and no other way to answer.

use rekindle_agent::profile::Profile;
use rekindle_agent::said::Choice;
use rekindle_domain::event::WaitKind;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Most links of one wait: more buttons than that nobody reads, and each is a record.
const MAX_LINKS: usize = 8;

/// Longest id of an option that gets a link, in bytes: it is kept with the token.
const MAX_OPTION_ID: usize = 256;

/// Longest label of a link, in characters: a button is one line.
const MAX_LABEL: usize = 80;

/// Returns the options of a wait that may be chosen by a link, in their order.
///
/// A permission gets links for *once* alone: whoever finds a link must not be able to allow anything for good, and an option
/// whose kind is not known may do just that. A question gets one for each of its choices. Words are taken by no link: what
/// somebody types who found one would be an instruction to an agent.
pub(super) fn linkable(kind: WaitKind, options: &[Choice]) -> Vec<Choice> {
    let is_once = |option: &Choice| match kind {
        WaitKind::Permission => matches!(option.kind.as_str(), "allow_once" | "reject_once"),
        _ => !option.kind.ends_with("_always"),
    };
    // The agent is told an id: one that stands there twice may mean the other option.
    let is_unique =
        |option: &Choice| options.iter().filter(|other| other.option_id == option.option_id).count() == 1;
    let has_name = |option: &Choice| (1..=MAX_OPTION_ID).contains(&option.option_id.len());
    let fitting = options.iter().filter(|option| is_once(option) && is_unique(option) && has_name(option));
    fitting.take(MAX_LINKS).cloned().collect()
}

/// Returns what may be chosen: as the agent's protocol has it, or, if a program asks, in `options` of its request.
pub(super) fn options_of(profile: &dyn Profile, is_outside: bool, request: &str) -> Vec<Choice> {
    if !is_outside {
        return profile.asked(request).map(|asked| asked.options).unwrap_or_default();
    }
    #[derive(Deserialize)]
    struct Request<'a> {
        #[serde(borrow, default)]
        options: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Offered {
        option_id: String,
        name: Option<String>,
        #[serde(default)]
        kind: String,
    }
    let request: Option<Request<'_>> = serde_json::from_str(request).ok();
    let offered = request.map(|request| request.options).unwrap_or_default();
    let offered = offered.into_iter().filter_map(|one| serde_json::from_str::<Offered>(one.get()).ok());
    let choice = |Offered { option_id, name, kind }: Offered| Choice {
        name: name.unwrap_or_else(|| option_id.clone()),
        option_id,
        kind,
    };
    offered.map(choice).collect()
}

/// Returns what a link is called: the option's name on one line.
pub(super) fn label(option: &Choice) -> String {
    let words = option.name.split_whitespace().collect::<Vec<_>>().join(" ");
    let name = if words.is_empty() { &option.option_id } else { &words };
    match name.char_indices().nth(MAX_LABEL) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use rekindle_agent::acp::Acp;
    use serde_json::json;

    use super::*;

    fn choice(option_id: &str, kind: &str) -> Choice {
        Choice { option_id: option_id.into(), name: option_id.into(), kind: kind.into() }
    }

    fn check(kind: WaitKind, options: &[(&str, &str)], expected: &[&str]) {
        let options: Vec<Choice> = options.iter().map(|(id, kind)| choice(id, kind)).collect();
        let found: Vec<String> = linkable(kind, &options).into_iter().map(|one| one.option_id).collect();
        assert_eq!(found, expected, "{kind:?} {options:?}");
    }

    #[test]
    fn a_permission_is_given_or_refused_once_and_never_for_good() {
        let four = [("a", "allow_once"), ("b", "allow_always"), ("c", "reject_once"), ("d", "reject_always")];
        check(WaitKind::Permission, &four, &["a", "c"]);
        // Nobody knows what these are.
        check(WaitKind::Permission, &[("a", ""), ("b", "allow"), ("c", "ALLOW_ONCE")], &[]);
        // The agent would be told an id that may mean always.
        check(
            WaitKind::Permission,
            &[("a", "allow_once"), ("a", "allow_always"), ("c", "reject_once")],
            &["c"],
        );
        check(WaitKind::Permission, &[], &[]);
    }

    #[test]
    fn a_question_gets_a_link_for_each_choice_up_to_a_limit() {
        check(WaitKind::Question, &[("pg", ""), ("lite", "")], &["pg", "lite"]);
        check(
            WaitKind::External,
            &[("go", ""), ("stop", "reject_once"), ("ever", "allow_always")],
            &["go", "stop"],
        );
        let long = "x".repeat(MAX_OPTION_ID + 1);
        check(WaitKind::Question, &[("", ""), (&long, ""), ("b", "")], &["b"]);
        let many: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|id| (id.as_str(), "")).collect();
        check(WaitKind::Question, &many, &["0", "1", "2", "3", "4", "5", "6", "7"]);
    }

    #[test]
    fn options_are_read_as_the_agent_or_the_program_offers_them() {
        let ids = |kind: WaitKind, request: &serde_json::Value| -> Vec<String> {
            let options = options_of(&Acp::default(), kind.is_outside(), &request.to_string());
            options
                .into_iter()
                .map(|option| format!("{} {} {}", option.option_id, option.name, option.kind))
                .collect()
        };
        let permission = json!({"id": 1, "method": "session/request_permission", "params": {"options": [
            {"optionId": "a", "name": "Yes", "kind": "allow_once"}]}});
        assert_eq!(ids(WaitKind::Permission, &permission), ["a Yes allow_once"]);
        let question = json!({"id": 1, "method": "elicitation/create", "params": {"message": "Which?",
            "requestedSchema": {"properties": {"db": {"enum": ["pg", "lite"]}}}}});
        assert_eq!(ids(WaitKind::Question, &question), ["pg pg ", "lite lite "]);
        let words = json!({"id": 1, "method": "elicitation/create", "params": {"message": "How?",
            "requestedSchema": {"properties": {"how": {"type": "string"}}}}});
        assert_eq!(ids(WaitKind::Question, &words), [""; 0], "words are taken by no link");
        let outside = json!({"title": "Deploy?", "options": [{"optionId": "go"}, {"name": "none"}, 7,
            {"optionId": "stop", "name": "Stop", "kind": "reject_once"}]});
        assert_eq!(ids(WaitKind::External, &outside), ["go go ", "stop Stop reject_once"]);
        for odd in [json!("text"), json!({"options": "no list"}), json!(null), json!([])] {
            assert_eq!(ids(WaitKind::External, &odd), [""; 0], "{odd}");
        }
    }

    #[test]
    fn a_label_is_one_line() {
        let named = |name: &str| label(&Choice { name: name.into(), ..choice("a", "") });
        assert_eq!(named("Yes,\n  do\tit"), "Yes, do it");
        assert_eq!(named(" \n"), "a");
        assert_eq!(named(&"ä".repeat(100)).chars().count(), MAX_LABEL + 1);
    }
}
