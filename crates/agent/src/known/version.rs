//! Versions of agents, as far as they must be compared: three numbers, whatever stands behind them.

/// A version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u64, pub u64, pub u64);

impl Version {
    /// Reads a version: `1.2.3`, `v1.2`, `0.99.0-rc.1+build`. What stands behind the numbers is ignored.
    pub fn parse(text: &str) -> Option<Version> {
        let text = text.trim().trim_start_matches(['v', 'V']);
        let numbers = text.split(['-', '+', ' ']).next()?;
        let mut parts = numbers.split('.').map(|part| part.parse::<u64>().ok());
        let first = parts.next()??;
        let mut next = || parts.next().map_or(Some(0), |part| part);
        Some(Version(first, next()?, next()?))
    }
}

/// A range of versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// Every one. Most quirks were seen in one version and nobody said that they were mended.
    Any,
    /// This one and later ones.
    From(Version),
    /// All before this one.
    Below(Version),
    /// From the first, below the second.
    Between(Version, Version),
}

impl Versions {
    /// Tells whether a version is among them.
    pub fn contain(self, version: Version) -> bool {
        match self {
            Versions::Any => true,
            Versions::From(first) => first <= version,
            Versions::Below(end) => version < end,
            Versions::Between(first, end) => first <= version && version < end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_leniently_and_compared_by_number() {
        let table = [
            ("1.2.3", Some(Version(1, 2, 3))),
            ("v0.99", Some(Version(0, 99, 0))),
            ("2.1.0-beta.4+x", Some(Version(2, 1, 0))),
            (" 7 ", Some(Version(7, 0, 0))),
            ("1.2.3.4", Some(Version(1, 2, 3))),
            ("latest", None),
            ("1.x", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(Version::parse(text), expected, "{text:?}");
        }
        assert!(Version(0, 10, 0) > Version(0, 9, 9));
    }

    #[test]
    fn ranges_begin_inside_and_end_outside() {
        let (one, two) = (Version(1, 0, 0), Version(2, 0, 0));
        let table = [
            (Versions::Any, [true, true, true]),
            (Versions::From(one), [false, true, true]),
            (Versions::Below(two), [true, true, false]),
            (Versions::Between(one, two), [false, true, false]),
        ];
        for (range, expected) in table {
            let found = [Version(0, 9, 0), one, two].map(|version| range.contain(version));
            assert_eq!(found, expected, "{range:?}");
        }
    }
}
