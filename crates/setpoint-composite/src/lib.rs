//! Composite structure: Composite resources to Consul KV, and the structure in Consul KV to ConfigMaps.
//!
//! A *composite* is a set of namespaces that work together: a baseline and its satellites, each possibly in blue-green
//! roles. Every namespace declares its own part with a `Composite` resource; together these parts are the structure.
//!
//! ```text
//!  Composite ──api──▶ Declaration ──declare──▶ keys, transaction ──consul──▶ Consul KV
//!      ▲                                                                        │
//!      │ status, events                                          watch: blocking queries
//!      │                                                                        ▼
//!   operator ◀──────────── publish: ConfigMap ◀── structure: transform ◀── snapshot
//! ```
//!
//! [`structure`] and [`declare`] are pure. [`consul`] and [`watch`] are the edge to Consul; [`publish`] and [`lease`]
//! that to Kubernetes; [`setpoint_names`] resolves the names of hosts for both. [`operator`] joins them, [`observe`] shows what
//! goes on, [`settings`] holds all parameters, and [`install`] is what puts it into a cluster.

pub mod api;
pub mod cluster;
pub mod consul;
pub mod declare;
pub mod install;
pub mod lease;
pub mod observe;
pub mod operator;
pub mod publish;
pub mod settings;
pub mod structure;
pub mod watch;
