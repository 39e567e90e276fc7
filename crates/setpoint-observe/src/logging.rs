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

/// Writes lines of our own crates, and of `targets`, from `level` on, and warnings of all others; another setup that was made before
/// stays. Where there are `targets`, lines name theirs.
pub fn to_stderr(level: LevelFilter, format: Format, targets: &[&str]) {
    let own = targets.iter().copied().chain(["setpoint"]).map(|target| (target, level));
    let filter = Targets::new().with_default(level.min(LevelFilter::WARN)).with_targets(own);
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(!targets.is_empty());
    let layer = match format {
        Format::Text => lines.with_ansi(false).boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
}
