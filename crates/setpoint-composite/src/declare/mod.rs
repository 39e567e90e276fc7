//! The keys that a Composite declares, and what must change in Consul for them: pure.
