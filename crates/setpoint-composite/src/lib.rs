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
//! What is computed is in [`setpoint_structure`], which can reach nothing: what is declared, and what is published of it.
//! [`setpoint_consul`] is the edge to Consul, [`setpoint_kube`] with [`publish`] that to Kubernetes. [`operator`] joins them,
//! [`settings`] holds all parameters, and [`install`] is what puts it into a cluster.

pub mod api;
pub mod install;
pub mod operator;
pub mod publish;
pub mod settings;
