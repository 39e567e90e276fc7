//! What every controller shares: the small parts of a loop that observes, waits, acts and survives.
//!
//! ```text
//!  source ─▶ Trigger ─▶ Debouncer ─▶ observe ─▶ latest slot ─▶ act ──fails──▶ Backoff ─┐
//!            many events  a quiet      ▲          the newest     ▲                     │
//!            are one      moment       │          value only     └─────────────────────┘
//!                                 TokenBucket
//!                           at most so many a second
//!  ───────────────── each of these in a task of a Supervisor ─────────────────
//! ```
//!
//! Nothing here knows a network, a file or a log. Time is tokio's, so that tests run with paused time;
//! randomness is handed in, so that they repeat. What decides is plain state that takes the time as an
//! argument, with a thin `async` method around it that waits.
//!
//! ```
//! use std::time::Duration;
//! use setpoint_loop::{TokenBucket, latest};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
//! let (sender, mut newest) = latest::channel();
//! for version in 1..=100 {
//!     sender.send(version).unwrap();
//! }
//! let mut bucket = TokenBucket::new(2, Duration::from_secs(3));
//! bucket.acquire().await;
//! assert_eq!(newest.recv().await, Some(100), "nobody has to work through the 99 before it");
//! # });
//! ```

mod backoff;
mod bucket;
mod bus;
mod debounce;
mod keyed;
pub mod latest;
mod repairs;
mod supervise;
mod trigger;

pub use backoff::{Backoff, retry};
pub use bucket::TokenBucket;
pub use bus::{Answers, Bus, Correlation, Counts, Mailbox, Observer, Published, Received, Reply};
pub use debounce::Debouncer;
pub use keyed::{Keyed, Pokes};
pub use repairs::Repairs;
pub use supervise::{Health, Outcome, Phase, Restart, Supervisor, Task, TaskHandle};
pub use trigger::{Listener, Trigger, trigger};
