//! Entries of Consul KV to the payload of the ConfigMap: pure.
