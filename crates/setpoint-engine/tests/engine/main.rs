//! Behaviour of the engine, on a simulated system that notices every violated rule.

mod seed;
mod world;
