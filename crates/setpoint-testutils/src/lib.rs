//! Real parts for tests: HAProxy, Kubernetes, etcd, Consul, WireGuard and network namespaces.

pub mod manifest;
pub mod skips;
