//! What Composites declare, and what is published of it.
#![expect(clippy::expect_used, reason = "tests")]

mod claims;
mod declare;
mod transform;
mod transform_properties;
