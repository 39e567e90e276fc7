//! Behaviour of the engine, on a simulated system that notices every violated rule.

mod schedules;
mod seed;
mod world;
