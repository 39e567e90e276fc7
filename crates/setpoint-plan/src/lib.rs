//! The one plan envelope: operations, what is pending and why, and a summary.
