//! Ten thousand files beside a plain loop. The numbers are printed; what is asserted leaves room for noise.

use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant};

use setpoint_engine::{CurrentGraph, Engine};
use setpoint_host::registry;

use crate::world::{ALL, World, runtime};

const FILES: usize = 10_000;

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

/// How often a plain loop could have written all of it meanwhile, and how often it could have read it.
fn measure() -> (Vec<f64>, String) {
    let world = World::new();
    let mut yaml = "directories:\n".to_owned();
    for d in 0..100 {
        writeln!(yaml, "  d{d}:").unwrap();
    }
    yaml.push_str("files:\n");
    for f in 0..FILES {
        writeln!(yaml, "  f{f}:\n    path: d{}/f{f}\n    content: \"this is file number {f}\\n\"", f % 100)
            .unwrap();
    }
    let (manifest, load) = timed(|| world.load(&yaml));

    let plain = tempfile::tempdir().unwrap();
    let path = |f: usize| plain.path().join(format!("d{}/f{f}", f % 100));
    let ((), write) = timed(|| {
        for d in 0..100 {
            fs::create_dir(plain.path().join(format!("d{d}"))).unwrap();
        }
        for f in 0..FILES {
            fs::write(path(f), format!("this is file number {f}\n")).unwrap();
        }
    });
    let engine = Engine::new(registry(&world.host));
    let runtime = runtime();
    let mut current: Option<CurrentGraph> = None;
    let run = engine.reconcile(&mut current, Some(manifest.graph()), &ALL);
    let (status, apply) = timed(|| runtime.block_on(run).unwrap());
    assert_eq!(status.log().len(), FILES + 100);

    let (bytes, read) = timed(|| (0..FILES).map(|f| fs::read(path(f)).unwrap().len()).sum::<usize>());
    let mut current = current.unwrap();
    let (refreshed, refresh) = timed(|| runtime.block_on(engine.refresh(&mut current, &ALL)));
    assert_eq!((refreshed.read, refreshed.drifted.len()), (FILES + 100, 0));
    let times = [(apply, write), (refresh, read)];
    let ratios = times.map(|(own, plain)| own.as_secs_f64() / plain.as_secs_f64());
    let text = format!(
        "load {load:?}; write: loop {write:?}, apply {apply:?}, ratio {:.2}; read: loop {read:?}, refresh {refresh:?}, ratio {:.2} ({bytes} bytes)",
        ratios[0], ratios[1],
    );
    (ratios.to_vec(), text)
}

#[test]
fn ten_thousand_files_take_a_few_times_a_plain_loop() {
    const MOST: f64 = 10.0;
    let mut best = vec![f64::INFINITY; 2];
    // Another program may have held the machine: what is slow is so each time.
    for _ in 0..3 {
        if best.iter().any(|ratio| *ratio >= MOST) {
            let (ratios, text) = measure();
            println!("{text}");
            best = best.into_iter().zip(ratios).map(|(best, ratio)| best.min(ratio)).collect();
        }
    }
    assert!(best.iter().all(|ratio| *ratio < MOST), "a plain loop writes and reads {best:?} times as fast");
}
