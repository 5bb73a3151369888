//! `rekindle serve`: the daemon itself. In the background it leaves the terminal, says on its pipe when it is ready, and
//! writes everything else to its log.

use std::io::Write;
use std::path::PathBuf;

use rekindle_client::daemon_file::DaemonFile;
use rekindle_client::failure::{Exit, Failure};
use rekindle_client::listen_options::{Address, Listening};
use rekindle_client::start::Ready;
use rekindle_daemon::Start;
use rekindle_holder::descriptors::close_inherited;

use super::Context;

/// Run the daemon here, in the foreground
///
/// `rekindle run` starts a daemon in the background if none is running, so you need this only for services and for debugging.
/// Agents outlive the daemon; the next one takes them over.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle serve
  rekindle serve --takeover
  rekindle serve --listen 127.0.0.1:7700   # over TCP too, see `rekindle token`
  rekindle serve --listen 0.0.0.0:7700 --host box.example \\
    --tls-cert box.pem --tls-key box.key

To listen in every start, whoever starts it, put it into config.toml:
  [serve]
  listen = [\"127.0.0.1:7700\"]      # tls_cert, tls_key and hosts likewise

Its log goes to stderr. For more of it, or for programs:
  REKINDLE_LOG=debug                    # error, warn, info, debug, trace, off
  REKINDLE_LOG='rekindle_store=debug'   # of one part
  REKINDLE_LOG='warn,[session{id=sess_01khz0p6r8}]=debug'   # of one session
  REKINDLE_LOG_FORMAT=json
or `filter` and `format` in the section [log] of config.toml")]
pub(crate) struct Args {
    /// Replace a running daemon; agents keep working
    #[arg(long)]
    takeover: bool,

    /// Also listen on TCP, for clients with an access token; port 0 picks a free one. Can be repeated
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<Address>,

    /// The certificate for TLS, in PEM form; needed beyond this machine
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "listen")]
    tls_cert: Option<PathBuf>,

    /// The certificate's key, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Another host name that TCP clients may use for this machine. Can be repeated
    #[arg(long = "host", value_name = "NAME", requires = "listen")]
    hosts: Vec<String>,

    /// What the daemon before us was told, to be done again
    #[arg(long, hide = true, value_parser = again)]
    again: Option<Listening>,

    /// Run in the background, and print a line on stdout when ready
    #[arg(long, hide = true)]
    background: bool,
}

fn again(text: &str) -> Result<Listening, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Says that the daemon listens there; to be called once it does.
fn announce(background: bool, place: &DaemonFile, note: Option<String>) -> Result<(), Failure> {
    if !background {
        let elsewhere = place.listen.as_ref().map(|urls| format!(" and {urls}")).unwrap_or_default();
        let (version, socket) = (&place.version, place.socket.display());
        anstream::eprintln!("rekindle {version} listens at {socket}{elsewhere}");
        if let Some(note) = note {
            anstream::eprintln!("note: {note}");
        }
        return Ok(());
    }
    let line = serde_json::to_string(&Ready { ready: place.clone(), note });
    print_line(&line.map_err(|error| Failure::failed("output", error))?);
    // Whoever waited reads the end of the pipe; what is printed from here on goes to the log.
    rustix::stdio::dup2_stdout(std::io::stderr()).map_err(|error| Failure::failed("output", error))
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Failure> {
    if args.background {
        // What whoever started us has open is theirs: a lock or a pipe of a script would be kept for as long as we live.
        close_inherited();
        // It fails only for the leader of a process group, which someone else made us: then we stay in it.
        let _ = rustix::process::setsid();
    }
    let outcome = serve(context, args).map_err(|failure| match failure.code() {
        "home_in_use" if !args.background => failure.hint(
            "`rekindle serve --takeover` replaces it while agents keep working; --home PATH names another home",
        ),
        _ => failure,
    });
    if let (true, Err(failure)) = (args.background, &outcome) {
        print_line(&failure.to_json().to_string());
    }
    outcome
}

fn serve(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let flags = Listening {
        listen: args.listen.clone(),
        tls_cert: args.tls_cert.clone(),
        tls_key: args.tls_key.clone(),
        hosts: args.hosts.clone(),
    };
    let start = Start {
        takeover: args.takeover,
        flags: flags.absolute(),
        again: args.again.clone(),
        foreground: !args.background,
    };
    rekindle_daemon::run(&context.home, start, |place, note| announce(args.background, place, note))
}

/// Says one line on stdout. Nobody may be there to read it, which is no reason to end.
fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
