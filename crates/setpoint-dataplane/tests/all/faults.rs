//! What can go wrong on the way: a HAProxy has the former configuration or the desired one, what is called a success is one, and a
//! later sync gets there.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use setpoint_dataplane::client::{Client, MapEntry, Settings};
use setpoint_dataplane::error::Stage;
use setpoint_dataplane::files::AuxiliaryFiles;
use setpoint_dataplane::retry::Retry;
use setpoint_dataplane::sync::{Choice, Desired, Strategy, SyncMode, SyncOptions, sync};
use setpoint_dataplane::target::{ApiTarget, Target};
use setpoint_dataplane_api::Dialect;
use setpoint_haproxy::compare::compare;
use setpoint_haproxy::text::Document;
use setpoint_testutils::proxy::Proxy;
use setpoint_testutils::{Missing, need, wait};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::counting::Fault;
use crate::sync::{TEXT, error, is_done, options, run, world, world_at};
use crate::world::{CREDENTIALS, Place, World};

/// Two configurations with their files, between which something has to be told, and something takes a reload.
fn pair_with_files(world: &World) -> [Desired; 2] {
    let uses = "  errorfile 503 DIR/general/503.http\n  \
                http-request set-header x-m %[path,map(DIR/maps/used.map)]\n  default_backend";
    let certificate = || {
        let made = setpoint_testutils::certificates::Authority::new().server();
        (made.certificate + &made.key).into_bytes()
    };
    let mut number = 0;
    pair(world).map(|text| {
        number += 1;
        let text = String::from_utf8(text).unwrap().replace("  default_backend", &world.expanded(uses));
        let one = |name: &str, bytes: Vec<u8>| Some(BTreeMap::from([(name.to_owned(), bytes)]));
        let page = format!("HTTP/1.0 503 No\r\n\r\n{number}\n");
        let files = AuxiliaryFiles {
            maps: one("used.map", format!("/a {number}\n/{number} x\n").into_bytes()),
            general: one("503.http", page.into_bytes()),
            certificates: one("site.pem", certificate()),
            ..AuxiliaryFiles::default()
        };
        Desired { text: text.into_bytes(), files }
    })
}

/// In what a target is not as desired: its files, and what HAProxy runs of them.
async fn unlike(world: &World, target: &ApiTarget, desired: &Desired) -> Vec<String> {
    let mut found = Vec::new();
    let kinds = [
        ("maps", &desired.files.maps),
        ("general", &desired.files.general),
        ("ssl", &desired.files.certificates),
    ];
    for (folder, files) in kinds {
        for (name, bytes) in files.iter().flatten() {
            if std::fs::read(world.path(folder).join(name)).ok().as_ref() != Some(bytes) {
                found.push(format!("{name} holds something else"));
            }
        }
    }
    let entries = target.client().map_entries("used.map").await.unwrap().unwrap_or_default();
    let line = |text, entry: &MapEntry| format!("{text}{} {}\n", entry.key, entry.value);
    let entries = entries.iter().fold(String::new(), line);
    let wanted = String::from_utf8(desired.files.maps.as_ref().unwrap()["used.map"].clone()).unwrap();
    if entries != wanted {
        found.push(format!("the map runs with {entries:?} and not {wanted:?}"));
    }
    found
}

/// Two configurations between which something has to be told, and something takes a reload.
fn pair(world: &World) -> [Vec<u8>; 2] {
    let other = TEXT.replace("weight 10", "weight 20").replace(
        "  default_backend",
        "  http-request set-header x-a 1\n  http-request set-header x-b 2\n  default_backend",
    ) + "\nbackend more\n  balance leastconn\n  server m1 127.0.0.1:3\n";
    [world.text(TEXT).into_bytes(), world.text(&other).into_bytes()]
}

/// What a number says, out of so many.
pub(crate) fn drawn(seed: &mut u64, most: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % most
}

/// Returns whether two texts mean the same.
pub(crate) fn is_equal(target: &impl Target, one: &[u8], other: &[u8]) -> bool {
    compare(&Document::parse(one), &Document::parse(other), target.context()).unwrap().is_empty()
}

/// Goes from one configuration to the other and back, while the connection is treated by a schedule for each seed.
pub(crate) async fn schedules(seeds: impl IntoIterator<Item = u64>) -> Result<(), Missing> {
    let (world, _) = world(Dialect::default()).await?;
    let pair = pair_with_files(&world);
    let direct = ApiTarget::new(world.client().await).await.unwrap();
    let proxy = Proxy::start(world.url.trim_start_matches("http://").parse().unwrap()).await;
    let settings = Settings {
        timeout: Duration::from_millis(250),
        ..Settings::new(format!("http://{}", proxy.address())).with_credentials(CREDENTIALS.0, CREDENTIALS.1)
    };
    // On a busy machine an answer may come too late now and then.
    let connect = async || ApiTarget::new(Client::connect(settings.clone()).await.ok()?).await.ok();
    let target = wait::until("a connection", wait::LIMIT, connect).await;
    let options =
        SyncOptions { connection_retry: Retry { max_attempts: 1, ..Retry::default() }, ..options() };
    let cancel = CancellationToken::new();
    let mut failed = 0;
    for seed in seeds {
        let mut state = seed;
        let desired = &pair[usize::from(seed % 2 == 0)];
        let text = &desired.text;
        let former = direct.read().await.unwrap().0;
        let choice =
            if drawn(&mut state, 2) == 0 { Choice::Document } else { Choice::Cheapest(<_>::default()) };
        let options = SyncOptions { choice, fallback_to_raw: drawn(&mut state, 2) == 0, ..options.clone() };
        let (after, fault) = (Duration::from_millis(drawn(&mut state, 60)), drawn(&mut state, 5));
        let bytes = 200 + drawn(&mut state, 3_000);
        let trouble = async {
            tokio::time::sleep(after).await;
            match fault {
                0 => proxy.cut(),
                1 => proxy.delay(Duration::from_millis(300)),
                2 => proxy.limit(400),
                3 => proxy.freeze_answers_after(bytes),
                _ => proxy.corrupt(),
            }
        };
        let (outcome, ()) = tokio::join!(sync(&target, desired, &options, &cancel), trouble);
        proxy.heal();
        world.settled().await;
        let now = direct.read().await.unwrap().0;
        let (is_desired, is_former) = (is_equal(&direct, &now, text), is_equal(&direct, &now, &former));
        let name = format!("seed {seed}, fault {fault} after {after:?}, {choice:?}");
        match outcome {
            Ok(result) => {
                assert!(is_desired, "{name}: called a success: {result:?}");
                let unlike = unlike(&world, &direct, desired).await;
                assert!(unlike.is_empty(), "{name}: called a success: {unlike:?}");
            }
            Err(error) => {
                failed += 1;
                assert!(is_desired || is_former, "{name}: a mixture after {}", error.error.chain());
            }
        }
        let later =
            sync(&direct, desired, &self::options(), &cancel).await.map_err(|failed| failed.error.chain());
        assert!(later.is_ok(), "{name}: a later sync failed: {later:?}");
        let now = direct.read().await.unwrap().0;
        assert!(is_equal(&direct, &now, text), "{name}: a later sync did not get there");
        let unlike = unlike(&world, &direct, desired).await;
        assert!(unlike.is_empty(), "{name}: a later sync did not get there: {unlike:?}");
    }
    assert!(failed > 0, "nothing ever went wrong");
    world.end().await;
    Ok(())
}

#[tokio::test]
async fn storms_of_conflicts_and_errors_end_in_an_error_and_a_later_sync_gets_there() {
    let (world, target) = need!(world(Dialect::default()).await);
    let [_, text] = pair(&world).map(|text| String::from_utf8(text).unwrap());
    for (call, fault) in [
        ("begin", Fault::Conflict(9)),
        ("commit", Fault::Conflict(9)),
        ("operate", Fault::Broken),
        ("commit", Fault::Broken),
    ] {
        let options = SyncOptions { fallback_to_raw: false, ..options() };
        target.fail(call, vec![fault.clone(); 4]);
        let before = world.file();
        let (_, result) = error(run(&target, &text, &options).await);
        assert!(!result.success);
        assert_eq!(world.file(), before, "{call} {fault:?}: nothing was changed");
        // What is left of the storm.
        target.calm();
    }
    run(&target, &text, &options()).await.unwrap();
    is_done(&target, &text).await;
    world.end().await;
}

#[tokio::test]
async fn a_reload_that_fails_is_an_error_and_the_former_configuration_is_back() {
    let (world, target) = need!(world(Dialect::default()).await);
    // `haproxy -c` does not bind: only a reload finds out that somebody else has the port.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let bind = format!("  bind {}\n  default_backend", taken.local_addr().unwrap());
    let text = world.text(&TEXT.replace("  default_backend", &bind));
    let before = target.process().await.unwrap();
    let outcome = run(&target, &text, &SyncOptions { fallback_to_raw: false, ..options() }).await;
    let (error, result) = error(outcome);
    assert_eq!(error.stage, Stage::ReloadVerification, "{}", error.chain());
    assert!(result.reload_verification_error.is_some() && !result.reload_verified, "{result:?}");
    world.settled().await;
    assert_eq!(target.process().await.unwrap().pid, before.pid, "the old one serves");
    let former = world.text(TEXT);
    is_done(&target, &former).await;
    drop(taken);
    run(&target, &text, &options()).await.unwrap();
    is_done(&target, &text).await;
    world.end().await;
}

#[tokio::test]
async fn what_differs_in_nothing_is_no_success_while_a_reload_is_pending_that_fails() {
    let (world, target) = need!(world(Dialect::default()).await);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let bind = format!("  bind {}\n  default_backend", taken.local_addr().unwrap());
    let text = world.text(&TEXT.replace("  default_backend", &bind));
    let unverified = SyncOptions { verify_reload: false, fallback_to_raw: false, ..options() };
    run(&target, &text, &unverified).await.unwrap();
    let (error, _) = error(run(&target, &text, &SyncOptions { fallback_to_raw: false, ..options() }).await);
    assert_eq!(error.stage, Stage::ReloadVerification, "{}", error.chain());
    world.end().await;
}

/// What was collected is gone then, or all of it is there, and nobody has it half.
pub(crate) async fn an_api_that_is_restarted_in_the_middle_of_a_transaction_leaves_what_was_there(
    place: &Place,
) -> Result<(), Missing> {
    if !place.has_api() {
        return Ok(());
    }
    let (mut world, mut target) = world_at(place).await?;
    let [_, text] = pair(&world).map(|text| String::from_utf8(text).unwrap());
    for falls_back in [false, true] {
        let before = target.read().await.unwrap().0;
        target.calls();
        target.held = Some(("operate", Semaphore::new(0)));
        let options = SyncOptions {
            choice: Choice::Always(Strategy::Transaction),
            fallback_to_raw: falls_back,
            ..options()
        };
        let restarts = target.while_held(world.restart_api());
        let (outcome, ()) = tokio::join!(run(&target, &text, &options), restarts);
        if place.is_original() {
            // It keeps transactions in files, and goes on with them: all of it comes, and there is nothing left to do.
            assert_eq!(outcome.unwrap().mode, SyncMode::FineGrained);
            break;
        } else if falls_back {
            assert_eq!(outcome.unwrap().mode, SyncMode::RawFallback);
        } else {
            let (error, _) = error(outcome);
            assert_eq!(error.stage, Stage::Apply, "{}", error.chain());
            assert_eq!(target.read().await.unwrap().0, before);
        }
    }
    is_done(&target, &text).await;
    world.end().await;
    Ok(())
}

#[tokio::test]
async fn on_a_full_disk_a_sync_fails_and_leaves_what_was_there_and_a_later_one_gets_there() {
    let world = need!(World::start_on_small_disk(Dialect::default(), TEXT, "512k").await);
    let target = crate::sync::target(&world).await;
    let [former, desired] = pair_with_files(&world);
    let cancel = CancellationToken::new();
    sync(&target, &former, &options(), &cancel).await.map_err(|failed| failed.error.chain()).unwrap();
    world.settled().await;
    let before = world.file();
    world.fill_disk(true);
    let weight = world.text(&TEXT.replace("weight 10", "weight 77"));
    for fallback_to_raw in [false, true] {
        let options = SyncOptions { fallback_to_raw, ..options() };
        let (full, _) = error(sync(&target, &desired, &options, &cancel).await);
        assert!(full.chain().contains("No space left"), "{}", full.chain());
        let (full, _) = error(run(&target, &weight, &options).await);
        assert!(full.chain().contains("No space left"), "{}", full.chain());
        assert_eq!(world.file(), before);
    }
    let servers = target.running_servers("app").await.unwrap();
    assert!(servers.iter().all(|server| server.weight == Some(10)), "{servers:?}");
    world.fill_disk(false);
    sync(&target, &desired, &options(), &cancel).await.map_err(|failed| failed.error.chain()).unwrap();
    let direct = ApiTarget::new(world.client().await).await.unwrap();
    let unlike = unlike(&world, &direct, &desired).await;
    assert!(unlike.is_empty(), "{unlike:?}");
    assert!(is_equal(&direct, world.file().as_bytes(), &desired.text));
    world.end().await;
}
