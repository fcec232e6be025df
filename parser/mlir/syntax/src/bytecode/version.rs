//! Versions of VHLO, StableHLO's versioned form, and of the bytecode that each is written in.

use std::fmt;
use std::str::FromStr;

use super::container::format;

/// A version of VHLO, `1.17.0`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Version {
    /// Incremented when guarantees of compatibility change.
    pub major: u32,
    /// Incremented when operations, attributes or types do.
    pub minor: u32,
    /// Never of meaning for what a file holds.
    pub patch: u32,
}

impl Version {
    /// The oldest that is promised to be read.
    pub const OLDEST: Version = Version::new(0, 9, 0);
    /// The newest whose operations, attributes and types are all known.
    pub const NEWEST: Version = Version::new(1, 20, 0);

    /// A version.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// The same without the patch: what a file may hold depends on it alone.
    pub fn release(self) -> Version {
        Version { patch: 0, ..self }
    }

    /// The version of the bytecode format that artifacts of this version are written in.
    pub fn format(self) -> u64 {
        match (self.major, self.minor) {
            (0, ..=9) => 0,
            (0, 10..=11) => 1,
            (0, 12..=13) => 3,
            (0, 14) => 4,
            _ => format::NEWEST,
        }
    }

    /// The version in the name of a producer, `StableHLO_v1.17.0`.
    pub(super) fn of_producer(producer: &[u8]) -> Option<Version> {
        let text = std::str::from_utf8(producer).ok()?;
        text.strip_prefix(PRODUCER)?.parse().ok()
    }

    /// The name of the producer of an artifact.
    pub(super) fn producer(self) -> String {
        format!("{PRODUCER}{self}")
    }
}

const PRODUCER: &str = "StableHLO_v";

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// That a text is no version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotAVersion;

impl fmt::Display for NotAVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a version is three numbers, as in 1.17.0")
    }
}

impl std::error::Error for NotAVersion {}

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let mut parts = text.split('.').map(|part| match part.bytes().all(|b| b.is_ascii_digit()) {
            true => part.parse::<u32>().map_err(|_| NotAVersion),
            false => Err(NotAVersion),
        });
        let mut next = || parts.next().ok_or(NotAVersion).and_then(|part| part);
        let version = Version::new(next()?, next()?, next()?);
        match parts.next() {
            None => Ok(version),
            Some(_) => Err(NotAVersion),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_numbers() {
        assert_eq!("1.17.0".parse(), Ok(Version::new(1, 17, 0)));
        for bad in ["", "1", "1.2", "1.2.3.4", "1.2.x", "1..2", "-1.2.3", "1.2.99999999999"] {
            assert_eq!(bad.parse::<Version>(), Err(NotAVersion), "{bad}");
        }
        assert!(Version::new(0, 20, 0) < Version::new(1, 0, 0));
        assert!(Version::new(1, 9, 0) < Version::new(1, 10, 0));
    }

    #[test]
    fn producers_of_artifacts_name_their_version() {
        assert_eq!(Version::of_producer(b"StableHLO_v0.9.0"), Some(Version::OLDEST));
        assert_eq!(Version::of_producer(b"MLIR22"), None);
        assert_eq!(Version::NEWEST.producer(), "StableHLO_v1.20.0");
    }
}
