//! What the crate promises, held to the recordings of the original API and to HAProxy itself.

mod conformance;
