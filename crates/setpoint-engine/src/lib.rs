//! Plans and executes the way from the current graph to the intended one.
//!
//! ```text
//!  intended graph ─┐
//!                  ├─▶ Engine::plan ──▶ the plan envelope: nothing is changed
//!  current graph ──┤
//!                  └─▶ Engine::reconcile ──▶ operations of configurators ──▶ Status; current graph brought up to date
//! ```
//!
//! The crate does no I/O of its own: configurators do. Time, the registry and the journal are handed in. What must
//! survive between two runs is in the current graph, so that an [`Engine`] can be made anew for each.

mod background;
mod clock;
mod condition;
mod configurator;
mod engine;
mod execute;
mod hooks;
mod journal;
mod log;
mod metadata;
mod op;
mod plan;
mod reconcile;
mod refresh;
mod retry;
mod selection;
mod state;
mod status;
pub mod testkit;
mod transition;

pub use background::Completion;
pub use clock::{Clock, SimulatedClock, SystemClock};
pub use condition::{
    Cause, CauseDrift, CauseFailure, Condition, ConditionKind, Explanation, NextStep, SubgraphStatus,
    condition,
};
pub use configurator::{Configurator, ConfiguratorHandle, DefaultRegistry, Observed, Registry};
pub use engine::Engine;
pub use hooks::Hooks;
pub use journal::{Journal, JournalError, MemoryJournal, Record, balance, replay};
pub use log::LogEntry;
pub use metadata::{ItemMetadata, Ownership};
pub use op::{Damage, OpCx, OpError, OpResult, Operation};
pub use refresh::{Drifted, Reading, Refreshed, ToRead};
pub use retry::RetryPolicy;
pub use selection::Selection;
pub use state::{
    CurrentGraph, Drift, ItemState, LastFailure, PlanningState, Presence, Reapply, UnfinishedOperation,
};
pub use status::{EngineError, Failure, Interruption, InvalidItem, ReconcileError, Resumable, Status};
