//! A HAProxy of each version: started, adopted, reloaded, checked.

mod adopt;
mod check;
mod launch;
mod mounts;
mod reload;
mod world;
