//! Where the home is: `--home`, then `$REKINDLE_HOME`, then the XDG state directory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rekindle_client::default_home::{default_home, variable};

use rekindle_client::failure::Failure;

/// Names the home.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HomeArg {
    /// The home to use [default: $REKINDLE_HOME, else $XDG_STATE_HOME/rekindle, else ~/.local/state/rekindle]
    #[arg(long, value_name = "PATH", global = true, help_heading = "Everywhere")]
    home: Option<PathBuf>,
}

impl HomeArg {
    /// Returns what the command line names.
    pub(crate) fn given(&self) -> Option<&OsStr> {
        self.home.as_deref().map(Path::as_os_str)
    }

    /// Returns the home's path.
    pub(crate) fn path(&self) -> Result<PathBuf, Failure> {
        let named = self.home.clone().into_iter().chain(variable("REKINDLE_HOME")).next();
        let path = named.or_else(default_home).filter(|path| !path.as_os_str().is_empty());
        let path = path.ok_or_else(|| {
            Failure::usage("home_unknown", "cannot tell where the Rekindle home is: $HOME is not set".into())
                .hint("name it with --home PATH or $REKINDLE_HOME")
        })?;
        // So that what is said of it holds in every directory. Without a current one it stays as it is.
        Ok(std::path::absolute(&path).unwrap_or(path))
    }
}

/// Says so if there can be no home in a place where there is none: its directory is not there or cannot be looked into.
/// The directories above the usual place are made with it.
pub(crate) fn could_be(home: &Path) -> Result<(), Failure> {
    let Some(above) = home.parent() else { return Ok(()) };
    let why = match std::fs::read_dir(above) {
        // Nobody can put anything there.
        Ok(_) if above.starts_with("/proc") => "no home can be made there".into(),
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if default_home().as_deref() == Some(home) {
                return Ok(());
            }
            "it does not exist".into()
        }
        Err(error) => error.to_string(),
    };
    let error = anyhow::anyhow!(
        "there is no Rekindle home at {}, and none can be made in {}: {why}",
        home.display(),
        above.display()
    );
    Err(Failure::failed("home_impossible", error)
        .hint("name another home with --home PATH or $REKINDLE_HOME"))
}
