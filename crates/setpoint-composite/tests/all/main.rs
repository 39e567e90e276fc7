//! Everything about composites: pure parts first, then against a real Consul and a real Kubernetes API server.

mod declare;
mod transform;
mod transform_properties;
