//! By which way a difference is carried over: by costs, by force, and what a running HAProxy is told first.

use std::fmt::Write as _;

use setpoint_dataplane::costs::{Costs, Weights};
use setpoint_dataplane::error::Stage;
use setpoint_dataplane::files::AuxiliaryFiles;
use setpoint_dataplane::sync::{Choice, Desired, Strategy, SyncMode, SyncOptions, plan, sync};
use setpoint_dataplane::target::Target as _;
use setpoint_dataplane_api::Dialect;
use setpoint_testutils::need;
use tokio_util::sync::CancellationToken;

use crate::any::Any;
use crate::counting::{Counting, Fault};
use crate::sync::{TEXT, error, is_done, options, run, world, world_at};
use crate::world::Place;

/// The cheapest way where a text is expensive, as a long one is.
fn cheapest() -> SyncOptions {
    let mut costs = Costs::SETPOINT;
    costs.push.base = 9.0;
    let choice = Choice::Cheapest(Weights { costs: Some(costs), reload: None });
    SyncOptions { choice, fallback_to_raw: false, ..options() }
}

/// The calls that change something.
fn changes(target: &Counting<Any>) -> Vec<String> {
    let calls = target.calls().into_iter();
    calls.filter(|call| call.starts_with("operate") || call.starts_with("push")).collect()
}

/// A backend with servers, whose names are in order or not.
fn backend(name: &str, servers: impl Iterator<Item = u32>) -> String {
    let mut text = format!("\nbackend {name}\n  balance leastconn\n  acl a path /a\n  acl b path /b\n");
    for number in servers {
        let _ = writeln!(text, "  server s{number:03} 127.0.0.1:{}", 100 + number);
    }
    text
}

#[tokio::test]
async fn a_new_backend_is_one_call_in_every_dialect() {
    for dialect in Dialect::ALL {
        let (world, target) = need!(world(dialect).await);
        let text = world.text(&(TEXT.to_owned() + &backend("more", 0..20)));
        let result = run(&target, &text, &cheapest()).await.unwrap();
        assert_eq!(result.mode, SyncMode::FineGrained);
        assert_eq!(changes(&target), ["operate + backend more with all that stands in it"]);
        assert_eq!(result.applied_operations.len(), 23, "{:?}", result.applied_operations);
        is_done(&target, &text).await;
        world.end().await;
    }
}

#[tokio::test]
async fn servers_that_are_not_in_the_order_of_their_names_keep_their_order() {
    let (world, target) = need!(world(Dialect::default()).await);
    // With `balance first`, and backups, the order is what counts.
    let servers = backend("more", (0..10).rev()).replace("leastconn", "first");
    let text = world.text(&(TEXT.to_owned() + &servers));
    run(&target, &text, &cheapest()).await.unwrap();
    let changes = changes(&target);
    assert_eq!(changes[0], "operate + backend more with all that stands in it");
    assert_eq!(changes.len(), 11, "{changes:?}");
    let file = world.file();
    let order: Vec<&str> = file.lines().filter(|line| line.contains("server s00")).collect();
    assert!(order.is_sorted_by(|one, other| one > other), "{order:?}");
    is_done(&target, &text).await;
    world.end().await;
}

#[tokio::test]
async fn many_changes_of_a_list_are_one_call() {
    let (world, target) = need!(world(Dialect::default()).await);
    let rules = |from: u32| {
        (from..from + 8).fold(String::new(), |text, n| format!("{text}  http-request set-header x-{n} {n}\n"))
    };
    let with =
        |rules: &str| world.text(&TEXT.replace("  default_backend", &format!("{rules}  default_backend")));
    run(&target, &with(&rules(0)), &cheapest()).await.unwrap();
    assert_eq!(changes(&target), ["operate ~ frontend web: http_request_rule_list"]);
    // One that differs is cheaper by itself than all of them.
    run(&target, &with(&rules(0).replace("x-3 3", "x-3 4")), &cheapest()).await.unwrap();
    assert_eq!(changes(&target), ["operate ~ frontend web: http_request_rule 3"]);
    is_done(&target, &with(&rules(0).replace("x-3 3", "x-3 4"))).await;
    world.end().await;
}

#[tokio::test]
async fn the_cheapest_way_is_taken_and_the_plan_names_the_others() {
    let (world, target) = need!(world(Dialect::default()).await);
    let cancel = CancellationToken::new();
    let desired = Desired {
        text: world.text(&TEXT.replace("weight 10", "weight 20")).into(),
        files: AuxiliaryFiles::default(),
    };
    let planned = plan(&target, &desired, &cheapest(), &cancel).await.unwrap();
    let modes: Vec<SyncMode> = planned.ways.iter().map(|way| way.mode).collect();
    assert_eq!(planned.mode, Some(modes[0]));
    assert!(modes.contains(&SyncMode::Runtime) && modes.contains(&SyncMode::FineGrained), "{modes:?}");
    assert!(modes.contains(&SyncMode::RawChosen), "{modes:?}");
    assert!(planned.ways.iter().all(|way| way.estimate.reloads == 0), "{:?}", planned.ways);
    assert_eq!(planned.costs.map(|costs| costs.change), Some(Costs::SETPOINT.change));
    // Where calls cost much and a text little, the text is pushed.
    let mut costs = Costs::SETPOINT;
    (costs.direct.base, costs.change.base) = (9.0, 9.0);
    let weights = Weights { costs: Some(costs), reload: None };
    let options = SyncOptions { choice: Choice::Cheapest(weights), ..options() };
    let result = run(&target, std::str::from_utf8(&desired.text).unwrap(), &options).await.unwrap();
    assert_eq!((result.mode, result.reload_triggered), (SyncMode::RawChosen, false));
    assert_eq!(changes(&target), ["push"]);
    world.end().await;
}

#[tokio::test]
async fn weights_of_many_servers_are_told_beside_a_text_where_the_original_would_reload_for_a_transaction() {
    let (world, mut target) = need!(world(Dialect::default()).await);
    target.is_original = true;
    let text = |weight: u32| {
        let servers = (0..30)
            .fold(String::new(), |text, n| format!("{text}  server m{n:02} 127.0.0.1:9 weight {weight}\n"));
        world.text(&format!("{TEXT}\nbackend many\n  balance roundrobin\n{servers}"))
    };
    let options =
        SyncOptions { choice: Choice::Cheapest(Weights::default()), fallback_to_raw: false, ..options() };
    run(&target, &text(10), &options).await.unwrap();
    world.settled().await;
    let before = target.process().await.unwrap().pid;
    target.calls();
    let result = run(&target, &text(20), &options).await.unwrap();
    assert_eq!((result.mode, result.reload_triggered), (SyncMode::Runtime, false), "{result:?}");
    let changes = changes(&target);
    assert!(matches!(&changes[..], [push] if push.contains("SetServerWeight many m07 20;")), "{changes:?}");
    assert_eq!(target.process().await.unwrap().pid, before);
    let weights: Vec<_> =
        target.running_servers("many").await.unwrap().iter().map(|server| server.weight).collect();
    assert_eq!(weights, [Some(20); 30]);
    // One by itself is cheaper than the whole text.
    let one = text(20).replacen("m07 127.0.0.1:9 weight 20", "m07 127.0.0.1:9 weight 5", 1);
    run(&target, &one, &options).await.unwrap();
    assert_eq!(self::changes(&target), ["operate ~ backend many: server m07"]);
    world.end().await;
}

#[tokio::test]
async fn what_haproxy_did_not_take_at_runtime_is_an_error() {
    let (world, mut target) = need!(world(Dialect::default()).await);
    target.lies = true;
    let text = world.text(&TEXT.replace("weight 10", "weight 20"));
    let (error, _) = error(run(&target, &text, &cheapest()).await);
    assert_eq!(error.stage, Stage::ReadBack);
    let message = error.to_string();
    assert!(message.contains("backend app: server s1 runs with weight 1 and not 20"), "{message}");
    world.end().await;
}

/// APIs up to 3.2 do not tell the weight beside the state of a server.
#[tokio::test]
async fn a_weight_that_haproxy_did_not_take_is_noticed_in_every_dialect() {
    for dialect in Dialect::ALL {
        let (world, mut target) = need!(world(dialect).await);
        target.lies = true;
        let text = world.text(&TEXT.replace("weight 10", "weight 20"));
        let (error, _) = error(run(&target, &text, &cheapest()).await);
        assert_eq!(error.stage, Stage::ReadBack, "{dialect:?}");
        assert!(
            error.to_string().contains("server s1 runs with weight 1 and not 20"),
            "{dialect:?}: {error}"
        );
        target.lies = false;
        is_done(&target, &text).await;
        // Another's weight is drift there, too.
        tell(&world.path("haproxy.sock"), "set server app/s2 weight 7");
        let options = SyncOptions { runtime_drift: true, ..cheapest() };
        let desired = Desired { text: text.into(), files: AuxiliaryFiles::default() };
        let planned = plan(&target, &desired, &options, &CancellationToken::new()).await.unwrap();
        let words: Vec<String> = planned.running.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["backend app: server s2 runs with weight 7 and not 20"], "{dialect:?}");
        world.end().await;
    }
}

#[tokio::test]
async fn a_server_that_should_be_gone_and_runs_on_is_an_error() {
    let (world, mut target) = need!(world(Dialect::default()).await);
    let text = world.text(&TEXT.replace("  server s2 127.0.0.1:2 weight 10\n", ""));
    target.stays = Some("s2");
    let (error, _) = error(run(&target, &text, &cheapest()).await);
    assert_eq!(error.stage, Stage::ReadBack);
    assert!(error.to_string().contains("server s2 runs on"), "{error}");
    world.end().await;
}

#[tokio::test]
async fn a_state_that_the_configuration_sets_is_read_back() {
    let (world, target) = need!(world(Dialect::default()).await);
    let text = world.text(&TEXT.replace("s2 127.0.0.1:2 weight 10", "s2 127.0.0.1:2 weight 10 disabled"));
    let wrong = world.text(TEXT);
    run(&target, &text, &cheapest()).await.unwrap();
    target.drains.store(true, std::sync::atomic::Ordering::Relaxed);
    let (error, _) = error(run(&target, &wrong, &cheapest()).await);
    assert!(error.to_string().contains("server s2 is `drain` and not `ready`"), "{error}");
    world.end().await;
}

#[tokio::test]
async fn a_map_that_haproxy_did_not_take_is_an_error() {
    let (world, mut target) = need!(world(Dialect::default()).await);
    let text = world.text(&TEXT.replace(
        "  default_backend",
        "  http-request set-header x-m %[path,map(DIR/maps/used.map)]\n  default_backend",
    ));
    let with = |bytes: &str| Desired {
        text: text.clone().into(),
        files: AuxiliaryFiles {
            maps: Some([("used.map".to_owned(), bytes.as_bytes().to_vec())].into()),
            ..AuxiliaryFiles::default()
        },
    };
    let cancel = CancellationToken::new();
    sync(&target, &with("/a 1\n"), &cheapest(), &cancel).await.unwrap();
    world.settled().await;
    let before = world.reloads();
    sync(&target, &with("# two\n\n/a 2\n/b 2\n"), &cheapest(), &cancel).await.unwrap();
    assert_eq!(target.inner.map_length("used.map").await.unwrap(), Some(2));
    assert_eq!(world.reloads(), before);
    target.lies = true;
    let (error, _) = error(sync(&target, &with("/a 3\n"), &cheapest(), &cancel).await);
    assert_eq!(error.stage, Stage::ReadBack);
    assert!(error.to_string().contains("map used.map has 0 entries and not 1"), "{error}");
    world.end().await;
}

#[tokio::test]
async fn what_was_told_before_the_reload_is_read_back_before_it() {
    let (world, mut target) = need!(world(Dialect::default()).await);
    target.lies = true;
    let text = TEXT
        .replace("weight 10", "weight 20")
        .replace("  default_backend", "  http-request deny\n  default_backend");
    let options = SyncOptions { runtime_first: true, ..cheapest() };
    let (error, _) = error(run(&target, &world.text(&text), &options).await);
    assert_eq!(error.stage, Stage::ReadBack, "{}", error.chain());
    assert_eq!(target.count("commit"), 1, "what takes the reload was never committed");
    world.end().await;
}

#[tokio::test]
async fn a_first_part_that_fails_falls_back_to_the_text() {
    let (world, target) = need!(world(Dialect::default()).await);
    let text = TEXT
        .replace("weight 10", "weight 20")
        .replace("  default_backend", "  http-request deny\n  default_backend");
    target.fail("operate", [Fault::Broken]);
    let options = SyncOptions { runtime_first: true, fallback_to_raw: true, ..cheapest() };
    let result = run(&target, &world.text(&text), &options).await.unwrap();
    assert_eq!(result.mode, SyncMode::RawFallback);
    is_done(&target, &world.text(&text)).await;
    world.end().await;
}

#[tokio::test]
async fn servers_one_by_one_go_on_where_one_fails_if_that_is_asked_for_and_all_failures_are_named() {
    let (world, target) = need!(world(Dialect::default()).await);
    let text = TEXT.to_owned() + "  server s3 127.0.0.1:3 weight 10\n";
    run(&target, &world.text(&text), &cheapest()).await.unwrap();
    target.calls();
    target.fail("operate", [Fault::Broken, Fault::Pass, Fault::Broken]);
    let options = SyncOptions { continue_on_error: true, fallback_to_raw: false, ..options() };
    let (error, result) =
        error(run(&target, &world.text(&text.replace("weight 10", "weight 20")), &options).await);
    assert_eq!(target.count("operate"), 3);
    assert_eq!(result.applied_operations, ["~ backend app: server s2"]);
    let chain = error.chain();
    assert!(
        chain.contains("2 operations failed") && chain.contains("server s1") && chain.contains("server s3"),
        "{chain}"
    );
    world.end().await;
}

#[tokio::test]
async fn a_backend_whose_defaults_are_said_by_its_place_is_put_there() {
    let (world, target) = need!(world(Dialect::default()).await);
    let others = "\ndefaults other\n  mode tcp\n  timeout client 1s\n  timeout server 1s\n  timeout connect 1s\n\n\
                  backend last\n  server l1 127.0.0.1:5\n";
    run(&target, &world.text(&(TEXT.to_owned() + others)), &cheapest()).await.unwrap();
    for options in [cheapest(), SyncOptions { fallback_to_raw: false, ..options() }] {
        let more = "\nbackend more\n  server m1 127.0.0.1:4\n";
        let text = world.text(&(TEXT.to_owned() + more + others));
        run(&target, &text, &options).await.unwrap();
        is_done(&target, &text).await;
        run(&target, &world.text(&(TEXT.to_owned() + others)), &options).await.unwrap();
    }
    world.end().await;
}

#[tokio::test]
async fn a_plan_names_all_that_reloads_and_the_edit_that_avoids_it() {
    let (world, target) = need!(world(Dialect::default()).await);
    let text = TEXT.replace("  default_backend", "  http-request deny\n  default_backend")
        + "  server s3 localhost:3\n\nbackend more\n  balance roundrobin\n  server m1 127.0.0.1:4\n";
    let desired = |text: &str| Desired { text: world.text(text).into(), files: AuxiliaryFiles::default() };
    let cancel = CancellationToken::new();
    let planned = plan(&target, &desired(&text), &cheapest(), &cancel).await.unwrap();
    let named = |what: &str| {
        let found = planned.reload_causes.iter().find(|cause| cause.what.contains(what));
        found.unwrap_or_else(|| panic!("{what}: {:?}", planned.reload_causes)).avoid.clone()
    };
    assert_eq!(named("http_request_rule 0"), None);
    assert_eq!(named("server s3").unwrap(), "with an IP address in the place of `localhost`");
    assert_eq!(named("backend more").unwrap(), "with `from main`, and `balance` said there");
    // What was said is so.
    let told =
        TEXT.to_owned() + "  server s3 127.0.0.1:3\n\nbackend more from main\n  server m1 127.0.0.1:4\n";
    let planned = plan(&target, &desired(&told), &cheapest(), &cancel).await.unwrap();
    assert_eq!(planned.reload_causes, [], "{planned:?}");
    world.end().await;
}

#[tokio::test]
async fn a_way_that_is_asked_for_is_taken_or_refused() {
    let (world, target) = need!(world(Dialect::default()).await);
    let always =
        |strategy| SyncOptions { choice: Choice::Always(strategy), fallback_to_raw: false, ..options() };
    let weights = |weight: u32| world.text(&TEXT.replace("weight 10", &format!("weight {weight}")));
    for (weight, strategy, mode, calls) in [
        (20, Strategy::OneByOne, SyncMode::Runtime, 2),
        (30, Strategy::Transaction, SyncMode::FineGrained, 2),
        (40, Strategy::Text, SyncMode::RawChosen, 1),
    ] {
        let result = run(&target, &weights(weight), &always(strategy)).await.unwrap();
        assert_eq!((result.mode, result.reload_triggered), (mode, false), "{strategy:?}");
        assert_eq!(changes(&target).len(), calls, "{strategy:?}");
    }
    let rule = world.text(&TEXT.replace("  default_backend", "  http-request deny\n  default_backend"));
    let (error, _) = error(run(&target, &rule, &always(Strategy::OneByOne)).await);
    assert_eq!(error.stage, Stage::Compare);
    assert!(error.to_string().contains("one by one"), "{error}");
    assert!(changes(&target).is_empty());
    world.end().await;
}

#[tokio::test]
async fn what_can_be_told_is_told_before_the_reload_where_that_is_asked_for() {
    let (world, target) = need!(world(Dialect::default()).await);
    let text = TEXT
        .replace("weight 10", "weight 20")
        .replace("  default_backend", "  http-request deny\n  default_backend");
    let text = world.text(&text);
    let options = SyncOptions { runtime_first: true, ..cheapest() };
    let result = run(&target, &text, &options).await.unwrap();
    assert!(result.reload_triggered && result.reload_verified, "{result:?}");
    let calls = target.calls();
    let order: Vec<&str> = calls.iter().map(|call| call.split(' ').next().unwrap_or_default()).collect();
    let place = |what: &str| order.iter().position(|call| *call == what).unwrap();
    assert_eq!(order.iter().filter(|call| **call == "commit").count(), 2, "{calls:?}");
    let rule = calls.iter().position(|call| call.contains("http_request_rule")).unwrap();
    assert!(place("commit") < rule, "the servers were committed before: {calls:?}");
    assert_eq!(result.applied_operations.len(), 3);
    is_done(&target, &text).await;
    // Also where all else goes as a text.
    let text = text.replace("weight 20", "weight 30").replace("  http-request deny\n", "");
    let always = SyncOptions { choice: Choice::Always(Strategy::Text), ..options };
    let result = run(&target, &text, &always).await.unwrap();
    assert!(result.reload_triggered && result.reload_verified, "{result:?}");
    let calls = target.calls();
    let place = |what: &str| calls.iter().position(|call| call.starts_with(what)).unwrap();
    assert!(place("commit") < place("push"), "{calls:?}");
    is_done(&target, &text).await;
    world.end().await;
}

#[tokio::test]
async fn what_no_call_carries_is_not_told_before_the_text() {
    let (world, target) = need!(world(Dialect::default()).await);
    let listen = |servers: &str, timeout: u32| {
        world.text(&format!("{TEXT}\nlisten l\n  bind unix@DIR/l.sock\n  timeout server {timeout}s\n  balance roundrobin\n{servers}"))
    };
    let options = SyncOptions { runtime_first: true, ..cheapest() };
    run(&target, &listen("  server l1 127.0.0.1:3\n  server l2 127.0.0.1:4\n", 5), &options).await.unwrap();
    let text = listen("  server l1 127.0.0.1:3\n", 6);
    run(&target, &text, &options).await.unwrap();
    is_done(&target, &text).await;
    world.end().await;
}

#[tokio::test]
async fn a_drained_server_is_a_difference_only_where_that_is_asked_for() {
    let (world, target) = need!(world(Dialect::default()).await);
    let client = world.client().await;
    client.set_admin_state("app", "s1", "drain").await.unwrap();
    let text = world.text(TEXT);
    is_done(&target, &text).await;
    let state = async || target.running_servers("app").await.unwrap()[0].admin_state.clone();
    assert_eq!(state().await, "drain");
    let options = SyncOptions { runtime_drift: true, ..cheapest() };
    let desired = Desired { text: text.clone().into(), files: AuxiliaryFiles::default() };
    let planned = plan(&target, &desired, &options, &CancellationToken::new()).await.unwrap();
    let words: Vec<String> = planned.running.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["backend app: server s1 is `drain` and not `ready`"]);
    let result = run(&target, &text, &options).await.unwrap();
    assert_eq!((result.repaired.len(), result.reload_triggered), (1, false));
    assert_eq!(state().await, "ready");
    // Weights and addresses too.
    let socket = world.path("haproxy.sock");
    tell(&socket, "set server app/s2 weight 77\nset server app/s1 addr 127.0.0.9 port 99");
    let result = run(&target, &text, &options).await.unwrap();
    assert_eq!((result.repaired.len(), result.reload_triggered), (2, false), "{result:?}");
    let servers = target.running_servers("app").await.unwrap();
    assert_eq!((servers[0].address.as_str(), servers[0].port), ("127.0.0.1", Some(1)));
    assert_eq!(servers[1].weight, Some(10));
    assert!(run(&target, &text, &options).await.unwrap().repaired.is_empty());
    world.end().await;
}

/// Tells HAProxy something behind the API's back.
fn tell(socket: &std::path::Path, commands: &str) {
    use std::io::{Read as _, Write as _};
    for command in commands.lines() {
        let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        stream.write_all(format!("{command}\n").as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
    }
}

#[tokio::test]
async fn servers_of_one_backend_are_changed_at_the_same_time_and_added_in_their_order() {
    let (world, mut target) = need!(world(Dialect::default()).await);
    let text = |numbers: std::ops::Range<u32>, weight: u32| {
        let servers = numbers
            .fold(String::new(), |text, n| format!("{text}  server x{n} 127.0.0.1:3 weight {weight}\n"));
        world.text(&format!("{TEXT}\nbackend other\n  balance roundrobin\n{servers}"))
    };
    let always =
        SyncOptions { choice: Choice::Always(Strategy::Transaction), fallback_to_raw: false, ..options() };
    run(&target, &text(0..2, 10), &always).await.unwrap();
    target.delay = std::time::Duration::from_millis(100);
    let most = async |text: &str, max_parallel| {
        target.most.store(0, std::sync::atomic::Ordering::Relaxed);
        let options = SyncOptions { max_parallel, ..always.clone() };
        run(&target, text, &options).await.unwrap();
        target.most.load(std::sync::atomic::Ordering::Relaxed)
    };
    assert_eq!(most(&text(0..7, 10), 0).await, 1, "the order of what is new counts");
    assert_eq!(most(&text(0..7, 20), 0).await, 7);
    assert_eq!(most(&text(0..7, 30), 3).await, 3);
    is_done(&target, &text(0..7, 30)).await;
    world.end().await;
}

/// The original adds a server in maintenance, and reloads for every transaction.
#[tokio::test]
async fn a_server_without_settings_is_added_at_the_original_without_a_reload_and_is_ready() {
    let mut places = vec![Place::nearest(Dialect::ALL[0]), Place::nearest(Dialect::default())];
    places.extend(Place::originals());
    for place in places {
        let (world, target) = need!(world_at(&place).await);
        let target = target.inner.as_original();
        let text = world.text(&(TEXT.to_owned() + "  server s3 127.0.0.1:3 weight 7\n"));
        let options =
            SyncOptions { choice: Choice::Cheapest(Weights::default()), fallback_to_raw: false, ..options() };
        let before = world.reloads();
        let result = run(&target, &text, &options).await.unwrap();
        world.settled().await;
        assert_eq!((result.mode, result.reload_triggered), (SyncMode::Runtime, false), "{place}: {result:?}");
        assert_eq!(world.reloads(), before, "{place}");
        let servers = target.running_servers("app").await.unwrap();
        let new = servers.iter().find(|server| server.name == "s3").unwrap();
        assert_eq!(new.admin_state, "ready", "{place}: {servers:?}");
        is_done(&target, &text).await;
        world.end().await;
    }
}
