//! `rekindle config`: what the configuration says, what is wrong with it, and where it is.

use std::io::Write;
use std::path::Path;

use rekindle_client::failure::{Exit, Failure};
use rekindle_daemon::config::{Config, ConfigFile, UnknownKey, as_toml, settings};
use rekindle_terminal::output::{self, plural};
use serde_json::json;

/// Show the configuration, check it, or print its path
///
/// The configuration is `config.toml` in `$XDG_CONFIG_HOME/rekindle` or `~/.config/rekindle`, or the file that
/// `$REKINDLE_CONFIG` names. Without a file the defaults apply. A running daemon reads it again at `rekindle restart`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rekindle config show                       every key, its value or its default
  rekindle config check && rekindle restart  checks the file, then reads it
  $EDITOR \"$(rekindle config path)\"")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Print every key with the value that applies: from the file, or the default
    #[command(after_help = "Examples:
  rekindle config show
  rekindle config show --json | jq")]
    Show,
    /// Check the file: exits 0 if it is in order, 1 if it has unknown keys, 2 if it cannot be used
    #[command(after_help = "Examples:
  rekindle config check && rekindle restart")]
    Check,
    /// Print the path of the file, whether it exists or not
    #[command(after_help = "Examples:
  $EDITOR \"$(rekindle config path)\"")]
    Path,
}

pub(super) fn run(json: bool, args: &Args) -> Result<Exit, Failure> {
    let file = ConfigFile::find().ok_or_else(|| {
        let message = "cannot tell where the configuration is: $HOME is not set".to_owned();
        Failure::usage("config_unknown", message).hint("name it with $REKINDLE_CONFIG")
    })?;
    match args.what {
        What::Path => print(json, &json!({"path": file.path}), &format!("{}\n", file.path.display())),
        What::Show => {
            let text = file.text()?.unwrap_or_default();
            let config = Config::parse(&text, &file.path)?;
            let settings = settings(&text);
            print(
                json,
                &json!({"path": file.path, "settings": settings, "unknown": config.unknown}),
                &as_toml(&settings),
            )?;
            if !json {
                config.unknown.iter().for_each(|key| anstream::eprintln!("{}", told(&file.path, key)));
            }
            Ok(Exit::Ok)
        }
        What::Check => {
            let text = file.text()?;
            let unknown = Config::parse(text.as_deref().unwrap_or_default(), &file.path)?.unknown;
            let path = file.path.display();
            let mut said: String = unknown.iter().map(|key| told(&file.path, key) + "\n").collect();
            said += &match (&text, unknown.len() as u64) {
                (None, _) => format!("{path} does not exist: the defaults apply\n"),
                (_, 0) => format!("{path} is valid\n"),
                (_, count) => format!("{}\n", plural(count, "problem")),
            };
            print(json, &json!({"path": file.path, "exists": text.is_some(), "unknown": unknown}), &said)?;
            Ok(if unknown.is_empty() { Exit::Ok } else { Exit::Failed })
        }
    }
}

fn told(path: &Path, key: &UnknownKey) -> String {
    rekindle_terminal::sanitise::line(&format!("{}, {key}", path.display()))
}

fn print(json: bool, value: &serde_json::Value, text: &str) -> Result<Exit, Failure> {
    let mut out = output::stdout();
    if json {
        writeln!(out, "{value}")?
    } else {
        write!(out, "{text}")?
    }
    Ok(Exit::Ok)
}
