//! Metrics and the endpoints for probes.
