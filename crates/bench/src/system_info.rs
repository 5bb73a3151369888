//! System information: the machine that a run was measured on: processor, its features that matter to us, cores, the build's profile. Figures
//! of two machines are only comparable beside this.

use std::fs;
use std::thread::available_parallelism;

use serde::Serialize;

/// Features that hashing, searching and checksums use when they are there, as the kernel names them on x86-64 and
/// 64-bit ARM.
const FEATURES: [&str; 8] = ["sse4_1", "avx2", "avx512f", "sha_ni", "asimd", "sha2", "sha3", "pmull"];

/// Features of either architecture whose absence slows a user down.
const WANTED: [&str; 2] = ["sha_ni", "avx512f"];

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SystemInfo {
    processor: String,
    cores: usize,
    architecture: &'static str,
    /// Those of [`FEATURES`] that the processor has.
    features: Vec<&'static str>,
    /// Whether the measuring program itself is a release build.
    optimised: bool,
}

impl SystemInfo {
    /// Returns the one we run on.
    pub(crate) fn here() -> SystemInfo {
        let cores = available_parallelism().map_or(1, usize::from);
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        SystemInfo {
            processor: value(&cpuinfo, &["model name", "CPU part"]).unwrap_or("unknown").to_owned(),
            cores,
            architecture: std::env::consts::ARCH,
            features: features(&cpuinfo),
            optimised: !cfg!(debug_assertions),
        }
    }

    /// Returns one line for people.
    pub(crate) fn describe(&self) -> String {
        let SystemInfo { processor, cores, architecture, features, optimised } = self;
        let build = if *optimised { "release build" } else { "debug build: the figures are worthless" };
        let has = if features.is_empty() { "none known".to_owned() } else { features.join(" ") };
        let lacks: Vec<&str> = WANTED.into_iter().filter(|wanted| !features.contains(wanted)).collect();
        let lacks = match lacks.as_slice() {
            [] => String::new(),
            _ if *architecture != "x86_64" => String::new(),
            lacks => format!(", without {}", lacks.join(" ")),
        };
        format!("{processor} ({architecture}), {cores} cores; features: {has}{lacks}; {build}")
    }
}

/// Returns the first value with one of these names.
fn value<'a>(cpuinfo: &'a str, names: &[&str]) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        names.contains(&name.trim()).then(|| value.trim())
    })
}

fn features(cpuinfo: &str) -> Vec<&'static str> {
    let flags = value(cpuinfo, &["flags", "Features"]).unwrap_or_default();
    FEATURES.into_iter().filter(|feature| flags.split(' ').any(|flag| flag == *feature)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_features_that_matter_are_found_and_missed() {
        let old = "model name\t: An Old One\nflags\t\t: fpu sse4_1 avx2\n";
        assert_eq!(features(old), ["sse4_1", "avx2"]);
        assert_eq!(value(old, &["model name"]), Some("An Old One"));
        let machine = SystemInfo {
            processor: "An Old One".into(),
            cores: 2,
            architecture: "x86_64",
            features: features(old),
            optimised: true,
        };
        let expected =
            "An Old One (x86_64), 2 cores; features: sse4_1 avx2, without sha_ni avx512f; release build";
        assert_eq!(machine.describe(), expected);
        assert_eq!(features("Features\t: fp asimd sha2 pmull\n"), ["asimd", "sha2", "pmull"]);
        assert!(features("").is_empty());
    }
}
