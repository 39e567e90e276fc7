//! The scenarios of the sync, by their names, on a real HAProxy behind our own API.

use std::collections::BTreeMap;
use std::time::Duration;

use setpoint_dataplane::error::{
    ConflictError, ConnectionError, FallbackError, OperationError, ParseError, Stage, SyncError,
};
use setpoint_dataplane::files::{AuxiliaryFiles, Files};
use setpoint_dataplane::sync::{Desired, FailedSync, SyncMode, SyncOptions, SyncResult, sync};
use setpoint_dataplane::target::Target;
use setpoint_dataplane_api::Dialect;
use setpoint_haproxy::text::Document;
use setpoint_testutils::wait::LIMIT;
use setpoint_testutils::{Missing, need};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::any::Any;
use crate::counting::{Counting, Fault};
use crate::world::{Place, World};

pub(crate) const TEXT: &str = "frontend web\n  bind 127.0.0.1:PORT\n  default_backend app\n\nbackend app\n  balance roundrobin\n  \
                    server s1 127.0.0.1:1 weight 10\n  server s2 127.0.0.1:2 weight 10\n";

/// What a loaded machine needs.
pub(crate) fn options() -> SyncOptions {
    SyncOptions {
        timeout: LIMIT,
        reload_verification_timeout: LIMIT,
        reload_poll_interval: Duration::from_millis(20),
        ..SyncOptions::default()
    }
}

/// A HAProxy that was brought to a text once: its version is above 1.
pub(crate) async fn world(dialect: Dialect) -> Result<(World, Counting<Any>), Missing> {
    world_at(&Place::nearest(dialect)).await
}

/// The same in some place.
pub(crate) async fn world_at(place: &Place) -> Result<(World, Counting<Any>), Missing> {
    let world = World::start_at(place, TEXT, Some(7)).await?;
    let target = target(&world).await;
    Ok((world, target))
}

pub(crate) async fn target(world: &World) -> Counting<Any> {
    Counting::new(world.target().await)
}

pub(crate) async fn run<T: Target>(
    target: &T,
    text: &str,
    options: &SyncOptions,
) -> Result<SyncResult, Box<FailedSync>> {
    let desired = Desired { text: text.as_bytes().to_vec(), files: AuxiliaryFiles::default() };
    sync(target, &desired, options, &CancellationToken::new()).await
}

/// Seeing to it that a second sync finds nothing to do.
pub(crate) async fn is_done<T: Target>(target: &T, text: &str) {
    let again = run(target, text, &options()).await.unwrap();
    assert_eq!((again.applied_operations.len(), again.reload_triggered), (0, false), "{again:?}");
}

pub(crate) fn error<T: std::fmt::Debug>(outcome: Result<T, Box<FailedSync>>) -> (SyncError, SyncResult) {
    let FailedSync { error, result } = *outcome.unwrap_err();
    assert!(!result.success);
    (error, result)
}

pub(crate) async fn no_changes_detected_returns_early(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let same = world.text(&TEXT.replace("  balance roundrobin", "# said otherwise\n\tbalance   roundrobin"));
    let result = run(&target, &same, &options()).await.unwrap();
    assert!(result.success && !result.reload_triggered && result.applied_operations.is_empty(), "{result:?}");
    assert_eq!(result.post_sync_version, Some(7));
    assert_eq!((target.count("begin"), target.count("push")), (0, 0));
    world.end().await;
    Ok(())
}

pub(crate) async fn parse_error_on_desired_config_produces_parse_error(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let broken = world.text(TEXT) + "  http-request deny if { path \"/open }\n";
    let (error, _) = error(run(&target, &broken, &options()).await);
    assert_eq!(error.stage, Stage::ParseDesired);
    let cause = error.cause::<ParseError>().unwrap();
    assert!(broken.starts_with(&cause.config_snippet) && cause.config_snippet.len() == 200, "{cause:?}");
    assert!(target.calls().is_empty(), "nobody was asked");
    world.end().await;
    Ok(())
}

pub(crate) async fn parse_error_on_current_config_produces_parse_error(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let broken = world.file() + "  http-request deny if { path \"/open }\n";
    std::fs::write(world.path("haproxy.cfg"), broken).unwrap();
    let (error, _) = error(run(&target, &world.text(TEXT), &options()).await);
    assert_eq!(error.stage, Stage::ParseCurrent);
    assert_eq!(error.cause::<ParseError>().unwrap().config_snippet.chars().count(), 200);
    world.end().await;
    Ok(())
}

pub(crate) async fn version_cache_hit_skips_full_fetch(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let cached = Document::parse(world.file().as_bytes());
    let options = SyncOptions { cached: Some((cached, 7)), ..options() };
    let result = run(&target, &world.text(TEXT), &options).await.unwrap();
    assert_eq!(result.applied_operations.len(), 0);
    assert_eq!((target.count("version"), target.count("read")), (1, 0));
    world.end().await;
    Ok(())
}

pub(crate) async fn version_cache_miss_triggers_full_fetch(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let stale = Document::parse(b"backend other\n");
    let options = SyncOptions { cached: Some((stale, 6)), ..options() };
    let result = run(&target, &world.text(TEXT), &options).await.unwrap();
    assert_eq!(result.applied_operations.len(), 0, "what is really there was compared");
    assert_eq!((target.count("version"), target.count("read")), (1, 1));
    world.end().await;
    Ok(())
}

pub(crate) async fn get_version_failure_falls_through_to_full_fetch(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    target.fail("version", [Fault::Refused, Fault::Refused, Fault::Refused]);
    let cached = Document::parse(b"backend other\n");
    let options = SyncOptions { cached: Some((cached, 7)), ..options() };
    let result = run(&target, &world.text(TEXT), &options).await.unwrap();
    assert_eq!(result.applied_operations.len(), 0);
    assert_eq!((target.count("version"), target.count("read")), (3, 1));
    world.end().await;
    Ok(())
}

pub(crate) fn files(names: &[(&str, &str)]) -> Files {
    names.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
}

pub(crate) async fn matching_checksums_skip_auxiliary_file_comparison(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let files = AuxiliaryFiles { maps: Some(files(&[("hosts.map", "a b\n")])), ..AuxiliaryFiles::default() };
    let desired = Desired { text: world.text(TEXT).into_bytes(), files };
    let checksum = Some("abc".to_owned());
    let options =
        SyncOptions { content_checksum: checksum.clone(), last_deployed_checksum: checksum, ..options() };
    let result = sync(&target, &desired, &options, &CancellationToken::new()).await.unwrap();
    assert!(result.applied_files.is_empty());
    assert_eq!(target.count("files"), 0);
    world.end().await;
    Ok(())
}

pub(crate) async fn different_checksums_proceed_with_comparison(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let files = AuxiliaryFiles { maps: Some(files(&[("hosts.map", "a b\n")])), ..AuxiliaryFiles::default() };
    let desired = Desired { text: world.text(TEXT).into_bytes(), files };
    let options = SyncOptions {
        content_checksum: Some("abc".to_owned()),
        last_deployed_checksum: Some("def".to_owned()),
        ..options()
    };
    let result = sync(&target, &desired, &options, &CancellationToken::new()).await.unwrap();
    assert_eq!(result.applied_files, ["+ map hosts.map"]);
    assert_eq!(std::fs::read(world.path("maps/hosts.map")).unwrap(), b"a b\n");
    world.end().await;
    Ok(())
}

#[tokio::test]
async fn successful_transaction_with_reload() {
    for dialect in Dialect::ALL {
        let (world, target) = need!(world(dialect).await);
        let desired = world
            .text(&(TEXT.replace("roundrobin", "leastconn") + "\nbackend more\n  server m1 127.0.0.1:3\n"));
        let result = run(&target, &desired, &options()).await.unwrap();
        assert_eq!(result.mode, SyncMode::FineGrained);
        assert!(
            result.reload_triggered && result.reload_id.is_some() && result.reload_verified,
            "{result:?}"
        );
        assert_eq!((result.post_sync_version, result.applied_operations.len()), (Some(8), 3));
        is_done(&target, &desired).await;
        world.end().await;
    }
}

pub(crate) async fn all_server_updates_use_runtime_path(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let desired = world.text(&TEXT.replace("weight 10", "weight 20"));
    let pid = target.inner.process().await.unwrap().pid;
    let result = run(&target, &desired, &options()).await.unwrap();
    assert_eq!((result.mode, result.reload_triggered), (SyncMode::Runtime, false));
    assert_eq!((target.count("begin"), target.count("operate")), (0, 2));
    assert_eq!(
        (target.count("version"), target.count("read")),
        (0, 2),
        "it is known which version each makes"
    );
    assert_eq!(target.inner.process().await.unwrap().pid, pid);
    assert_eq!(result.post_sync_version, Some(9), "each has a version of its own");
    is_done(&target, &desired).await;
    world.end().await;
    Ok(())
}

pub(crate) async fn mixed_operations_use_transaction_path(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let desired = world
        .text(&(TEXT.replace("weight 10", "weight 20") + "\nfrontend more\n  bind unix@DIR/more.sock\n"));
    let result = run(&target, &desired, &options()).await.unwrap();
    assert_eq!(result.mode, SyncMode::FineGrained);
    assert_eq!((target.count("begin"), target.count("commit")), (1, 1));
    is_done(&target, &desired).await;
    world.end().await;
    Ok(())
}

pub(crate) async fn runtime_version_conflict_retried(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let desired = world.text(&TEXT.replace("weight 10", "weight 20"));
    target.fail("operate", [Fault::Conflict(9)]);
    let result = run(&target, &desired, &options()).await.unwrap();
    assert_eq!((result.mode, result.retries), (SyncMode::Runtime, 1));
    is_done(&target, &desired).await;
    world.end().await;
    Ok(())
}

pub(crate) async fn version_conflict_triggers_retry(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let desired = world.text(&TEXT.replace("roundrobin", "leastconn"));
    target.fail("commit", [Fault::Conflict(9), Fault::Conflict(10)]);
    let result = run(&target, &desired, &options()).await.unwrap();
    assert_eq!((result.retries, target.count("begin"), target.count("commit")), (2, 3, 3));
    is_done(&target, &desired).await;
    world.end().await;
    Ok(())
}

/// Somebody else's change is not undone by a plan that was made before it, and not lost in what is committed.
pub(crate) async fn a_conflict_is_planned_again_from_what_is_there_now(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let desired = world.text(&TEXT.replace("roundrobin", "leastconn"));
    // What was read first is an old text: the first server is gone meanwhile, and has to come back.
    let cached = Document::parse(world.file().as_bytes());
    let text = world.text(&TEXT.replace("  server s1 127.0.0.1:1 weight 10\n", ""));
    target.inner.push(text.as_bytes(), 7).await.unwrap();
    let other = Counting::new(target.inner.clone());
    let version = other.inner.version().await.unwrap();
    assert_eq!(version, 8);
    target.fail("begin", [Fault::Conflict(8)]);
    let options = SyncOptions { cached: Some((cached, 8)), ..options() };
    let result = run(&target, &desired, &options).await.unwrap();
    assert_eq!(result.retries, 1);
    assert!(result.applied_operations.iter().any(|applied| applied.contains("server s1")), "{result:?}");
    is_done(&other, &desired).await;
    world.end().await;
    Ok(())
}

pub(crate) async fn version_conflict_exhausts_retries(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let before = world.file();
    let desired = world.text(&TEXT.replace("roundrobin", "leastconn"));
    target.fail("commit", (10..20).map(Fault::Conflict));
    let (error, result) = error(run(&target, &desired, &options()).await);
    assert_eq!((error.stage, result.retries), (Stage::Commit, 3));
    let cause = error.cause::<ConflictError>().unwrap();
    assert_eq!((cause.retries, cause.expected_version, cause.actual_version), (3, 7, 13));
    assert_eq!(target.count("abort"), 4, "none of them is left open");
    assert_eq!(world.open_transactions().await, 0);
    assert_eq!(world.file(), before);
    assert_eq!(target.inner.version().await.unwrap(), 7);
    world.end().await;
    Ok(())
}

pub(crate) async fn a_transaction_that_failed_is_dropped(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let desired = world.text(&TEXT.replace("roundrobin", "leastconn"));
    target.fail("operate", [Fault::Broken]);
    let options = SyncOptions { fallback_to_raw: false, ..options() };
    let (error, _) = error(run(&target, &desired, &options).await);
    assert_eq!(error.stage, Stage::Apply);
    let cause = error.cause::<OperationError>().unwrap();
    assert_eq!((cause.section.as_str(), cause.resource.as_str()), ("backend app", "backend app"));
    assert!(error.chain().contains("it broke"), "{}", error.chain());
    assert_eq!(target.count("abort"), 1);
    assert_eq!(world.open_transactions().await, 0);
    world.end().await;
    Ok(())
}

#[tokio::test]
async fn initial_deployment_uses_raw_push() {
    let world = need!(World::start(Dialect::default(), TEXT).await);
    let target = target(&world).await;
    let desired = world.text(&TEXT.replace("weight 10", "weight 20"));
    let result = run(&target, &desired, &options()).await.unwrap();
    assert_eq!((result.mode, target.count("push"), target.count("begin")), (SyncMode::RawInitial, 1, 0));
    assert_eq!(result.post_sync_version, Some(2), "pre-push version 1, and one more");
    is_done(&target, &desired).await;
    world.end().await;
}

pub(crate) async fn high_operation_count_triggers_raw_push(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let more: Vec<String> = (0..60).map(|number| format!("  server x{number} 127.0.0.1:3\n")).collect();
    let desired = world.text(&(TEXT.to_owned() + &more.concat()));
    let options = SyncOptions { raw_push_threshold: 50, ..options() };
    let result = run(&target, &desired, &options).await.unwrap();
    assert_eq!((result.mode, target.count("push"), target.count("begin")), (SyncMode::RawThreshold, 1, 0));
    is_done(&target, &desired).await;
    world.end().await;
    Ok(())
}

pub(crate) async fn raw_push_calculates_post_sync_version(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let desired = world.text(&TEXT.replace("roundrobin", "leastconn"));
    let options = SyncOptions { raw_push_threshold: 1, ..options() };
    let result = run(&target, &(desired + "\nbackend more\n"), &options).await.unwrap();
    assert_eq!((result.mode, result.post_sync_version), (SyncMode::RawThreshold, Some(8)));
    world.end().await;
    Ok(())
}

#[tokio::test]
async fn what_no_call_carries_is_pushed_as_text() {
    for dialect in Dialect::ALL {
        let (world, target) = need!(world(dialect).await);
        let desired =
            world.text(&(TEXT.to_owned() + "\nlisten l\n  bind unix@DIR/l.sock\n  server l1 127.0.0.1:4\n"));
        let result = run(&target, &desired, &options()).await.unwrap();
        assert_eq!(result.mode, SyncMode::RawText);
        is_done(&target, &desired).await;
        world.end().await;
    }
}

pub(crate) async fn fallback_skips_auxiliary_re_sync(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let files = AuxiliaryFiles { maps: Some(files(&[("hosts.map", "a b\n")])), ..AuxiliaryFiles::default() };
    let desired = Desired { text: world.text(&TEXT.replace("roundrobin", "leastconn")).into_bytes(), files };
    target.fail("operate", [Fault::Broken]);
    let result = sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap();
    assert_eq!(
        (result.mode, target.count("create_file"), target.count("abort")),
        (SyncMode::RawFallback, 1, 1)
    );
    assert_eq!(world.open_transactions().await, 0);
    world.end().await;
    Ok(())
}

pub(crate) async fn both_fine_grained_and_fallback_fail(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let before = world.file();
    target.fail("operate", [Fault::Broken]);
    target.fail("push", [Fault::Refused]);
    let desired = world.text(&TEXT.replace("roundrobin", "leastconn"));
    let (error, _) = error(run(&target, &desired, &options()).await);
    assert_eq!(error.stage, Stage::Fallback);
    let cause = error.cause::<FallbackError>().unwrap();
    assert_eq!((cause.original_error.stage, cause.fallback_cause.stage), (Stage::Apply, Stage::Fallback));
    assert!(error.cause::<ConnectionError>().is_some(), "{}", error.chain());
    assert_eq!(world.file(), before);
    world.end().await;
    Ok(())
}

#[tokio::test]
async fn what_haproxy_refuses_leaves_the_previous_configuration() {
    for dialect in [Dialect::ALL[0], Dialect::default()] {
        let (world, target) = need!(world(dialect).await);
        let before = world.file();
        let desired = world.text(&TEXT.replace("default_backend app", "default_backend nowhere"));
        let (error, result) = error(run(&target, &desired, &options()).await);
        assert_eq!((error.stage, result.mode), (Stage::Fallback, SyncMode::RawFallback), "{}", error.chain());
        assert!(error.chain().contains("nowhere"), "the words of HAProxy are kept: {}", error.chain());
        assert_eq!(world.file(), before);
        world.end().await;
    }
}

pub(crate) async fn ssl_certificates_synced_before_other_auxiliary_files(
    place: &Place,
) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let certificate = setpoint_testutils::certificates::Authority::new().server();
    let pem = certificate.certificate + &certificate.key;
    let files = AuxiliaryFiles {
        maps: Some(files(&[("hosts.map", "a b\n")])),
        general: Some(files(&[("503.http", "HTTP/1.0 503 no\r\n\r\n")])),
        certificates: Some(BTreeMap::from([("site.pem".to_owned(), pem.into_bytes())])),
        ..AuxiliaryFiles::default()
    };
    let desired = Desired { text: world.text(TEXT).into_bytes(), files };
    sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap();
    let calls = target.calls();
    let at = |call: &str| {
        calls.iter().position(|noted| noted == call).unwrap_or_else(|| panic!("{call}: {calls:?}"))
    };
    assert!(at("created certificate site.pem") < at("create_file map hosts.map"), "{calls:?}");
    assert!(at("created certificate site.pem") < at("create_file file 503.http"), "{calls:?}");
    // What can't be read back is known by what was written: nothing differs, and what we note is none of the files.
    let again = sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap();
    assert_eq!(again.applied_files, Vec::<String>::new());
    world.end().await;
    Ok(())
}

pub(crate) async fn general_files_and_maps_synced_in_parallel(place: &Place) -> Result<(), Missing> {
    let (world, mut target) = world_at(place).await?;
    target.delay = Duration::from_millis(100);
    let files = AuxiliaryFiles {
        maps: Some(files(&[("hosts.map", "a b\n")])),
        general: Some(files(&[("503.http", "HTTP/1.0 503 no\r\n\r\n")])),
        ..AuxiliaryFiles::default()
    };
    let desired = Desired { text: world.text(TEXT).into_bytes(), files };
    sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap();
    let calls = target.calls();
    let at = |call: &str| calls.iter().position(|noted| noted == call).unwrap();
    // Each began before the other had ended.
    assert!(at("create_file map hosts.map") < at("created file 503.http"), "{calls:?}");
    assert!(at("create_file file 503.http") < at("created map hosts.map"), "{calls:?}");
    world.end().await;
    Ok(())
}

pub(crate) async fn parallel_auxiliary_file_comparison(place: &Place) -> Result<(), Missing> {
    let (world, mut target) = world_at(place).await?;
    target.delay = Duration::from_millis(100);
    let none = || Some(Files::new());
    let files = AuxiliaryFiles {
        maps: none(),
        general: none(),
        certificates: none(),
        ca_files: none(),
        crt_lists: none(),
    };
    let desired = Desired { text: world.text(TEXT).into_bytes(), files };
    sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap();
    let calls = target.calls();
    let asked: Vec<_> = calls.iter().filter(|call| call.starts_with("file")).collect();
    assert_eq!(asked.len(), 4, "three storages, and what we note of them: {calls:?}");
    let at = |call: &str| calls.iter().position(|noted| noted == call).unwrap();
    // Each began before any had ended.
    let kinds = ["map", "file", "certificate"];
    let last = kinds.iter().map(|kind| at(&format!("files {kind}"))).max().unwrap();
    let first = kinds.iter().map(|kind| at(&format!("listed {kind}"))).min().unwrap();
    assert!(last < first && at("file  setpoint-digests.json") < first, "{calls:?}");
    world.end().await;
    Ok(())
}

pub(crate) async fn post_config_deletion_failure_does_not_fail_sync(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    std::fs::write(world.path("maps/old.map"), "a b\n").unwrap();
    target.fail("delete_file", [Fault::Broken]);
    let files = AuxiliaryFiles { maps: Some(Files::new()), ..AuxiliaryFiles::default() };
    let desired = Desired { text: world.text(&TEXT.replace("roundrobin", "leastconn")).into_bytes(), files };
    let result = sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap();
    assert!(
        result.success && result.warnings.iter().any(|warning| warning.contains("old.map")),
        "{result:?}"
    );
    assert!(world.path("maps/old.map").exists());
    // The next one deletes it.
    let result = sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap();
    assert_eq!(result.applied_files, ["- map old.map"]);
    assert!(!world.path("maps/old.map").exists());
    world.end().await;
    Ok(())
}

pub(crate) async fn a_sync_of_the_configuration_alone_deletes_no_file(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    for name in ["maps/old.map", "general/old.http"] {
        std::fs::write(world.path(name), "a b\n").unwrap();
    }
    run(&target, &world.text(&TEXT.replace("roundrobin", "leastconn")), &options()).await.unwrap();
    assert!(world.path("maps/old.map").exists() && world.path("general/old.http").exists());
    world.end().await;
    Ok(())
}

pub(crate) async fn reload_verification_timeout(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    target.fail("reload", std::iter::repeat_n(Fault::Broken, 10_000));
    let options = SyncOptions { reload_verification_timeout: Duration::from_millis(100), ..options() };
    let desired = world.text(&(TEXT.to_owned() + "\nbackend more\n  server m1 127.0.0.1:3\n"));
    let (error, result) = error(run(&target, &desired, &options).await);
    assert_eq!(error.stage, Stage::ReloadVerification);
    assert!(
        !result.reload_verified && result.reload_verification_error.is_some_and(|why| why.contains("100ms"))
    );
    world.end().await;
    Ok(())
}

pub(crate) async fn cancellation_drops_the_transaction(place: &Place) -> Result<(), Missing> {
    let (world, mut target) = world_at(place).await?;
    target.held = Some(("operate", Semaphore::new(0)));
    let before = world.file();
    let desired =
        world.text(&(TEXT.replace("roundrobin", "leastconn") + "\nbackend more\n  server m1 127.0.0.1:3\n"));
    let desired = Desired { text: desired.into_bytes(), files: AuxiliaryFiles::default() };
    let (cancel, options) = (CancellationToken::new(), options());
    let run = sync(&target, &desired, &options, &cancel);
    let cancels = target.while_held(async { cancel.cancel() });
    let (outcome, ()) = tokio::join!(run, cancels);
    let (error, _) = error(outcome);
    assert!(error.message.contains("cancelled"), "{error}");
    assert_eq!((target.count("abort"), target.count("commit")), (1, 0));
    assert_eq!((world.open_transactions().await, world.file()), (0, before));
    world.end().await;
    Ok(())
}

pub(crate) async fn reload_verification_succeeds(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    let pid = target.inner.process().await.unwrap().pid;
    let desired = world.text(&(TEXT.to_owned() + "\nbackend more\n  server m1 127.0.0.1:3\n"));
    let result = run(&target, &desired, &options()).await.unwrap();
    assert!(
        result.success && result.reload_verified && result.reload_verification_error.is_none(),
        "{result:?}"
    );
    assert_ne!(target.inner.process().await.unwrap().pid, pid, "another process serves");
    world.end().await;
    Ok(())
}

/// HAProxy's own check finds nothing wrong with a port that somebody else has.
#[tokio::test]
async fn reload_verification_fails() {
    for dialect in [Dialect::ALL[0], Dialect::default()] {
        let (world, target) = need!(world(dialect).await);
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let more = format!("\nfrontend more\n  bind {}\n", taken.local_addr().unwrap());
        let (error, result) = error(run(&target, &world.text(&(TEXT.to_owned() + &more)), &options()).await);
        assert_eq!(error.stage, Stage::ReloadVerification, "{}", error.chain());
        assert!(!result.reload_verified && result.reload_verification_error.is_some(), "{result:?}");
        // The previous configuration is there again, and a sync that can be made is made.
        world.settled().await;
        is_done(&target, &world.text(TEXT)).await;
        drop(taken);
        run(&target, &world.text(&(TEXT.to_owned() + &more)), &options()).await.unwrap();
        world.end().await;
    }
}

pub(crate) async fn auxiliary_reload_verified_before_config_sync(place: &Place) -> Result<(), Missing> {
    if place.is_original() {
        // What is written there never reloads by itself.
        return Ok(());
    }
    let (world, mut target) = world_at(place).await?;
    // Only when it is told of an error page does it turn out that this takes a reload.
    target.boasts = true;
    let text = TEXT.replace("  default_backend", "  errorfile 503 DIR/general/503.http\n  default_backend");
    let page = |words: &str| AuxiliaryFiles {
        general: Some(files(&[("503.http", &format!("HTTP/1.0 503 No\r\n\r\n{words}\n"))])),
        ..AuxiliaryFiles::default()
    };
    let desired = Desired { text: world.text(&text).into_bytes(), files: page("one") };
    sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap();
    target.calls();
    let text = world.text(&text.replace("weight 10", "weight 20"));
    let desired = Desired { text: text.into_bytes(), files: page("two") };
    let result = sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap();
    assert!(result.reload_triggered && result.reload_verified, "{result:?}");
    assert_eq!(result.applied_files, ["~ file 503.http"]);
    let calls = target.calls();
    let at = |call: &str| calls.iter().position(|noted| noted.starts_with(call)).unwrap();
    assert!(at("replace_file file 503.http") < at("reload") && at("reload") < at("operate"), "{calls:?}");
    let again = sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap();
    assert_eq!(again.applied_files, Vec::<String>::new());
    world.end().await;
    Ok(())
}
