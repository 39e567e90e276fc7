//! `cargo xtask soak sync`: every scenario, every family of changes and random pairs of configurations on every HAProxy, on 3.4 in every
//! dialect, and on each original that is found; and schedules of faults for as long as asked. `cargo xtask test` runs a sample.

use std::time::{Duration, Instant};

use setpoint_testutils::need;

use crate::families::{random_pairs, walk};
use crate::faults::schedules;
use crate::scenarios;
use crate::world::Place;

/// How many schedules are run where nobody asks for more.
const SAMPLE: u64 = 10;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test]
async fn a_connection_that_breaks_leaves_the_former_configuration_or_the_desired_one() {
    let first = number("SETPOINT_SEED").unwrap_or(0);
    let mut last = first + SAMPLE;
    let mut until = Instant::now();
    if let Some(seconds) = number("SETPOINT_SOAK_SECONDS") {
        (last, until) = (first + 100, until + Duration::from_secs(seconds));
        for place in Place::all() {
            println!("{place}");
            need!(scenarios::all(&place).await);
            need!(walk(&place, (0, 1)).await);
            need!(random_pairs(&place, first..first + 25).await);
        }
    }
    need!(schedules((first..).take_while(|seed| *seed < last || Instant::now() < until)).await);
}
