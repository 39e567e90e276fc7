//! Host items on a real host: manifests, files, processes, commands, and what goes wrong with them.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod commands;
mod crash;
mod creations;
mod files;
mod hostile;
mod killed;
mod large;
mod manifest;
mod ownership;
mod processes;
mod ready;
mod schema;
mod speed;
mod sweep;
mod values;
mod world;
mod wrong;
