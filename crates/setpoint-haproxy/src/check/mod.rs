//! What is wrong with a configuration beyond its text: undefined and duplicate names, and what a version does not know or
//! accept.
//!
//! ```text
//! Documents ─┬─ the text itself ───────────────────────────▶ Vec<Diagnostic>, in the order of the file
//!            └─ the lines that HAProxy reads ─┐                       ▲
//!                 ├─ sections and names given twice ──────────────────┤
//!                 ├─ sections, keywords, options of a version ────────┤
//!                 └─ words, values, conditions, names that are used ──┘
//! ```
//!
//! ```
//! use setpoint_haproxy::check::{Checks, check};
//! use setpoint_haproxy::text::Document;
//!
//! let document = Document::parse(b"frontend f\n  bind :80\n  default_backend shpo\nbackend shop\n");
//! let found = check(&document, &Checks::default());
//! assert_eq!(found[0].to_string(), "3:19: no backend is called `shpo`");
//! assert_eq!(found[0].hint.as_deref(), Some("did you mean `shop`?"));
//! ```

mod acls;
mod condition;
mod configuration;
mod covered;
mod duplicates;
mod governing;
mod hints;
mod lines;
mod names;
mod needs;
mod references;
mod secrets;
mod variables;
mod versions;

use std::collections::BTreeMap;

use crate::model::Version;
use crate::text::{Diagnostic, Document, Problem, Severity};
use configuration::Configuration;
use hints::Hints;

pub use covered::{Covered, covered, undescribed};
pub use references::{FileKind, FileReference, files};
pub use secrets::without_secrets;

/// What is checked.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// The version that the configuration is for; without one, what any version from 2.6 to 3.4 knows is fine.
    pub version: Option<Version>,
    /// Variables that are known. Of a line that expands any other, only the text is checked.
    pub env: BTreeMap<String, String>,
}

/// All that is wrong with a configuration, in the order of the file.
pub fn check(document: &Document, checks: &Checks) -> Vec<Diagnostic> {
    check_together(&[document], checks).pop().unwrap_or_default()
}

/// All that is wrong with files that are one configuration, as HAProxy reads several `-f`: for each file, in its order.
///
/// ```
/// use setpoint_haproxy::check::{Checks, check_together};
/// use setpoint_haproxy::text::Document;
///
/// let front = Document::parse(b"frontend f\n  bind :80\n  default_backend shop\n");
/// let back = Document::parse(b"backend shop\n");
/// assert_eq!(check_together(&[&front, &back], &Checks::default()), [[], []]);
/// ```
pub fn check_together(documents: &[&Document], checks: &Checks) -> Vec<Vec<Diagnostic>> {
    let mut found: Vec<Vec<Diagnostic>> = documents.iter().map(|document| document.diagnostics()).collect();
    let configuration = Configuration::read(documents, checks, &mut found);
    for (file, found) in found.iter_mut().enumerate() {
        found.retain(|diagnostic| {
            diagnostic.problem.is_of_words() || !configuration.is_unread(file, diagnostic.line)
        });
        if checks.version.is_some_and(Version::refuses_empty_words) {
            let cut = configuration.cut_lines(file);
            let is_refused = |diagnostic: &&mut Diagnostic| {
                diagnostic.problem == Problem::EmptyWord && cut.contains(&diagnostic.line)
            };
            for diagnostic in found.iter_mut().filter(is_refused) {
                diagnostic.severity = Severity::Error;
            }
        }
    }
    let mut hints = Hints::default();
    duplicates::check(&configuration, checks.version, &mut found);
    versions::check(&configuration, checks.version, &mut hints, &mut found);
    lines::check(&configuration, checks.version, &mut hints, &mut found);
    variables::check(&configuration, &mut found);
    for (document, found) in documents.iter().zip(&mut found) {
        found.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        secrets::hide(document, checks, found);
    }
    found
}
