//! `rekindle search`: what was said and done in sessions, found by its words. Without a daemon the home itself is read.

use rekindle_client::clock::SystemClock;
use rekindle_client::{Client, Exit, Failure, http};
use rekindle_display::search_text::write_page;
use rekindle_domain::search::SearchWords;
use rekindle_domain::time::Clock;
use rekindle_service::search_home;
use rekindle_wire::view::SearchPage;
use serde_json::json;

use super::Context;
use crate::session_options::directory;

/// Search what was said and done in sessions
///
/// Finds records that have all the words, in upper or lower case: prompts, what agents said, commands, questions, and names of files.
/// The newest session comes first, and in each the newest record. What an agent thought and what its tools printed is not searched.
/// Works without a daemon.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle search flaky test
  rekindle search \"cargo publish\" --dir ~/src/app
  rekindle search src/main.rs --limit 100
  rekindle search deploy --json | jq -r '.matches[].session_id' | sort -u")]
pub(crate) struct Args {
    /// The words; a record has to have all of them
    #[arg(required = true)]
    words: Vec<String>,

    /// Show at most so many records
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,

    /// Only in sessions that work in this directory or below
    #[arg(long, value_name = "DIR")]
    dir: Option<std::path::PathBuf>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let query = args.words.join(" ");
    let words = SearchWords::parse(&query)
        .map_err(|error| Failure::usage("bad_search", error.to_string()).hint("rekindle search WORDS"))?;
    let below = match &args.dir {
        Some(dir) => Some(directory(Some(dir.as_path()), context.server.is_none())?),
        None => None,
    };
    let limit = args.limit as usize;
    let page = match context.ask(|client| fetch(client, &query, below.as_deref(), limit))? {
        Ok(page) => page,
        Err(_) => match context.offline_if_any()? {
            Some(home) => search_home(&home, &words, below.as_deref(), limit)
                .map_err(|error| Failure::failed("sessions_unreadable", error))?,
            // Without a home nothing was ever said.
            None => SearchPage::default(),
        },
    };
    context.print(&json!(page), |out| Ok(write_page(out, &page, limit, SystemClock.now())?))
}

/// Asks the daemon, page by page, until there is enough or no more.
fn fetch(client: &Client, query: &str, below: Option<&str>, limit: usize) -> Result<SearchPage, Failure> {
    let mut all = SearchPage::default();
    loop {
        let mut path = format!("/api/search?q={}&limit={}", http::escape(query), limit - all.matches.len());
        for (name, value) in [("cwd", below), ("cursor", all.next.as_deref())] {
            path.extend(value.map(|value| format!("&{name}={}", http::escape(value))));
        }
        let page: SearchPage = client.get(&path)?;
        all.matches.extend(page.matches);
        all.unreadable += page.unreadable;
        // A cursor that does not move would never end.
        let is_over = page.next.is_none() || page.next == all.next;
        all.next = page.next;
        if is_over || all.matches.len() >= limit {
            return Ok(all);
        }
    }
}
