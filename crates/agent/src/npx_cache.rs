//! Whether npx has fetched an agent before: looks into npm's cache, and starts nothing.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// What the environment calls the directory of npm's cache; npm takes either.
const CACHE: [&str; 2] = ["npm_config_cache", "NPM_CONFIG_CACHE"];

/// Tells whether what a command of npx starts is in npm's cache, so that nothing has to be downloaded. Other commands are not known to
/// have anything there.
pub fn is_fetched(command: &[String], env: impl Fn(&str) -> Option<OsString>) -> bool {
    let [program, yes, package, ..] = command else { return false };
    if !Path::new(program).ends_with("npx") || yes != "-y" {
        return false;
    }
    let set = CACHE.iter().find_map(|name| env(name)).filter(|path| !path.is_empty()).map(PathBuf::from);
    let Some(cache) = set.or_else(|| Some(PathBuf::from(env("HOME")?).join(".npm"))) else { return false };
    let manifest = Path::new("node_modules").join(package).join("package.json");
    let mut fetched = fs::read_dir(cache.join("_npx")).into_iter().flatten().flatten();
    fetched.any(|entry| entry.path().join(&manifest).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_npx_has_fetched_is_in_its_cache() {
        let home = tempfile::tempdir().expect("a directory");
        let env = |name: &str| (name == "HOME").then(|| home.path().into());
        let set = |name: &str| (name == "npm_config_cache").then(|| home.path().join(".npm").into());
        let command = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let claude = command("/usr/bin/npx -y @agentclientprotocol/claude-agent-acp");
        assert!(!is_fetched(&claude, env), "there is no cache");
        let package = home.path().join(".npm/_npx/0123/node_modules/@agentclientprotocol/claude-agent-acp");
        fs::create_dir_all(&package).expect("a directory");
        assert!(!is_fetched(&claude, env), "nothing is in it yet");
        fs::write(package.join("package.json"), "{}").expect("a file");
        assert!(is_fetched(&claude, env) && is_fetched(&claude, set));
        assert!(!is_fetched(&claude, |_| None));
        assert!(!is_fetched(&command("/usr/bin/npx -y @google/gemini-cli --acp"), env));
        assert!(!is_fetched(&command("/usr/bin/uvx --from @agentclientprotocol/claude-agent-acp x"), env));
    }
}
