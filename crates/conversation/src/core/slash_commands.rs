//! Lines that are commands: which there are, and how they are completed. Pure.

use rekindle_display::live::diff::Styled;
use rekindle_terminal::output::{BOLD, DIM, PLAIN, columns, cut, wrap};

use super::status::Offer;

/// A command of the agent's own: it is sent as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentCommand {
    pub(crate) name: String,
    pub(crate) description: String,
}

/// A command of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slash {
    Cancel,
    Resume,
    Model,
    Mode,
    Diff,
    Rewind,
    Fork,
    Tasks,
    Detach,
    Help,
}

/// Our commands, what they are given, and what they do.
const COMMANDS: &[(&str, &str, Slash, &str)] = &[
    ("cancel", "", Slash::Cancel, "stops the agent, and drops queued messages"),
    ("resume", "", Slash::Resume, "continues what was interrupted"),
    ("model", "[NAME]", Slash::Model, "the agent's models, or another one from now on"),
    ("mode", "[NAME]", Slash::Mode, "the agent's modes, or another one from now on"),
    ("diff", "", Slash::Diff, "what the latest turn did to your files"),
    ("rewind", "[yes]", Slash::Rewind, "undoes the latest turn, files too; says first what it would do"),
    ("fork", "", Slash::Fork, "continues in a copy of this conversation; this one stays as it is"),
    ("tasks", "", Slash::Tasks, "the tasks that run and wait"),
    ("detach", "", Slash::Detach, "leaves; the agent keeps working (also Ctrl-D)"),
    ("help", "", Slash::Help, "this list"),
];

/// What keys do, in lines that fit a small terminal.
const KEYS: &[&str] = &[
    "Enter sends; Alt-Enter, or \\ and Enter, begins another line.",
    "Up and Down bring back what you sent, Tab completes, Ctrl-C clears the line.",
    "A question is answered by its number, y or n on an empty line, or by a word.",
];

/// Most modes or models that are named where another one was asked for.
const MOST_NAMED: usize = 20;

/// Columns of names beside which what they do is lined up: a longer one moves its own line only.
const MAX_NAME: usize = 24;

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed<'a> {
    /// A command of ours, and what stands behind it.
    Command(Slash, &'a str),
    /// It looks like a command, and there is none of this name.
    Unknown(&'a str),
    /// Something to say, the agent's own commands included.
    Text,
}

/// Returns the name of the command that a line begins with, if it looks like one; paths do not.
fn name(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix('/')?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-:.".contains(c));
    is_name.then(|| (name, argument.trim()))
}

/// Tells what a line is.
pub(super) fn read<'a>(line: &'a str, theirs: &[AgentCommand]) -> Typed<'a> {
    let Some((name, argument)) = name(line) else { return Typed::Text };
    if let Some((.., command, _)) = COMMANDS.iter().find(|(ours, ..)| *ours == name) {
        return Typed::Command(*command, argument);
    }
    if theirs.iter().any(|command| command.name == name) { Typed::Text } else { Typed::Unknown(name) }
}

/// What a line can be completed to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Completion {
    Nothing,
    /// This line.
    Line(String),
    /// One of these.
    Choices(Vec<String>),
}

/// Completes a command, or the mode or model behind one.
pub(super) fn complete(line: &str, theirs: &[AgentCommand], modes: &[Offer], models: &[Offer]) -> Completion {
    let Some(typed) = line.strip_prefix('/').filter(|typed| !typed.contains('\n')) else {
        return Completion::Nothing;
    };
    let (before, typed, names): (_, _, Vec<&str>) = match typed.split_once(' ') {
        None => {
            let ours = COMMANDS.iter().map(|(name, ..)| *name);
            ("/", typed, ours.chain(theirs.iter().map(|command| command.name.as_str())).collect())
        }
        Some(("mode", typed)) => ("/mode ", typed, modes.iter().map(|mode| mode.id.as_str()).collect()),
        Some(("model", typed)) => ("/model ", typed, models.iter().map(|model| model.id.as_str()).collect()),
        Some(_) => return Completion::Nothing,
    };
    let matching: Vec<&str> = names.into_iter().filter(|name| name.starts_with(typed)).collect();
    match matching.as_slice() {
        [] => Completion::Nothing,
        [one] => Completion::Line(format!("{before}{one} ")),
        several => {
            let common = common_beginning(several);
            if common.len() > typed.len() {
                Completion::Line(format!("{before}{common}"))
            } else {
                Completion::Choices(several.iter().map(|name| (*name).to_owned()).collect())
            }
        }
    }
}

fn common_beginning<'a>(names: &[&'a str]) -> &'a str {
    let Some((first, rest)) = names.split_first() else { return "" };
    let ends = first.char_indices().map(|(at, _)| at).chain([first.len()]);
    let common = ends.take_while(|end| rest.iter().all(|name| name.starts_with(&first[..*end])));
    &first[..common.last().unwrap_or(0)]
}

/// Returns the list of commands and keys for a terminal of a width.
pub(super) fn help(theirs: &[AgentCommand], width: usize) -> Vec<Styled> {
    let ours =
        COMMANDS.iter().map(|(name, argument, _, what)| (format!("/{name} {argument}"), (*what).to_owned()));
    let theirs: Vec<(String, String)> =
        theirs.iter().map(|command| (format!("/{}", command.name), command.description.clone())).collect();
    let most = ours.clone().map(|row| columns(&row.0)).chain(theirs.iter().map(|row| columns(&row.0)));
    let most = most.max().unwrap_or(0).min(MAX_NAME);
    let begin = |name: &str| format!("  {name}{}  ", " ".repeat(most.saturating_sub(columns(name))));
    let row = |(name, what): (String, String)| {
        let text = wrap(&what, width, &begin(&name), &" ".repeat(most + 4));
        text.lines().map(|line| (PLAIN, line.trim_end().to_owned())).collect::<Vec<_>>()
    };
    // Some agents have dozens, and say pages of each: those come first, in a row each, and ours are still to be seen.
    let their_row = |(name, what): (String, String)| {
        let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
        (PLAIN, cut(format!("{}{what}", begin(&name)).trim_end(), width.saturating_sub(1)))
    };
    let mut lines = Vec::new();
    if !theirs.is_empty() {
        lines.push((BOLD, "The agent's own".to_owned()));
        lines.extend(theirs.into_iter().map(their_row));
    }
    lines.push((BOLD, "Commands".to_owned()));
    lines.extend(ours.flat_map(row));
    lines.extend(KEYS.iter().map(|keys| (DIM, (*keys).to_owned())));
    lines
}

/// Finds the mode or model that a name means: an id, or what people read.
pub(super) fn find<'a>(offers: &'a [Offer], name: &str) -> Option<&'a Offer> {
    let named = offers.iter().find(|offer| offer.id == name);
    named.or_else(|| offers.iter().find(|offer| offer.name.eq_ignore_ascii_case(name)))
}

/// Returns the id of the mode or model that a name means, or why there is none. Where nothing is known of what the agent offers, it is
/// the name itself: only the agent can refuse that.
pub(super) fn choose(what: &str, offers: &[Offer], name: &str) -> Result<String, String> {
    match find(offers, name) {
        Some(offer) => Ok(offer.id.clone()),
        None if offers.is_empty() => Ok(name.to_owned()),
        None => {
            let ids: Vec<&str> = offers.iter().take(MOST_NAMED).map(|offer| offer.id.as_str()).collect();
            let more = offers.len().saturating_sub(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Err(format!("the agent has no {what} {name:?}; it offers: {}{more}", ids.join(", ")))
        }
    }
}

/// Lists modes or models; the one that is asked for is marked, or else the agent's own choice.
pub(super) fn list(what: &str, offers: &[Offer], wanted: Option<&str>) -> Vec<Styled> {
    if offers.is_empty() {
        let text = format!("the agent has not said which {what}s it offers; /{what} NAME asks for one");
        return vec![(DIM, text)];
    }
    let most = offers.iter().map(|offer| columns(&offer.id)).max().unwrap_or(0).min(MAX_NAME);
    let is_wanted = |offer: &Offer| wanted.map_or(offer.current, |wanted| wanted == offer.id);
    let line = |offer: &Offer| {
        let mark = if is_wanted(offer) { '*' } else { ' ' };
        let room = " ".repeat(most.saturating_sub(columns(&offer.id)));
        let name = if offer.name == offer.id { String::new() } else { format!("{room}  {}", offer.name) };
        (if is_wanted(offer) { BOLD } else { PLAIN }, format!("{mark} {}{name}", offer.id))
    };
    let last = (DIM, format!("/{what} NAME chooses one"));
    offers.iter().map(line).chain([last]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn theirs() -> Vec<AgentCommand> {
        let command =
            |name: &str| AgentCommand { name: name.to_owned(), description: "does something".to_owned() };
        vec![command("review"), command("mcp:fetch")]
    }

    fn offers() -> Vec<Offer> {
        let offer = |id: &str, name: &str, current| Offer { id: id.into(), name: name.into(), current };
        vec![offer("ask", "Ask first", true), offer("plan", "plan", false), offer("yolo", "Never ask", false)]
    }

    #[test]
    fn commands_are_told_from_paths_and_from_the_agent_s_own() {
        for (line, expected) in [
            ("/cancel", Typed::Command(Slash::Cancel, "")),
            ("/mode  yolo ", Typed::Command(Slash::Mode, "yolo")),
            ("/review the tests", Typed::Text),
            ("/mcp:fetch x", Typed::Text),
            ("/etc/passwd is readable", Typed::Text),
            ("/ is full", Typed::Text),
            ("/", Typed::Text),
            ("/nosuch", Typed::Unknown("nosuch")),
            ("say /cancel", Typed::Text),
            // A blank in front of it makes it something to say.
            (" /cancel", Typed::Text),
        ] {
            assert_eq!(read(line, &theirs()), expected, "{line}");
        }
    }

    #[test]
    fn names_are_completed_as_far_as_they_are_sure() {
        let line = |text: &str| Completion::Line(text.to_owned());
        for (typed, expected) in [
            ("/ca", line("/cancel ")),
            ("/mod", line("/mode")),
            ("/mode", Completion::Choices(vec!["model".into(), "mode".into()])),
            ("/m", Completion::Choices(vec!["model".into(), "mode".into(), "mcp:fetch".into()])),
            ("/rev", line("/review ")),
            ("/mode y", line("/mode yolo ")),
            ("/model x", Completion::Nothing),
            ("/x", Completion::Nothing),
            ("text", Completion::Nothing),
            ("/diff x", Completion::Nothing),
        ] {
            assert_eq!(complete(typed, &theirs(), &offers(), &[]), expected, "{typed}");
        }
    }

    #[test]
    fn lists_have_everything_and_mark_what_is_wanted() {
        let text =
            |lines: Vec<Styled>| lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n");
        let shown = text(help(&theirs(), 80));
        for (name, ..) in COMMANDS {
            assert!(shown.contains(&format!("\n  /{name} ")), "{name} in\n{shown}");
        }
        assert!(shown.contains("/mcp:fetch"), "{shown}");
        assert!(!text(help(&[], 80)).contains("The agent's own"));
        let long = AgentCommand { name: "go".into(), description: "one two\nthree four five six".into() };
        let narrow = text(help(&[long], 34));
        assert!(
            narrow.starts_with(&format!("The agent's own\n  /go{:12}one two three f…\nCommands\n", "")),
            "{narrow}"
        );
        let expected = format!("\n  /tasks{:9}the tasks that\n{:17}run and wait\n", "", "");
        assert!(narrow.contains(&expected), "{narrow}");
        assert_eq!(
            text(list("mode", &offers(), None)),
            "* ask   Ask first\n  plan\n  yolo  Never ask\n/mode NAME chooses one"
        );
        assert!(text(list("mode", &offers(), Some("yolo"))).contains("\n* yolo"));
        assert!(text(list("model", &[], None)).contains("/model NAME"));
        assert_eq!(find(&offers(), "never ask").map(|offer| offer.id.as_str()), Some("yolo"));
        assert_eq!(find(&offers(), "no such"), None);
    }
}
