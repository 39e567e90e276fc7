use std::time::Duration;

use setpoint_core::{Reason, polled};

use crate::world::{SECOND, World, start, valves};

#[tokio::test(start_paused = true)]
async fn a_function_is_asked_at_an_interval_and_what_did_not_change_is_left_alone() {
    let world = World::default();
    let mut asked = 0;
    let mut running = start(
        &world,
        polled(move || {
            asked += 1;
            let answer = match asked {
                1 | 2 => Ok(valves([("a", 1)])),
                3 => Err("no such server"),
                _ => Ok(valves([("a", 2)])),
            };
            async { answer }
        }),
    );
    let first = running.pass().await;
    assert_eq!((first.reason, first.log), (Reason::Started, vec!["create valve/a".to_owned()]));
    let second = running.pass().await;
    assert_eq!((second.reason, second.after), (Reason::Changed, 10 * SECOND));
    assert!(second.log.is_empty() && second.converged);
    let third = running.pass().await;
    assert_eq!((third.source_error.as_deref(), third.after), (Some("no such server"), 20 * SECOND));
    assert_eq!(world.lock().openings["a"], 1, "what was intended last stands");
    let later = running.passes_within(20 * SECOND).await;
    let changed: Vec<_> = later.iter().filter(|pass| !pass.log.is_empty()).collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].log, ["modify valve/a"]);
}

#[tokio::test(start_paused = true)]
async fn what_happens_meanwhile_does_not_put_off_the_next_time_it_is_asked() {
    let world = World::default();
    world.lock().broken.insert("a");
    // The item fails, and is tried again after 10 s and after 30 s.
    let mut running =
        start(&world, polled(|| async { Ok::<_, String>(valves([("a", 1)])) }).every(15 * SECOND));
    let passes = running.passes_within(31 * SECOND).await;
    let asked: Vec<Duration> =
        passes.iter().filter(|pass| pass.reason == Reason::Changed).map(|pass| pass.after).collect();
    assert_eq!(asked, [15 * SECOND, 30 * SECOND]);
}
