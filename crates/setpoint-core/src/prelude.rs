//! What most controllers use, for `use setpoint_core::prelude::*`.

pub use setpoint_engine::{Configurator, Engine, Observed, OpCx, OpError, OpResult};
pub use setpoint_graph::{Attributes, Deps, Graph, Item, ItemRef, Kind, Name};

pub use crate::{Controller, OptionalExt, Source, latest, polled};
