//! Follows one prefix of Consul KV and hands on snapshots of it.
