//! What binaries are built for, in the words of Rust, of archives and of Debian.

/// What binaries are built for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    cpu: String,
    libc: String,
}

impl Target {
    /// Reads a triple as Rust writes it.
    pub(crate) fn parse(triple: &str) -> Result<Target, String> {
        let parts: Vec<&str> = triple.split('-').collect();
        match parts[..] {
            [cpu @ ("x86_64" | "aarch64"), _, "linux", libc @ ("musl" | "gnu")] => {
                Ok(Target { cpu: cpu.into(), libc: libc.into() })
            }
            _ => Err(format!("there are no packages for {triple:?}; known: x86_64 and aarch64 on Linux")),
        }
    }

    /// Returns the name of the archive, which is that of the directory in it too.
    pub(crate) fn archive_name(&self, version: &str) -> String {
        format!("rekindle-{version}-{}-linux-{}", self.cpu, self.libc)
    }

    /// Returns the name of the Debian package.
    pub(crate) fn package_name(&self, version: &str) -> String {
        format!("rekindle_{version}_{}.deb", self.architecture())
    }

    /// Returns what Debian calls the processor.
    pub(crate) fn architecture(&self) -> &str {
        if self.cpu == "x86_64" { "amd64" } else { "arm64" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_people_look_for() {
        let target = Target::parse("aarch64-unknown-linux-musl").expect("known");
        assert_eq!(target.archive_name("1.2.3"), "rekindle-1.2.3-aarch64-linux-musl");
        assert_eq!(target.package_name("1.2.3"), "rekindle_1.2.3_arm64.deb");
        let here = Target::parse("x86_64-unknown-linux-gnu").expect("known");
        assert_eq!(here.package_name("1"), "rekindle_1_amd64.deb");
        assert!(Target::parse("x86_64-apple-darwin").is_err() && Target::parse("").is_err());
    }
}
