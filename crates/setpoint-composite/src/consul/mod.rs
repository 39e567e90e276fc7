//! An HTTP client of Consul's KV store.
