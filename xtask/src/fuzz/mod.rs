//! `cargo xtask fuzz api`: a real daemon is asked everything that its own description allows, and much that it does not.
//! Nothing may break it: no 5xx, no panic, no answer of another shape than the description says.

mod daemon;
mod proxy;
mod python;

use std::path::Path;
use std::process::Command;

use self::daemon::Daemon;
use self::python::Python;
use crate::cargo::Invocation;
use crate::failure::{Context, Result, ensure};

/// What CI runs: the same requests every time, for a minute.
pub(crate) const CI: ApiArgs = ApiArgs { seconds: 60, seed: 1 };

/// How long the HTTP interface is fuzzed, and from which seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ApiArgs {
    /// How long it may take.
    pub(crate) seconds: u32,
    /// Where the made-up requests begin: the same seed makes the same ones.
    pub(crate) seed: u32,
}

/// The command that repeats it.
pub(crate) fn repeat(args: ApiArgs) -> String {
    format!("cargo xtask fuzz api --seconds {} --seed {}", args.seconds, args.seed)
}

/// Operations that are not asked for: the streams, which never end by themselves, and the end of the daemon.
const LEFT_OUT: [&str; 5] =
    ["followSession", "followAllSessions", "followTask", "followPipeline", "shutDown"];

/// Fuzzes the HTTP interface; anything that is not in order is an error.
pub(crate) fn api(root: &Path, args: ApiArgs) -> Result<()> {
    let build = Invocation::new(root, "build --quiet --locked -p rekindle --bins");
    build.succeed().context(|| "the binaries could not be built")?;
    let target = target_directory(root);
    let python = Python::prepare(&root.join("xtask/fuzz"), &target)?;
    let mut daemon = Daemon::start(&target.join("debug/rekindle"))?;
    let address = proxy::to_socket(daemon.socket()?)?;

    let document = daemon.place("openapi.json");
    proxy::fetch(address, "/api/openapi.json", &document)?;
    let examples =
        python.command("python3").arg(root.join("xtask/fuzz/examples.py")).arg(&document).status()?;
    ensure(examples.success(), || "examples have another shape than their schema")?;

    let mut run = python.command("schemathesis");
    run.args(arguments(args)).arg("--url").arg(format!("http://{address}")).arg(&document);
    run.env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONPATH", root.join("xtask/fuzz"));
    run.env("REKINDLE_FUZZ_WORK", daemon.place("work")).env("REKINDLE_FUZZ_AGENT", daemon.agent());
    run.current_dir(daemon.place(""));
    let verdict = judge(&mut run, &mut daemon);
    if verdict.is_err() {
        daemon.keep();
    }
    verdict
}

fn judge(run: &mut Command, daemon: &mut Daemon) -> Result<()> {
    let status = run.status().context(|| "cannot run schemathesis")?;
    daemon.check()?;
    ensure(status.success(), || "the interface does not keep what its description says")?;
    daemon.stop()
}

fn arguments(args: ApiArgs) -> Vec<String> {
    let mut words: Vec<String> =
        ["run", "--checks", "all", "--workers", "1", "--no-color"].map(Into::into).into();
    // A token is for TCP; on the socket behind our proxy nobody needs one.
    words.extend(["--exclude-checks", "ignored_auth,object_level_authorization"].map(Into::into));
    words.extend(["--suppress-health-check", "all", "--request-timeout", "20"].map(Into::into));
    for operation in LEFT_OUT {
        words.extend(["--exclude-operation-id".into(), operation.into()]);
    }
    words.extend(["--max-time".into(), args.seconds.to_string(), "--seed".into(), args.seed.to_string()]);
    words
}

/// Returns where cargo builds.
fn target_directory(root: &Path) -> std::path::PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_can_be_repeated() {
        assert_eq!(repeat(CI), "cargo xtask fuzz api --seconds 60 --seed 1");
        let words = arguments(ApiArgs { seconds: 5, seed: 9 }).join(" ");
        assert!(words.ends_with("--max-time 5 --seed 9"), "{words}");
        assert!(words.contains("--exclude-operation-id shutDown"), "{words}");
    }
}
