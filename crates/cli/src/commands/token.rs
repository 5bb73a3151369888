//! `rekindle token`: who may speak to the daemon over TCP. Works on the home itself, with or without a daemon; one that runs
//! notices at once.

use std::io::Write;

use rekindle_client::clock::SystemClock;
use rekindle_client::failure::{Exit, Failure};
use rekindle_display::short_id::{short, short_len};
use rekindle_domain::access::{AccessToken, NewAccess, Scope, Standing};
use rekindle_domain::age::Age;
use rekindle_domain::id::AccessId;
use rekindle_domain::time::{Clock, Timestamp};
use rekindle_service::access::{AccessFile, ChangeError};
use rekindle_store::access_list::{AccessError, Used};
use rekindle_store::home;
use rekindle_store::layout::Layout;
use rekindle_terminal::output::{self, BOLD, DIM, PLAIN, WARN, plural, styled};
use serde_json::json;

use super::Context;
use crate::possible_values::one_of;

/// An end that is nearer than this is told to the minute.
const SOON: u64 = 2 * 86_400_000;

/// A time beyond this is one that nobody means: ten thousand years.
const LONGEST: i64 = 10_000 * 366 * 86_400_000;

/// Manage access tokens for TCP clients
///
/// `rekindle serve --listen` lets in callers with an access token only. A token is shown once, when it is made; only a
/// hash of it is kept. A running daemon notices at once what is created or revoked.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle token create --scope admin --name laptop > laptop.token
  rekindle token ls
  rekindle token revoke tok_01khz0p6r8")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Create(CreateArgs),
    Ls(LsArgs),
    Revoke(RevokeArgs),
}

/// Create a token and print it, this once
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle token create         # may look, for 30 days
  (umask 077; rekindle token create --scope admin --name laptop > laptop.token)
  rekindle token create --scope answer --ttl 12h --name phone")]
struct CreateArgs {
    /// What it may do
    #[arg(long, value_parser = one_of::<Scope>(SCOPES), default_value = "read")]
    scope: Scope,

    /// How long it is valid: 45s, 30m, 12h, 30d, or never for no end
    #[arg(long, value_name = "TIME", default_value = "30d", value_parser = ttl)]
    ttl: Ttl,

    /// A name for it: letters, digits and . _ - @
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// List tokens: what each may do, until when, and when it was last used
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle token ls
  rekindle token ls -a --json |
    jq -r '.tokens[] | select(.last_used_at == null) | .id'")]
struct LsArgs {
    /// Also list expired and revoked tokens
    #[arg(long, short)]
    all: bool,
}

/// Revoke tokens: they are refused from now on, and their open streams end
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle token revoke tok_01khz0p6r8")]
struct RevokeArgs {
    /// The tokens' ids, or beginnings of them; `tok_` may be left out
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// What a token may do.
const SCOPES: &[(&str, &str)] = &[
    ("read", "Look: sessions, logs, events"),
    ("answer", "Look, and answer what agents ask"),
    ("admin", "Everything: run agents, cancel, remove, stop the daemon"),
];

/// Milliseconds, or for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ttl(Option<i64>);

fn ttl(text: &str) -> Result<Ttl, String> {
    if text == "never" {
        return Ok(Ttl(None));
    }
    let millis = text.parse::<Age>().ok().and_then(|age| i64::try_from(age.0.as_millis()).ok());
    let millis = millis.filter(|millis| (1..=LONGEST).contains(millis));
    millis
        .map(|millis| Ttl(Some(millis)))
        .ok_or_else(|| "a number with s, m, h or d behind it, or never".into())
}

pub(super) fn run(context: &Context, args: Args) -> Result<Exit, Failure> {
    let disk = context.disk();
    let list = AccessFile::of_home(&*disk, &context.home, SystemClock.now());
    match args.what {
        What::Create(args) => {
            // The first command that writes makes the home.
            home::prepare(&*disk, &Layout::new(&context.home))?;
            create(context, &list, args)
        }
        What::Ls(args) => ls(context, &list, &args),
        What::Revoke(args) => revoke(context, &list, &args),
    }
}

fn create(context: &Context, list: &AccessFile<'_>, args: CreateArgs) -> Result<Exit, Failure> {
    let new = NewAccess { name: args.name, scope: args.scope, ttl_millis: args.ttl.0 };
    let (scope, name) = (new.scope, new.name.clone());
    let expires_at = args.ttl.0.map(|ttl| list.now().plus_millis(ttl));
    let (id, token) = list.create(new).map_err(refused)?;
    let mut out = std::io::stdout().lock();
    if context.json {
        let shown = json!({"token": token, "id": id, "name": name, "scope": scope,
            "created_at": list.now(), "expires_at": expires_at});
        writeln!(out, "{shown}")?;
        return Ok(Exit::Ok);
    }
    // The token alone, so that it can go into a file.
    writeln!(out, "{token}")?;
    out.flush()?;
    let until = expires_at.map_or("for ever".into(), |at| format!("until {}", minute(at)));
    anstream::eprintln!(
        "it may {}, {until}; it is not shown again. rekindle token revoke {id} revokes it",
        scope_text(scope)
    );
    Ok(Exit::Ok)
}

fn scope_text(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "look",
        Scope::Answer => "look and answer",
        Scope::Admin => "do everything",
    }
}

fn ls(context: &Context, list: &AccessFile<'_>, args: &LsArgs) -> Result<Exit, Failure> {
    let (tokens, used) = list.list().map_err(unreadable)?;
    let now = list.now();
    let all = tokens.tokens.len();
    let shown: Vec<(&AccessId, &AccessToken)> = tokens
        .tokens
        .iter()
        .filter(|(_, token)| args.all || token.standing(now) == Standing::Active)
        .collect();
    let described = shown.iter().map(|(id, token)| {
        json!({"id": id, "name": token.name, "scope": token.scope, "standing": token.standing(now),
            "created_at": token.created_at, "expires_at": token.expires_at,
            "revoked_at": token.revoked_at, "last_used_at": used.get(*id)})
    });
    context.print(&json!({"tokens": described.collect::<Vec<_>>()}), |out| {
        table(out, &shown, &used, now)?;
        if all == 0 {
            writeln!(out, "no access tokens: no client is let in over TCP; rekindle token create makes one")?;
        } else if shown.len() < all {
            let hidden = plural((all - shown.len()) as u64, "expired or revoked token");
            writeln!(out, "{}", styled(DIM, format_args!("{hidden} hidden: rekindle token ls -a")))?;
        }
        Ok(())
    })
}

/// Writes a line for each token; when it was made is left out where there is no room for it.
fn table(
    out: &mut dyn Write,
    shown: &[(&AccessId, &AccessToken)],
    used: &Used,
    now: Timestamp,
) -> std::io::Result<()> {
    let len = short_len(shown.iter().map(|(id, _)| id.as_str()));
    let row = |(id, token): &(&AccessId, &AccessToken)| {
        let last = used.get(*id).map_or("never used".into(), |at| format!("used {}", output::ago(*at, now)));
        let ended = token.standing(now) != Standing::Active;
        vec![
            (BOLD, format!("{}_{}", AccessId::PREFIX, short(id.as_str(), len))),
            (PLAIN, token.name.clone().unwrap_or_else(|| "-".into())),
            (PLAIN, token.scope.as_str().into()),
            (if ended { WARN } else { DIM }, expiry_text(token, now)),
            (DIM, last),
            (DIM, format!("made {}", day(token.created_at))),
        ]
    };
    let mut rows: Vec<_> = shown.iter().map(row).collect();
    let (mut lines, width) = output::table(&rows);
    if width > output::width() + 2 {
        rows.iter_mut().for_each(|row| row.truncate(5));
        lines = output::table(&rows).0;
    }
    lines.iter().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

fn expiry_text(token: &AccessToken, now: Timestamp) -> String {
    match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!("revoked {}", output::ago(at, now)),
        (None, Some(at)) if at <= now => format!("expired {}", output::ago(at, now)),
        (None, Some(at)) if at.millis_since(now) < SOON => format!("until {}", minute(at)),
        (None, Some(at)) => format!("until {}", day(at)),
        (None, None) => "for ever".into(),
    }
}

fn day(at: Timestamp) -> String {
    at.to_string().chars().take_while(|c| *c != 'T').collect()
}

fn minute(at: Timestamp) -> String {
    let text = at.to_string();
    text.get(..16).map_or(text.clone(), |text| format!("{}Z", text.replace('T', " ")))
}

fn revoke(context: &Context, list: &AccessFile<'_>, args: &RevokeArgs) -> Result<Exit, Failure> {
    let mut out = output::stdout();
    for name in &args.ids {
        let (id, stood) = list.revoke(name).map_err(refused)?;
        let before = match stood {
            Standing::Active => "",
            Standing::Expired => "; it had expired before",
            Standing::Revoked => "; it was before",
        };
        if context.json {
            writeln!(out, "{}", json!({"revoked": id, "stood": stood}))?;
        } else {
            writeln!(out, "revoked {id}{before}")?;
        }
        out.flush()?;
    }
    Ok(Exit::Ok)
}

fn refused(error: ChangeError) -> Failure {
    match error {
        ChangeError::List(error) => unreadable(error),
        ChangeError::Unknown(_) => {
            Failure::usage("token_unknown", error.to_string()).hint("rekindle token ls -a")
        }
        ChangeError::Ambiguous { ref ids, .. } => {
            let list: String = ids.iter().take(8).map(|id| format!("\n  {id}")).collect();
            Failure::usage("token_ambiguous", error.to_string()).hint(format!("give more of it:{list}"))
        }
        ChangeError::Bad(error) => Failure::usage("bad_token", error.to_string()),
        ChangeError::NoRandomness(_) => Failure::failed("no_random_numbers", error),
    }
}

fn unreadable(error: AccessError) -> Failure {
    let hint = match &error {
        AccessError::Newer { .. } => "nothing was changed; install the Rekindle that wrote it".into(),
        AccessError::Damaged { path, .. } => format!(
            "nothing was changed and no client is let in over TCP; set it aside and create new tokens: mv {0} {0}.bad",
            path.display()
        ),
        AccessError::Busy(_) => "try again; if it stays so, find out which process has it: fuser".into(),
        AccessError::Io(_) => "rekindle doctor checks the home".into(),
    };
    Failure::failed("tokens_unreadable", error).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_with_a_unit() {
        assert_eq!(ttl("30d"), Ok(Ttl(Some(30 * 86_400_000))));
        assert_eq!(ttl("1s"), Ok(Ttl(Some(1000))));
        assert_eq!(ttl("never"), Ok(Ttl(None)));
        for bad in ["", "0d", "30", "d", "-1d", "1.5h", "1w", "99999999999d"] {
            assert!(ttl(bad).is_err(), "{bad}");
        }
    }
}
