//! The operator against a real API server and a real Consul.

mod certificates;
mod consul;
mod faults;
mod leading;
mod ownership;
mod publishing;
mod readonly;
mod reconciling;
mod rights;
mod world;
