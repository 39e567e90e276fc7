//! What Setpoint knows between runs: the current graph, the journal of the run under way, and the history.
//!
//! ```text
//!  .setpoint/
//!    state.redb ── items with their states, runs, the name of the set      written at each checkpoint
//!    state.last ── a copy of it                                            read where state.redb is damaged
//!    journal ───── what the run under way has started, noted and ended     appended to, batch by batch
//!    lock ──────── who may write: its process id                           locked with the directory, for as long as it may
//!    *.damaged ─── a database whose place the copy has taken, or a journal that can't be read to its end
//!    run/ ──────── what belongs to the set beside that, such as logs       not looked at here
//!
//!  load = state.redb + replay(journal)          checkpoint = one transaction, then an empty journal
//! ```
//!
//! A run appends to the journal before it starts anything, so that the end of the process at any instant loses
//! nothing: whoever loads the state next replays the journal, and the engine reads back what was under way. The
//! database is only open for a moment at a time, so that reading commands work beside a long-running writer. It
//! is durable at each checkpoint; between two of them the journal is as durable as the files a run writes.

mod database;
mod entry;
mod error;
mod format;
mod journal;
mod lock;
mod run;
mod store;

pub use database::Recovered;
pub use error::StateError;
pub use journal::JournalFile;
pub use run::{OperationDetails, Run, RunDetails, RunDrift, RunEntry, RunOutcome};
pub use store::{Holder, Snapshot, StateDir, StateVersion, Writer};
