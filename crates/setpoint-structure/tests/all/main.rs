//! What Composites declare, and what is published of it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod claims;
mod declare;
mod transform;
mod transform_properties;
