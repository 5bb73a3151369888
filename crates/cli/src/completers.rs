//! What shells complete beside commands and options: ids, from the daemon that the command line or the environment means.

use std::ffi::OsStr;

use clap::Parser;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use rekindle_agent::known::TABLE;
use rekindle_client::completion::{IdKind, complete};

use crate::Shared;

/// Completes ids of this kind.
pub(crate) fn ids(what: IdKind) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| candidates(what, typed).unwrap_or_default())
}

/// Completes names of agents.
pub(crate) fn agents() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let fits =
            TABLE.iter().filter(|agent| typed.to_str().is_some_and(|typed| agent.id.starts_with(typed)));
        fits.map(|agent| CompletionCandidate::new(agent.id).help(Some(agent.title.into()))).collect()
    })
}

/// What of the command line tells which daemon is meant.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Whom {
    #[command(flatten)]
    shared: Shared,
}

fn candidates(what: IdKind, typed: &OsStr) -> Option<Vec<CompletionCandidate>> {
    let whom = Whom::try_parse_from(whom_args(
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
    ))
    .ok()?
    .shared;
    let server = whom.server.find(whom.home.given().is_some()).ok()?;
    let found = complete(what, typed.to_str()?, whom.home.path().unwrap_or_default(), server);
    let candidate = |(order, one): (usize, rekindle_client::completion::Completion)| {
        // The newest comes first.
        let about = Some(one.about).filter(|about| !about.is_empty()).map(Into::into);
        CompletionCandidate::new(one.name).help(about).display_order(Some(order))
    };
    Some(found.into_iter().enumerate().map(candidate).collect())
}

/// Returns the options of a half-written command line that tell which daemon is meant, with their values.
fn whom_args(line: Vec<String>) -> Vec<String> {
    let mut found = Vec::new();
    let mut words = line.into_iter();
    while let Some(word) = words.next() {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        if ["--home", "--server", "--token-file", "--ca"].contains(&name) {
            let has_value = word.contains('=');
            found.push(word);
            if !has_value {
                found.extend(words.next());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_tells_which_daemon_is_meant() {
        let args = |line: &str| whom_args(line.split(' ').map(str::to_owned).collect()).join(" ");
        assert_eq!(args("rekindle -- rekindle --home /h attach 01"), "--home /h");
        assert_eq!(
            args("rekindle -- rekindle attach --server=http://x --ca c 01"),
            "--server=http://x --ca c"
        );
        assert_eq!(args("rekindle -- rekindle send 01 --home"), "--home");
    }
}
