//! What a person sees while a command runs: a heading per step and how long the step took.

use std::fmt;
use std::io::IsTerminal;
use std::time::Duration;

/// Prints the heading of a step.
pub fn heading(text: impl fmt::Display) {
    if std::io::stdout().is_terminal() {
        println!("\n\x1b[1m== {text}\x1b[0m");
    } else {
        println!("\n== {text}");
    }
}

/// Writes a duration the way a person reads it: `0.4 s`, `12 s`, `3 min 05 s`.
pub fn human(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", duration.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// Writes a number of things: `1 warning`, `2 warnings`.
pub fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_written_for_people() {
        assert_eq!(human(Duration::from_millis(420)), "0.4 s");
        assert_eq!(human(Duration::from_secs(42)), "42 s");
        assert_eq!(human(Duration::from_secs(185)), "3 min 05 s");
    }
}
