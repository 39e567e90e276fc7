//! Everything about composites: pure parts first, then against a real Consul and a real Kubernetes API server.

mod consul_client;
mod consul_faults;
mod declare;
mod fake;
mod kubernetes;
mod poller;
mod transform;
mod transform_properties;
mod watching;
