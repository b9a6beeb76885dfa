//! Where a task set came from, as text to store with results.

use std::fmt;
use std::str::FromStr;

use crate::{GeneratorSpec, ParseSpecError};

/// Version of the generators: raised whenever any of them would yield other bytes for some spec and seed.
pub const GENERATOR_VERSION: u32 = 1;

/// Everything that determines a generated set. Writes as `uni-light/moderate cap=2 seed=7 laxity-gen 1` and reads
/// back, so a stored line replays its task set.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Provenance {
    /// The generator and its parameters.
    pub spec: GeneratorSpec,
    /// The seed of this set.
    pub seed: u64,
}

/// Text that is no provenance, or one of another version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseProvenanceError {
    /// It does not end in a seed and a version.
    #[error("`{text}` is no provenance: it ends in ` seed=NUMBER laxity-gen NUMBER`")]
    Ending {
        /// The whole text.
        text: String,
    },
    /// Other generators drew that set; these would yield another.
    #[error("drawn by version {found} of the generators, but these are version {GENERATOR_VERSION}; replay it with \
         a release of Laxity that has version {found}", GENERATOR_VERSION = GENERATOR_VERSION)]
    Version {
        /// The version it names.
        found: u32,
    },
    /// The generator is not one.
    #[error(transparent)]
    Spec(ParseSpecError),
}

impl Provenance {
    /// The provenance of what [`generate`](crate::generate) yields for `spec` and `seed`.
    pub fn new(spec: GeneratorSpec, seed: u64) -> Self {
        Provenance { spec, seed }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} seed={} laxity-gen {GENERATOR_VERSION}", self.spec, self.seed)
    }
}

impl FromStr for Provenance {
    type Err = ParseProvenanceError;

    fn from_str(text: &str) -> Result<Self, ParseProvenanceError> {
        let ending = || ParseProvenanceError::Ending { text: text.to_owned() };
        let (front, version) = text.rsplit_once(" laxity-gen ").ok_or_else(ending)?;
        let (spec, seed) = front.rsplit_once(" seed=").ok_or_else(ending)?;
        let (seed, version) = (seed.parse().map_err(|_| ending())?, version.parse().map_err(|_| ending())?);
        if version != GENERATOR_VERSION {
            return Err(ParseProvenanceError::Version { found: version });
        }
        Ok(Provenance { spec: spec.parse().map_err(ParseProvenanceError::Spec)?, seed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provenance_replays_and_another_version_is_refused() {
        let text = "uni-light/moderate cap=2 seed=18446744073709551615 laxity-gen 1";
        let provenance: Provenance = text.parse().expect("a provenance");
        assert_eq!(provenance.seed, u64::MAX);
        assert_eq!(provenance.to_string(), text);
        assert_eq!(
            "uni-light/moderate cap=2 seed=1 laxity-gen 2".parse::<Provenance>(),
            Err(ParseProvenanceError::Version { found: 2 })
        );
        for text in
            ["", "uni-light/moderate cap=2", "uni-light/moderate cap=2 seed=x laxity-gen 1", "x seed=1 laxity-gen 1"]
        {
            assert!(text.parse::<Provenance>().is_err(), "{text}");
        }
    }
}
