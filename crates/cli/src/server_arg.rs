//! A daemon elsewhere: `--server`, with the token that is shown to it and the certificates that are trusted. What the command
//! line names counts before what the environment does, and a home that it names counts before a server of the environment.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rekindle_client::default_home::variable;
use rekindle_client::failure::Failure;
use rekindle_client::server::{Secret, Server};

/// More than a token ever has.
const MAX_TOKEN: usize = 4096;

/// Names a daemon elsewhere.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerArg {
    /// Speak to a daemon that listens on TCP, https://HOST:PORT or http://127.0.0.1:PORT [default: $REKINDLE_SERVER]
    #[arg(long, value_name = "URL", global = true, help_heading = "Everywhere", conflicts_with = "home")]
    server: Option<String>,

    /// The file with the access token for it [default: $REKINDLE_TOKEN, else what $REKINDLE_TOKEN_FILE names]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Everywhere")]
    token_file: Option<PathBuf>,

    /// The file with the certificates to trust in, if the server's is self-signed [default: $REKINDLE_CA, else the system's]
    #[arg(long, value_name = "FILE", global = true, help_heading = "Everywhere")]
    ca: Option<PathBuf>,
}

impl ServerArg {
    /// Returns what the command line names: the server, the file with its token, the certificates.
    pub(crate) fn given(&self) -> [(&'static str, Option<&OsStr>); 3] {
        [
            ("--server", self.server.as_deref().map(OsStr::new)),
            ("--token-file", self.token_file.as_deref().map(Path::as_os_str)),
            ("--ca", self.ca.as_deref().map(Path::as_os_str)),
        ]
    }

    /// Returns the daemon elsewhere that is meant, if one is.
    pub(crate) fn find(&self, home_is_named: bool) -> Result<Option<Arc<Server>>, Failure> {
        let from_environment = || variable("REKINDLE_SERVER").filter(|_| !home_is_named);
        let Some(url) = self.server.clone().map(PathBuf::from).or_else(from_environment) else {
            return Ok(None);
        };
        let url = url.to_string_lossy();
        let ca = self.ca.clone().or_else(|| variable("REKINDLE_CA"));
        Server::new(&url, self.token()?, ca.as_deref()).map(|server| Some(Arc::new(server)))
    }

    fn token(&self) -> Result<Option<Secret>, Failure> {
        if let Some(file) = &self.token_file {
            return read(file).map(Some);
        }
        if let Some(token) = variable("REKINDLE_TOKEN") {
            return secret(&token.to_string_lossy(), "$REKINDLE_TOKEN").map(Some);
        }
        variable("REKINDLE_TOKEN_FILE").map(|file| read(&file)).transpose()
    }
}

fn read(file: &Path) -> Result<Secret, Failure> {
    let unread = |why: String| {
        Failure::usage("token_file", format!("{} cannot be read: {why}", file.display()))
            .hint("it must contain what rekindle token create printed")
    };
    let metadata = file.metadata().map_err(|error| unread(error.to_string()))?;
    if metadata.len() > MAX_TOKEN as u64 {
        return Err(unread("it is too long for a token".into()));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        anstream::eprintln!("note: other users can read {0}: chmod 600 {0}", file.display());
    }
    let text = std::fs::read_to_string(file).map_err(|error| unread(error.to_string()))?;
    secret(&text, &file.display().to_string())
}

fn secret(text: &str, place: &str) -> Result<Secret, Failure> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_TOKEN || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        // What stands there may be a secret all the same, and is not shown.
        return Err(Failure::usage("token_file", format!("{place} contains no access token"))
            .hint("one looks like tok_01khz….0123…; rekindle token create prints it"));
    }
    Ok(Secret::new(text))
}
