//! Random schedules against a simple model.
//!
//! Each schedule is made from a seed: random graphs, intents, selections, faults, cancellations, dropped
//! runs, external changes and background completions in random order. Afterwards faults stop, and the
//! system must reach what a plain fixed-point computation says; at no instant was a rule broken.
//!
//! A failing seed is printed; `SETPOINT_SEED=N cargo test -p setpoint-engine schedules` repeats it.

use std::time::{Duration, Instant};

use setpoint_engine::Selection;

use crate::dice::quiet_expected_panics;
use crate::schedule::{Schedule, Trace};

async fn run_schedule(seed: u64, orders: bool, trace: Trace) -> Schedule {
    let mut schedule = Schedule::new(seed, trace);
    schedule.orders = orders;
    schedule.change_intent();
    for _ in 0..10 + schedule.dice.below(30) {
        schedule.step().await;
    }
    schedule.settle().await;
    schedule
}

/// Runs one schedule; a failure names the seed and tells what happened.
fn check(seed: u64, orders: bool) {
    let trace = Trace::default();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let schedule = runtime.block_on(run_schedule(seed, orders, trace.clone()));
        schedule.check_end();
        schedule.check_replay();
    }));
    if let Err(panic) = outcome {
        for line in trace.0.lock().unwrap().iter() {
            eprintln!("{line}");
        }
        let message = panic.downcast_ref::<String>().map_or("", String::as_str);
        eprintln!("failing seed: SETPOINT_SEED={seed}: {message}");
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn random_schedules_reach_the_intent_and_never_break_a_rule() {
    quiet_expected_panics();
    if let Ok(seed) = std::env::var("SETPOINT_SEED") {
        check(seed.parse().expect("a number"), false);
        return;
    }
    for seed in 0..3000 {
        check(seed, false);
    }
}

#[test]
fn random_schedules_with_things_that_only_come_after_others_repeat_what_they_must() {
    quiet_expected_panics();
    if let Ok(seed) = std::env::var("SETPOINT_SEED") {
        check(seed.parse().expect("a number"), true);
        return;
    }
    for seed in 0..3000 {
        check(seed, true);
    }
}

/// Each of these showed a mistake that long runs found.
#[test]
fn schedules_that_once_failed_do_so_no_more() {
    quiet_expected_panics();
    for seed in [
        5_330_187, 9_000_344, 9_012_430, 9_013_928, 9_040_711, 9_146_732, 9_167_857, 9_172_915, 9_176_612,
        9_206_810, 9_210_819, 9_288_779,
    ] {
        check(seed, false);
    }
}

/// A plan is what happens: one operation at a time, in the planned order.
#[test]
fn a_run_without_faults_does_what_was_planned_in_that_order() {
    for seed in 0..1000 {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut schedule = Schedule::new(seed, Trace::default());
            schedule.claims = false;
            let engine = schedule.world.engine().with_concurrency(1);
            let all = Selection::all();
            for _ in 0..6 {
                schedule.change_intent();
                let now = jiff::Timestamp::UNIX_EPOCH;
                let plan =
                    engine.plan(schedule.current.as_ref(), Some(&schedule.intended), &all, now).unwrap();
                let planned: Vec<String> =
                    plan.operations.iter().map(|op| format!("{:?} {}", op.action, op.name)).collect();
                let run = engine.reconcile(&mut schedule.current, Some(&schedule.intended), &all);
                let status = run.await.unwrap();
                let done: Vec<String> = status
                    .log()
                    .iter()
                    .map(|entry| format!("{:?} {}", entry.operation(), entry.item().reference().name()))
                    .collect();
                assert_eq!(done, planned, "seed {seed}");
            }
        });
    }
}

/// The long mode, run by `cargo xtask soak engine --minutes N`: as many schedules as fit. All tests run a sample of it.
#[test]
fn random_schedules_for_as_long_as_asked() {
    quiet_expected_panics();
    let seconds =
        std::env::var("SETPOINT_SOAK_SECONDS").map_or(1, |seconds| seconds.parse().expect("a number"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let first = std::env::var("SETPOINT_SEED").map_or(1_000_000, |seed| seed.parse().expect("a number"));
    let mut count = 0;
    while Instant::now() < end {
        check(first + count, count % 2 == 1);
        count += 1;
        if count % 1000 == 0 {
            println!("{count} schedules");
        }
    }
    println!("soak engine: {count} schedules, seeds {first} to {}, all passed", first + count - 1);
}
