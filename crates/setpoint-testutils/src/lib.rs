//! Real parts for tests: HAProxy, Kubernetes, etcd, Consul, WireGuard, networks, a browser.
//!
//! ```text
//! cargo xtask parts ──▶ manifest ──▶ part::program ──▶ Process ──▶ Haproxy, Etcd, Consul, ApiServer, …
//!                                        │               │
//!                              missing: need! skips    Guard: gone when the test is
//! ```
//!
//! A test asks for what it needs and is skipped where the machine can't have it:
//!
//! ```no_run
//! # #[cfg(feature = "start")]
//! # async fn example() {
//! use setpoint_testutils::{Haproxy, Version, need};
//!
//! let haproxy = need!(Haproxy::start(Version::V3_2).await);
//! assert_eq!(haproxy.reloads().await, 0);
//! # }
//! ```
//!
//! A part that is there but does not start, or does not answer in time, panics with its last log lines: a test
//! has nothing better to do. Every part is started on free ports in a folder of its own, is ready when it answers,
//! and is gone afterwards, whichever way the test ends (see the module `guard`).
#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::print_stderr,
    reason = "test support: what goes wrong fails the test, and logs are shown"
)]
#![expect(clippy::panic, reason = "what goes wrong fails the test")]

pub mod graphviz;
pub mod manifest;
pub mod part;
pub mod ports;
pub mod skips;

#[cfg(feature = "start")]
pub mod backend;
#[cfg(feature = "start")]
pub mod browser;
#[cfg(feature = "start")]
pub mod certificates;
#[cfg(feature = "start")]
pub mod consul;
#[cfg(feature = "start")]
pub mod dataplane;
#[cfg(feature = "start")]
pub mod disk;
#[cfg(feature = "start")]
pub mod etcd;
#[cfg(feature = "start")]
pub mod guard;
#[cfg(feature = "start")]
pub mod haproxy;
#[cfg(feature = "start")]
pub mod helm;
#[cfg(feature = "start")]
pub mod http;
#[cfg(feature = "start")]
pub mod kubernetes;
#[cfg(feature = "start")]
pub mod load;
#[cfg(feature = "start")]
pub mod network;
#[cfg(feature = "start")]
pub mod process;
#[cfg(feature = "start")]
pub mod proxy;
#[cfg(feature = "start")]
pub mod wait;
#[cfg(feature = "start")]
pub mod wireguard;
#[cfg(feature = "start")]
pub mod workdir;

pub use part::Missing;
pub use ports::Port;

#[cfg(feature = "start")]
pub use {
    backend::Backend,
    browser::{Browser, Driver},
    consul::{Acl, Consul, ConsulCluster},
    dataplane::{Dataplane, DataplaneProgram},
    etcd::{Durability, Etcd, EtcdCluster},
    haproxy::{Contained, Haproxy, Version},
    kubernetes::Kubernetes,
    load::Load,
    network::NetworkNamespace,
    process::Process,
    proxy::Proxy,
    wireguard::WireGuard,
    workdir::Workdir,
};
