//! Lists of words that several rows share: `[words NAME]`.

use super::grammar::Versions;
use crate::model::Version;

/// Words, each with the versions of HAProxy that know it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(Vec<(Versions, &'static str)>);

impl Words {
    /// Adds words that some versions know.
    pub(super) fn extend(&mut self, versions: Versions, words: impl Iterator<Item = &'static str>) {
        self.0.extend(words.map(|word| (versions, word)));
    }

    /// Returns whether a version knows a word.
    pub(crate) fn has(&self, word: &str, version: Version) -> bool {
        self.0.iter().any(|(versions, known)| *known == word && versions.contains(version))
    }

    /// Returns the words that a version knows.
    pub(crate) fn of(&self, version: Version) -> Vec<&'static str> {
        let known = self.0.iter().filter(|(versions, _)| versions.contains(version));
        known.map(|(_, word)| *word).collect()
    }
}

impl FromIterator<&'static str> for Words {
    /// Makes a list of words that all versions know.
    fn from_iter<I: IntoIterator<Item = &'static str>>(words: I) -> Self {
        let mut all = Self::default();
        all.extend(Versions::ALL, words.into_iter());
        all
    }
}
