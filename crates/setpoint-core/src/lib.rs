//! What a controller is built on, behind one dependency; it runs on tokio.
//!
//! ```text
//!  Source ──load──▶ intended graph ──▶ reconcile ──▶ Pass: to the observer
//!    ▲                                     │
//!    └── wait for a change of the source, the end of a background operation,
//!        the next retry, or the next look for drift ◀┘
//! ```
//!
//! Describe a thing as a struct with [`Item`], and how one is created and deleted as a [`Configurator`]. A [`Source`]
//! says which items should exist: [`polled`] asks a function at an interval, [`latest`] takes what is sent, and a [`Graph`]
//! never changes. A [`Controller`] keeps the items so until it is stopped.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use setpoint_core::prelude::*;
//!
//! #[derive(Clone, Debug, PartialEq)]
//! struct Lamp { room: &'static str, brightness: u8 }
//!
//! impl Item for Lamp {
//!     const KIND: Kind = Kind::from_static("lamp");
//!     fn name(&self) -> Name { Name::from_static(self.room) }
//! }
//!
//! struct Lamps(Arc<Mutex<Vec<Lamp>>>);
//!
//! impl Configurator<Lamp> for Lamps {
//!     async fn create(&self, _: &OpCx, new: &Lamp) -> OpResult {
//!         self.0.lock().unwrap().push(new.clone());
//!         Ok(())
//!     }
//!     async fn delete(&self, _: &OpCx, old: &Lamp) -> OpResult {
//!         self.0.lock().unwrap().retain(|lamp| lamp.room != old.room);
//!         Ok(())
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let lit = Arc::new(Mutex::new(Vec::new()));
//! let engine = Engine::for_items(Lamps(Arc::clone(&lit)));
//! let mut intended = Graph::new("house");
//! intended.put_item(Lamp { room: "kitchen", brightness: 80 })?;
//!
//! Controller::new(engine, intended).run_until_converged().await;
//! assert_eq!(*lit.lock().unwrap(), [Lamp { room: "kitchen", brightness: 80 }]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! Everything else that the crates below offer is in [`graph`], [`engine`], [`plan`] and [`pacing`].

mod controller;
mod optional;
mod polled;
pub mod prelude;
mod source;

pub use controller::{Controller, Pass, Reason};
pub use optional::OptionalExt;
pub use polled::{Polled, polled};
pub use source::{Changed, Latest, Source, latest};

pub use setpoint_engine as engine;
pub use setpoint_graph as graph;
pub use setpoint_loop as pacing;
pub use setpoint_plan as plan;

pub use jiff::Timestamp;
pub use setpoint_engine::{
    Configurator, CurrentGraph, DefaultRegistry, Engine, EngineError, Observed, OpCx, OpError, OpResult,
    RetryPolicy, Selection, Status,
};
pub use setpoint_graph::{Attributes, Deps, Graph, Item, ItemHandle, ItemRef, Kind, Name, SubgraphPath};
pub use setpoint_plan::Plan;
pub use tokio_util::sync::CancellationToken;
