//! The operator against a real API server and a real Consul.

mod history;
mod ownership;
mod publishing;
mod readonly;
mod reconciling;
mod world;
