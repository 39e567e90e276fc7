//! Reconciles Composites: many of them, in many namespaces, in one process.
