//! What could be meant by a name that nothing has.

use crate::text::nearest;

/// How many names are looked at for one configuration: a hint helps with the first mistakes, not with the thousandth.
const MOST: usize = 100_000;

/// Finds names that are like others, as long as that costs little.
#[derive(Debug)]
pub(super) struct Hints {
    left: usize,
}

impl Default for Hints {
    fn default() -> Self {
        Self { left: MOST }
    }
}

impl Hints {
    /// The candidate that is most like a word, if one is like it.
    pub(super) fn nearest<'a>(
        &mut self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        let mut looked_at = 0;
        let left = self.left;
        let candidates = candidates.into_iter().take_while(|_| {
            looked_at += 1;
            looked_at <= left
        });
        // Names of very different lengths are not alike, which is seen at once.
        let alike = candidates.filter(|candidate| candidate.len().abs_diff(word.len()) * 3 <= word.len());
        let best = nearest(word, alike).map(|best| format!("did you mean `{best}`?"));
        self.left = left.saturating_sub(looked_at);
        best
    }
}
