//! Recordings of the original Dataplane API, and how the model of HAProxy configuration is held to them.
//!
//! ```text
//!  model case:  sent ──from_json──▶ object ──write──▶ text       as recorded?
//!               recorded text ──parse──▶ object ──to_json──▶ read       as recorded?
//!  text case:   config ──parse──▶ sections ──to_json──▶ read            as recorded?
//! ```
//!
//! The original is the oracle where it is right. Where it loses, misplaces or misreads something, the model follows the
//! schema and HAProxy; each such difference is a row of one [table of reasons](reasons).
//!
//! What HAProxy itself refuses shows nothing about either. There the model has to refuse, too, or to write something that
//! HAProxy accepts; what only HAProxy can judge is a row of [another table](refused).

mod case;
mod evidence;
pub mod reasons;
pub mod recordings;
pub mod refused;

use std::collections::BTreeMap;

pub use case::{Difference, Kind, ModelCase, TextCase, Written};
pub use reasons::{REASONS, Reason};
pub use refused::{Judgement, ONLY_HAPROXY, Refused, Verdict};

use setpoint_haproxy::model::Version;

/// What came of one case.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Both say the same.
    Agrees,
    /// They differ, and there is a reason.
    Reasoned(&'static Reason, Box<Difference>),
    /// They differ.
    Differs(Box<Difference>),
}

/// Counts of one kind, version and section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// All cases.
    pub cases: usize,
    /// Those in which both say the same.
    pub agree: usize,
    /// Those that differ for a reason.
    pub reasoned: usize,
}

/// What came of all cases of some recordings.
#[derive(Debug, Default)]
pub struct Report {
    /// By kind, version and section.
    pub counts: BTreeMap<(Kind, Version, String), Count>,
    /// By reason, what differs for it.
    pub reasoned: BTreeMap<&'static str, Vec<Difference>>,
    /// What differs without a reason.
    pub differences: Vec<Difference>,
    /// By version and section, what becomes of the objects that HAProxy refuses.
    pub refused: BTreeMap<(Version, String), Refused>,
}

/// Why a recording can't be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A line is no case.
    #[error("line {line} is not a case of a recording")]
    NotACase {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
}

impl Report {
    /// Replays the recordings of one version: what was sent as objects, and what was pushed as text.
    ///
    /// Both are given as text, one JSON object per line. Either may be empty.
    pub fn replay(&mut self, version: Version, model: &str, text: &str) -> Result<(), ReplayError> {
        let mut written = BTreeMap::new();
        for case in lines::<ModelCase>(model) {
            let case = case?;
            if let Some(outcome) = case.replay(version) {
                self.count(Kind::Model, version, case.section.clone(), outcome);
            }
            if let Some(verdict) = case.verdict(version) {
                self.refused.entry((version, case.section.clone())).or_default().add(&case, version, verdict);
            }
            written.insert(case.case.clone(), case);
        }
        for case in lines::<TextCase>(text) {
            let case = case?;
            // A text that the API wrote itself was tried with HAProxy where it was written.
            let by = case.case.strip_prefix("model.").and_then(|case| written.get(case));
            if let Some((section, outcome)) = case.replay(version, by) {
                self.count(Kind::Text, version, section, outcome);
            }
        }
        Ok(())
    }

    fn count(&mut self, kind: Kind, version: Version, section: String, outcome: Outcome) {
        let count = self.counts.entry((kind, version, section)).or_default();
        count.cases += 1;
        match outcome {
            Outcome::Agrees => count.agree += 1,
            Outcome::Reasoned(reason, difference) => {
                count.reasoned += 1;
                self.reasoned.entry(reason.name).or_default().push(*difference);
            }
            Outcome::Differs(difference) => self.differences.push(*difference),
        }
    }

    /// Sums up all counts.
    pub fn total(&self) -> Count {
        self.counts.values().fold(Count::default(), |sum, count| Count {
            cases: sum.cases + count.cases,
            agree: sum.agree + count.agree,
            reasoned: sum.reasoned + count.reasoned,
        })
    }
}

/// Reads the cases of a recording. `$D` stands for a folder: no variable of HAProxy's is meant.
fn lines<C: serde::de::DeserializeOwned>(text: &str) -> impl Iterator<Item = Result<C, ReplayError>> {
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(|(line, text)| {
        serde_json::from_str(&text.replace("$D", "/rec"))
            .map_err(|source| ReplayError::NotACase { line: line + 1, source })
    })
}
