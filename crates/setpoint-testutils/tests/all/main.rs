//! Each part starts, answers as its real self, and is gone afterwards.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "helpers of tests fail the test"))]

mod haproxy;
