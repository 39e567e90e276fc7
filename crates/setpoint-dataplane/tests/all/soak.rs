//! `cargo xtask soak sync`: every family of changes and random pairs of configurations on every HAProxy, on 3.4 in every dialect, and schedules of faults for as long as
//! asked. `cargo xtask test` runs a sample of the schedules.

use std::time::{Duration, Instant};

use setpoint_dataplane_api::Dialect;
use setpoint_testutils::{Version, need};

use crate::families::{random_pairs, walk};
use crate::faults::schedules;

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
        let nearest = [(Version::V2_6, 0), (Version::V3_0, 0), (Version::V3_2, 2), (Version::V3_4, 4)];
        let dialects = (0..Dialect::ALL.len()).map(|dialect| (Version::V3_4, dialect));
        for (version, dialect) in nearest.into_iter().chain(dialects) {
            need!(walk(version, Dialect::ALL[dialect], (0, 1)).await);
            need!(random_pairs(version, Dialect::ALL[dialect], first..first + 25).await);
        }
    }
    need!(schedules((first..).take_while(|seed| *seed < last || Instant::now() < until)).await);
}
