//! `rekindle serve`: the daemon itself. In the background it leaves the terminal, says on its pipe when it is ready, and
//! writes everything else to its log.

use std::io::Write;
use std::path::Path;

use super::Context;
use crate::client::place::Place;
use crate::client::start::Ready;
use crate::failure::{Exit, Failure};

/// Run the daemon here, in the foreground
///
/// `rekindle run` starts one in the background when none runs, so that this is for services and for looking into
/// things. Agents outlive it; the next one takes them over.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle serve
  rekindle serve --takeover")]
pub(crate) struct Args {
    /// Take the place of a daemon that runs; agents work on
    #[arg(long)]
    takeover: bool,

    /// Leave the terminal, and say on stdout when ready
    #[arg(long, hide = true)]
    background: bool,
}

/// How a daemon says that it is ready.
pub(crate) struct Announce<'a> {
    home: &'a Path,
    background: bool,
}

impl Announce<'_> {
    /// Says that the daemon listens there; to be called once it does.
    pub(crate) fn ready(self, place: &Place) -> Result<(), Failure> {
        place.write(self.home).map_err(|error| Failure::failed("daemon_file", error))?;
        if !self.background {
            anstream::eprintln!("rekindle {} listens at {}", place.version, place.socket.display());
            return Ok(());
        }
        let line = serde_json::to_string(&Ready { ready: place.clone() });
        let line = line.map_err(|error| Failure::failed("output", error))?;
        say(&line);
        // Whoever waited reads the end of the pipe; what is printed from here on goes to the log.
        rustix::stdio::dup2_stdout(std::io::stderr()).map_err(|error| Failure::failed("output", error))
    }
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    if args.background {
        // It fails only for the leader of a process group, which someone else made us: then we stay in it.
        let _ = rustix::process::setsid();
    }
    let outcome = serve(context, args).map_err(|failure| match failure.code() {
        "home_in_use" if !args.background => failure.hint(
            "`rekindle serve --takeover` takes its place while agents work on; --home PATH names another home",
        ),
        _ => failure,
    });
    if let (true, Err(failure)) = (args.background, &outcome) {
        say(&failure.to_json().to_string());
    }
    outcome
}

fn serve(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let announce = Announce { home: &context.home, background: args.background };
    crate::daemon::run(context, args.takeover, |place| announce.ready(place))
}

/// Says one line on stdout. Nobody may be there to read it, which is no reason to end.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
