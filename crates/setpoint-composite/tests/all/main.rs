//! Everything about composites: pure parts first, then against a real Consul and a real Kubernetes API server.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod claims;
mod consul_client;
mod consul_faults;
mod datacentres;
mod declare;
mod fake;
mod kubernetes;
mod poller;
mod transform;
mod transform_properties;
mod watching;
