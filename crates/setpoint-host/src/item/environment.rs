//! How variables of an environment are shown.

use std::collections::BTreeMap;
use std::fmt;

use setpoint_graph::Attributes;

use super::quoted;

/// Variables to be shown, and whether their values may be.
pub(crate) struct Shown<'a> {
    pub(crate) variables: &'a BTreeMap<String, String>,
    pub(crate) sensitive: bool,
}

impl Shown<'_> {
    /// Adds them as one attribute; none where there are no variables.
    pub(crate) fn add_to(&self, attributes: &mut Attributes) {
        if self.variables.is_empty() {
            return;
        }
        let pairs: Vec<_> =
            self.variables.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        if self.sensitive {
            attributes.add_sensitive("env", pairs.join(" "));
        } else {
            attributes.add("env", pairs.join(" "));
        }
    }
}

impl fmt::Debug for Shown<'_> {
    /// Never shows values that are sensitive.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sensitive {
            f.debug_list().entries(self.variables.keys()).finish()
        } else {
            self.variables.fmt(f)
        }
    }
}
