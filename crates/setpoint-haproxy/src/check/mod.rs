//! What is wrong with a configuration beyond its text: names that nothing bears or two do, and what a version does not
//! know or accept.
//!
//! ```text
//! Document ─┬─ the text itself ──────────────────────────▶ Vec<Diagnostic>, in the order of the file
//!           ├─ names: used and not given, given twice ────▶      ▲
//!           ├─ sections and keywords of a version ────────▶      │
//!           └─ values, expressions, variables of lines ───────────┘
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

mod duplicates;
mod names;
mod references;
mod values;
mod variables;
mod versions;

use crate::model::Version;
use crate::text::{Diagnostic, Document};

pub use references::{FileKind, FileReference, files};

/// What is checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checks {
    /// The version that the configuration is for; without one, what any version from 2.6 to 3.4 knows is fine.
    pub version: Option<Version>,
}

/// All that is wrong with a configuration, in the order of the file.
pub fn check(document: &Document, checks: &Checks) -> Vec<Diagnostic> {
    let mut found = document.diagnostics();
    references::check(document, &mut found);
    duplicates::check(document, checks.version, &mut found);
    versions::check(document, checks.version, &mut found);
    values::check(document, checks.version, &mut found);
    variables::check(document, &mut found);
    found.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
    found
}
