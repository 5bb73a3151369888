//! Packages for others: the binaries are built in their own profile, for a target that links statically, and handed to `rekindle-dist`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::Invocation;
use crate::failure::{Context as _, Failure, Result};

/// What to make packages for, and where they go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DistArgs {
    pub(crate) target: String,
    pub(crate) out: PathBuf,
}

impl Default for DistArgs {
    fn default() -> Self {
        let target = format!("{}-unknown-linux-musl", env::consts::ARCH);
        DistArgs { target, out: "target/packages".into() }
    }
}

/// Builds the binaries and makes the packages.
pub(crate) fn make(root: &Path, args: &DistArgs) -> Result<bool> {
    let DistArgs { target, out } = args;
    check_target(target)?;
    eprintln!(
        "1 of 2: building rekindle and rekindle-holder for {target}; the first time takes many minutes"
    );
    let build = format!("build --profile dist --locked -p rekindle --bins --target {target}");
    Invocation::new(root, &build).succeed().context(|| "the binaries could not be built")?;
    eprintln!("2 of 2: packing and trying them");
    let built = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |own| root.join(own));
    let pack = Invocation::new(root, "run --quiet --locked -p rekindle-dist --");
    let pack = pack.args(["--binaries".into(), built.join(target).join("dist").into_os_string()]);
    let pack = pack.args(["--root".into(), root.as_os_str().to_owned(), "--target".into(), target.into()]);
    let pack = pack.args(["--out".into(), root.join(out).into_os_string()]);
    Ok(pack.args(["--epoch".to_owned(), epoch(root).to_string()]).status()?.success())
}

/// Looks for what cannot be built without; what is missing is said before minutes have passed.
fn check_target(target: &str) -> Result<()> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().context(|| "rustc")?;
    let sysroot = String::from_utf8_lossy(&sysroot.stdout).trim().to_owned();
    if !Path::new(&sysroot).join("lib/rustlib").join(target).join("lib").is_dir() {
        return Err(Failure::new(format!(
            "nothing can be built for {target} yet; first `rustup target add {target}`"
        )));
    }
    // SQLite and zstd are written in C.
    let compiler = format!("CC_{}", target.replace('-', "_"));
    if target.ends_with("musl") && env::var_os(&compiler).is_none() && !is_on_path("musl-gcc") {
        return Err(Failure::new(format!(
            "there is no musl-gcc; `apt install musl-tools`, or name a C compiler in {compiler}"
        )));
    }
    Ok(())
}

fn is_on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// Returns the time that files in packages have: the same commit makes the same packages.
fn epoch(root: &Path) -> u32 {
    let told = env::var("SOURCE_DATE_EPOCH").ok().and_then(|told| told.parse().ok());
    told.or_else(|| {
        let git =
            Command::new("git").arg("-C").arg(root).args(["log", "-1", "--format=%ct"]).output().ok()?;
        String::from_utf8_lossy(&git.stdout).trim().parse().ok()
    })
    .unwrap_or(0)
}
