//! Which lines are logged, and in which form: what variables ask for, else the configuration. A wish that makes no sense is told
//! and passed over: it costs neither the log nor the daemon.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::config::LogConfig;

/// What is logged where nothing is asked for; what is asked for is added to it, so that a wish for more of one part, or one that is
/// meant for other programs, does not silence the rest.
const USUAL: &str = "info";

/// How our own modules are named.
const OURS: &str = "rekindle";

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// For people.
    Text,
    /// A JSON object a line.
    Json,
}

/// What is logged, and how.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Directives of an [`EnvFilter`] that can be parsed.
    pub(super) filter: String,
    pub(super) format: Format,
    /// What was asked for and makes no sense.
    pub(super) warnings: Vec<String>,
}

impl Choice {
    /// Chooses by what variables and the configuration say.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>, config: &LogConfig) -> Choice {
        let variable = |name: &'static str| Some((name, variable(name)?));
        let setting = |name: &'static str, value: &Option<String>| Some((name, value.clone()?));
        let first = |wishes: [Option<(&'static str, String)>; 3]| {
            wishes.into_iter().flatten().find(|(_, text)| !text.trim().is_empty())
        };
        let mut warnings = Vec::new();
        let filter = first([
            variable("REKINDLE_LOG"),
            variable("RUST_LOG"),
            setting("filter in [log] of the configuration", &config.filter),
        ]);
        let filter = filter.and_then(|(name, text)| match directives(name, &text) {
            Ok(filter) => Some(filter),
            Err(why) => {
                warnings.push(format!("{name} is ignored and `{USUAL}` is used: {text:?}: {why}"));
                None
            }
        });
        let format = first([
            variable("REKINDLE_LOG_FORMAT"),
            setting("format in [log] of the configuration", &config.format),
            None,
        ]);
        let format = match format.as_ref().map(|(name, text)| (name, text.trim())) {
            None | Some((_, "text")) => Format::Text,
            Some((_, "json")) => Format::Json,
            Some((name, other)) => {
                warnings.push(format!("{name} is ignored: {other:?} is neither `text` nor `json`"));
                Format::Text
            }
        };
        Choice { filter: filter.unwrap_or_else(|| USUAL.to_owned()), format, warnings }
    }
}

/// Returns the directives of a filter as it counts.
fn directives(name: &str, text: &str) -> Result<String, String> {
    let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let filter = format!("{USUAL},{}", words.join(","));
    EnvFilter::builder().parse(&filter).map_err(|error| error.to_string())?;
    match unknown_word(&words).filter(|_| name != "RUST_LOG") {
        Some(word) => Err(format!(
            "`{word}` is neither a level (error, warn, info, debug, trace, off) nor a module ({OURS}_…)"
        )),
        None => Ok(filter),
    }
}

/// Finds a word that stands alone and means nothing here: a misspelt level would be taken for the name of a module.
fn unknown_word<'a>(words: &[&'a str]) -> Option<&'a str> {
    let mut alone = words.iter().filter(|word| !word.contains(['=', '[', ']', '{', '}']));
    alone.find(|word| word.parse::<LevelFilter>().is_err() && !word.starts_with(OURS)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables = &'static [(&'static str, &'static str)];

    fn choose(variables: &[(&str, &str)], filter: Option<&str>, format: Option<&str>) -> Choice {
        let config = LogConfig { filter: filter.map(str::to_owned), format: format.map(str::to_owned) };
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Choice::of(|name| find(name).map(|(_, value)| (*value).to_owned()), &config)
    }

    #[test]
    fn variables_come_before_the_configuration_and_what_is_asked_for_is_added_to_the_usual() {
        let table: [(Variables, Option<&str>, &str); 9] = [
            (&[], None, "info"),
            (&[("REKINDLE_LOG", "")], None, "info"),
            (&[], Some("debug"), "info,debug"),
            (&[("RUST_LOG", "warn")], Some("debug"), "info,warn"),
            (&[("RUST_LOG", "warn"), ("REKINDLE_LOG", "trace")], Some("debug"), "info,trace"),
            (&[("REKINDLE_LOG", " "), ("RUST_LOG", "warn")], None, "info,warn"),
            (&[("RUST_LOG", "another_program=trace,other")], None, "info,another_program=trace,other"),
            (&[("REKINDLE_LOG", "rekindle_store=debug")], None, "info,rekindle_store=debug"),
            (
                &[("REKINDLE_LOG", "warn,[session{id=sess_1}]=debug")],
                None,
                "info,warn,[session{id=sess_1}]=debug",
            ),
        ];
        for (variables, filter, expected) in table {
            let choice = choose(variables, filter, None);
            assert_eq!(
                (choice.filter.as_str(), choice.warnings.len()),
                (expected, 0),
                "{variables:?}: {choice:?}"
            );
        }
    }

    #[test]
    fn a_filter_that_does_not_parse_is_told_and_the_usual_counts() {
        for text in ["inof", "rekindle_store=loud", "debug,all", "rekindle=debug=trace"] {
            let choice = choose(&[("REKINDLE_LOG", text)], None, None);
            assert_eq!(choice.filter, "info", "{text}");
            assert!(
                matches!(&choice.warnings[..], [told] if told.contains("REKINDLE_LOG") && told.contains(text)),
                "{choice:?}"
            );
        }
        let choice = choose(&[], Some("every=thing"), None);
        assert!(matches!(&choice.warnings[..], [told] if told.contains("[log]")), "{choice:?}");
    }

    #[test]
    fn the_form_is_text_unless_json_is_asked_for() {
        let table: [(Variables, Option<&str>, Format, usize); 6] = [
            (&[], None, Format::Text, 0),
            (&[], Some("json"), Format::Json, 0),
            (&[("REKINDLE_LOG_FORMAT", "text")], Some("json"), Format::Text, 0),
            (&[("REKINDLE_LOG_FORMAT", "json")], None, Format::Json, 0),
            (&[("REKINDLE_LOG_FORMAT", "xml")], Some("json"), Format::Text, 1),
            (&[], Some("JSON"), Format::Text, 1),
        ];
        for (variables, format, expected, warnings) in table {
            let choice = choose(variables, None, format);
            assert_eq!(
                (choice.format, choice.warnings.len()),
                (expected, warnings),
                "{variables:?}: {choice:?}"
            );
        }
    }
}
