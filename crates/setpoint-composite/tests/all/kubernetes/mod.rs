//! The operator against a real API server and a real Consul.

mod certificates;
mod claims;
mod consul;
mod contested;
mod faults;
mod half_open;
mod leading;
mod ownership;
mod publishing;
mod readonly;
mod reconciling;
mod removals;
mod rights;
mod world;
