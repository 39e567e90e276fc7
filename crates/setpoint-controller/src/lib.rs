//! A controller that renders HAProxy configurations from resources, validates them, and deploys them.
//!
//! ```text
//!  source ──▶ index ──snapshot──▶ template ──▶ configuration and files
//! ```
//!
//! What is here so far: the [`index`] of what is watched, and the [`template`]s that read it.

pub mod index;
pub mod template;
