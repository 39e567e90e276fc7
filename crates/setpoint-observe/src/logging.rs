//! Structured logs on the standard error output, set up once for a process.

use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub use tracing_subscriber::filter::LevelFilter;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Writes lines of our own crates from `level` on, and warnings of all others; another setup that was made before stays.
pub fn to_stderr(level: LevelFilter, format: Format) {
    let targets = Targets::new().with_default(level.min(LevelFilter::WARN)).with_target("setpoint", level);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false);
    let layer = match format {
        Format::Text => lines.with_ansi(false).boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    let _ = tracing_subscriber::registry().with(layer.with_filter(targets)).try_init();
}
