//! A HAProxy of each version: started, adopted, reloaded, checked.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "helpers of tests fail the test"))]

mod adopt;
mod backends;
mod check;
mod contained;
mod full;
mod good;
mod hung;
mod instance;
mod journal;
mod launch;
mod leftovers;
mod lists;
mod load;
mod mounts;
mod program;
mod reload;
mod replaced;
mod sequences;
mod threads;
mod truth;
mod world;
