//! Everything about composites: against a real Consul and a real Kubernetes API server.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod consul_client;
mod consul_faults;
mod datacentres;
mod fake;
mod kubernetes;
mod poller;
mod watching;
