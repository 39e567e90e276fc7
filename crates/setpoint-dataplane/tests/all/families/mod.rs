//! Families of changes, each from one configuration to another and back: the plan says beforehand whether HAProxy reloads, the
//! master of HAProxy counts how often it did, what was planned is what was done, and a second sync finds nothing to do.

mod cases;
mod more;

use std::time::Duration;

use setpoint_dataplane::costs::Weights;
use setpoint_dataplane::files::AuxiliaryFiles;
use setpoint_dataplane::sync::{Choice, Desired, SyncMode, SyncOptions, plan, sync};
use setpoint_dataplane::target::Target as _;
use setpoint_dataplane_api::Dialect;
use setpoint_haproxy::model::Version;
use setpoint_testutils::wait::LIMIT;
use setpoint_testutils::{Missing, need};
use tokio_util::sync::CancellationToken;

use crate::faults::{drawn, is_equal};
use crate::sync::TEXT;
use crate::world::{Place, World};
use cases::{BASE, CASES, Case};

fn changed(base: &str, case: &Case) -> String {
    let mut text = base.to_owned();
    for (old, new) in case.1.iter().filter(|(old, _)| !is_of_the_head(old)) {
        if old.is_empty() {
            text.push_str(new);
        } else {
            assert!(text.contains(old), "{}: {old:?} is not there", case.0);
            text = text.replacen(old, new, 1);
        }
    }
    text
}

/// What is changed in what every text begins with.
fn is_of_the_head(old: &str) -> bool {
    old.starts_with("global") || old.starts_with("  timeout connect") || old == "  mode http\n"
}

fn desired(world: &World, base: &str, case: Option<&Case>) -> Desired {
    let mut text = world.text(&case.map_or_else(|| base.to_owned(), |case| changed(base, case)));
    for (old, new) in case.into_iter().flat_map(|case| case.1).filter(|(old, _)| is_of_the_head(old)) {
        assert!(text.contains(old), "{old:?} is not there");
        text = text.replacen(old, new, 1);
    }
    Desired { text: text.into_bytes(), files: AuxiliaryFiles::default() }
}

/// Goes through changes, there and back, on one HAProxy in one dialect: the n-th of each so many. There by the cheapest way, back by
/// the rules of the document.
pub(crate) async fn walk(place: &Place, (nth, of): (usize, usize)) -> Result<(), Missing> {
    let haproxy: Version = place.haproxy().part().trim_start_matches("haproxy-").parse().unwrap();
    let base = more::base(BASE, haproxy);
    let world = World::start_at(place, TEXT, None).await?;
    std::fs::write(world.path("503.http"), "HTTP/1.0 503 no\r\n\r\n").unwrap();
    let target = world.target().await;
    let options = SyncOptions {
        timeout: LIMIT,
        reload_verification_timeout: LIMIT,
        reload_poll_interval: Duration::from_millis(20),
        fallback_to_raw: false,
        ..SyncOptions::default()
    };
    let cancel = CancellationToken::new();
    sync(&target, &desired(&world, &base, None), &options, &cancel).await.unwrap();
    world.settled().await;
    let mut wrong = Vec::new();
    let more = more::CASES.iter().filter(|(since, _)| haproxy >= *since).map(|(_, case)| case);
    let cases: Vec<&Case> = CASES.iter().chain(more).collect();
    for case in cases.into_iter().skip(nth).step_by(of) {
        // HAProxy 2.6 has none, and what the original would break is an error (read_back.rs).
        let has_none = case.0 == "crt-store" && haproxy < Version::V3_0;
        if has_none || case.0 == "conditional" && place.is_original() {
            continue;
        }
        let cheapest = SyncOptions { choice: Choice::Cheapest(Weights::default()), ..options.clone() };
        for (way, desired, options) in [
            ("there", desired(&world, &base, Some(case)), &cheapest),
            ("back", desired(&world, &base, None), &options),
        ] {
            let name = format!("{} {way}, {place}", case.0);
            let planned = plan(&target, &desired, options, &cancel).await.unwrap();
            let before = world.reloads();
            let result = match sync(&target, &desired, options, &cancel).await {
                Ok(result) => result,
                Err(failed) => {
                    wrong.push(format!("{name}: {}", failed.error.chain()));
                    continue;
                }
            };
            world.settled().await;
            let reloads = world.reloads() - before;
            let mut ordered: Vec<String> =
                planned.diff.operations().iter().map(ToString::to_string).collect();
            let mut applied = result.applied_operations.clone();
            ordered.sort();
            applied.sort();
            let again = sync(&target, &desired, options, &cancel).await;
            let is_done =
                again.is_ok_and(|again| again.applied_operations.is_empty() && !again.reload_triggered);
            let expected = (reloads, reloads > 0, planned.mode.unwrap_or_default(), true);
            let found = (u64::from(planned.reload.is_some()), result.reload_triggered, result.mode, is_done);
            if found != expected || applied != ordered || result.mode == SyncMode::RawFallback {
                wrong.push(format!(
                    "{name}: {found:?}, not {expected:?}: {:?} {:?}",
                    planned.reload, result.applied_operations
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    world.end().await;
    Ok(())
}

// Each has a HAProxy of its own, so that one walks while the other waits for a reload.

#[tokio::test]
async fn one_half_of_all_families_of_changes_is_carried_over_there_and_back() {
    need!(walk(&Place::nearest(Dialect::default()), (0, 2)).await);
}

#[tokio::test]
async fn the_other_half_of_all_families_of_changes_is_carried_over_there_and_back() {
    need!(walk(&Place::nearest(Dialect::default()), (1, 2)).await);
}

// Others take a share each; `cargo xtask soak sync` takes all of them.

#[tokio::test]
async fn families_of_changes_are_carried_over_by_an_old_api_and_an_old_haproxy() {
    need!(walk(&Place::nearest(Dialect::ALL[0]), (0, 3)).await);
    need!(walk(&Place::Own(setpoint_testutils::Version::V2_6, Dialect::ALL[0]), (1, 3)).await);
}

#[tokio::test]
async fn families_of_changes_are_carried_over_in_between() {
    need!(walk(&Place::nearest(Dialect::ALL[2]), (2, 3)).await);
}

#[tokio::test]
async fn families_of_changes_are_carried_over_without_any_api() {
    need!(walk(&Place::Local(setpoint_testutils::Version::V3_4), (1, 3)).await);
    need!(walk(&Place::Local(setpoint_testutils::Version::V2_6), (2, 3)).await);
}

#[tokio::test]
async fn families_of_changes_are_carried_over_by_each_original_that_is_found() {
    // Each takes another share.
    for (nth, place) in need!(Place::each_original()).iter().enumerate() {
        need!(walk(place, (nth % 4, 4)).await);
    }
}

/// Goes between random configurations: each is the base with some changes that go together. Returns how many pairs there were.
pub(crate) async fn random_pairs(place: &Place, seeds: impl IntoIterator<Item = u64>) -> Result<(), Missing> {
    let world = World::start_at(place, TEXT, None).await?;
    std::fs::write(world.path("503.http"), "HTTP/1.0 503 no\r\n\r\n").unwrap();
    let target = world.target().await;
    let options = SyncOptions {
        timeout: LIMIT,
        reload_verification_timeout: LIMIT,
        reload_poll_interval: Duration::from_millis(20),
        fallback_to_raw: false,
        ..SyncOptions::default()
    };
    let cancel = CancellationToken::new();
    sync(&target, &desired(&world, BASE, None), &options, &cancel).await.unwrap();
    world.settled().await;
    for seed in seeds {
        let mut state = seed;
        let (text, names) = random(&mut state);
        let desired = Desired { text: world.text(&text).into_bytes(), files: AuxiliaryFiles::default() };
        let choice = match drawn(&mut state, 3) {
            0 => Choice::Document,
            1 => Choice::Cheapest(Weights::default()),
            _ => Choice::Cheapest(Weights { reload: Some(0.0), ..Weights::default() }),
        };
        let options = SyncOptions { choice, runtime_first: drawn(&mut state, 3) == 0, ..options.clone() };
        let name = format!("seed {seed}: {names:?}, {choice:?}, runtime first: {}", options.runtime_first);
        let planned = plan(&target, &desired, &options, &cancel).await.unwrap();
        let before = world.reloads();
        let synced = sync(&target, &desired, &options, &cancel).await;
        assert!(synced.is_ok(), "{name}: {}", synced.unwrap_err().error.chain());
        let result = synced.unwrap();
        world.settled().await;
        let reloads = world.reloads() - before;
        assert_eq!(u64::from(planned.reload.is_some()), reloads, "{name}: {:?} {result:?}", planned.reload);
        let read = target.read().await.unwrap().0;
        // The original writes it in other words, which the next sync looks through.
        let is_equal = place.is_original() || is_equal(&target, &read, &desired.text);
        assert!(is_equal, "{name}: {}", String::from_utf8_lossy(&read));
        let again = sync(&target, &desired, &options, &cancel).await.unwrap();
        assert!(again.applied_operations.is_empty() && !again.reload_triggered, "{name}: {again:?}");
    }
    world.end().await;
    Ok(())
}

/// The base with some changes, each of which still finds what it changes, and their names.
fn random(state: &mut u64) -> (String, Vec<&'static str>) {
    let (mut text, mut names) = (BASE.to_owned(), Vec::new());
    for _ in 0..=drawn(state, 6) {
        let place = usize::try_from(drawn(state, CASES.len() as u64)).unwrap();
        let (name, edits) = CASES[place];
        // Some need a HAProxy that is not the oldest, or a port.
        let is_odd = ["crt-store", "log-forward", "conditional"].contains(&name);
        let fits =
            edits.iter().all(|(old, _)| !is_of_the_head(old) && (old.is_empty() || text.contains(old)));
        if is_odd || names.contains(&name) || !fits {
            continue;
        }
        let former = text.clone();
        for (old, new) in edits {
            if old.is_empty() {
                // A section with a name that is there already is none that goes together, be it of another kind.
                let name = new
                    .trim_start()
                    .lines()
                    .next()
                    .and_then(|title| title.split(' ').nth(1))
                    .unwrap_or_default();
                let is_taken =
                    text.lines().any(|line| !line.starts_with(' ') && line.split(' ').nth(1) == Some(name));
                if !is_taken {
                    text.push_str(new);
                }
            } else {
                text = text.replacen(old, new, 1);
            }
        }
        // What one change names another may have taken away.
        let lacks_backend = text.contains("_backend other") && !text.contains("\nbackend other\n  balance");
        if lacks_backend || text.contains("use-server s1") && !text.contains("  server s1 ") {
            text = former;
            continue;
        }
        names.push(name);
    }
    (text, names)
}

#[tokio::test]
async fn random_configurations_are_brought_to_each_other() {
    need!(random_pairs(&Place::nearest(Dialect::default()), 0..12).await);
    need!(random_pairs(&Place::nearest(Dialect::ALL[0]), 100..106).await);
}
