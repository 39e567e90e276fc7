//! What was written is read back, and what nobody has seen is no success.

use std::time::Duration;

use setpoint_dataplane::client::{Client, Settings};
use setpoint_dataplane::error::{ConnectionError, Stage};
use setpoint_dataplane::files::AuxiliaryFiles;
use setpoint_dataplane::sync::{Desired, SyncMode, SyncOptions, plan};
use setpoint_dataplane::target::Target as _;
use setpoint_dataplane_api::Dialect;
use setpoint_haproxy::text::Document;
use setpoint_testutils::{Missing, need};
use tokio_util::sync::CancellationToken;

use crate::counting::Fault;
use crate::faults::is_equal;
use crate::sync::{TEXT, error, is_done, options, run, target, world, world_at};
use crate::world::{Place, World};

#[tokio::test]
async fn fine_grained_sync_captures_post_sync_version() {
    for dialect in [Dialect::ALL[0], Dialect::default()] {
        let (world, target) = need!(world(dialect).await);
        let desired = world.text(&TEXT.replace("roundrobin", "leastconn"));
        let result = run(&target, &desired, &options()).await.unwrap();
        let version = target.inner.version().await.unwrap();
        assert_eq!((result.mode, result.post_sync_version), (SyncMode::FineGrained, Some(version)));
        // What was captured spares the next one a fetch.
        let cached = Some((Document::parse(desired.as_bytes()), version));
        target.calls();
        run(&target, &desired, &SyncOptions { cached, ..options() }).await.unwrap();
        assert_eq!((target.count("version"), target.count("read")), (1, 0));
        world.end().await;
    }
}

pub(crate) async fn connection_refused_triggers_retry(place: &Place) -> Result<(), Missing> {
    let (world, target) = world_at(place).await?;
    target.fail("version", [Fault::Refused, Fault::Refused]);
    let cached = Some((Document::parse(world.file().as_bytes()), 7));
    let result = run(&target, &world.text(TEXT), &SyncOptions { cached, ..options() }).await.unwrap();
    assert!(result.success);
    assert_eq!((target.count("version"), target.count("read")), (3, 0), "the third one was answered");
    world.end().await;
    Ok(())
}

pub(crate) async fn a_reload_that_nobody_has_seen_is_no_success(place: &Place) -> Result<(), Missing> {
    let (world, mut target) = world_at(place).await?;
    // An API that was restarted calls a reload a success of which it has never heard.
    target.forgets = true;
    let options = SyncOptions { reload_verification_timeout: Duration::from_millis(100), ..options() };
    let desired =
        world.text(&(TEXT.to_owned() + "\nbackend more\n  balance source\n  server m1 127.0.0.1:3\n"));
    let (error, result) = error(run(&target, &desired, &options).await);
    assert_eq!(error.stage, Stage::ReloadVerification, "{}", error.chain());
    assert!(error.chain().contains("the same process serves as before"), "{}", error.chain());
    assert!(!result.reload_verified);
    world.end().await;
    Ok(())
}

pub(crate) async fn a_push_that_makes_another_version_than_the_next_is_a_conflict(
    place: &Place,
) -> Result<(), Missing> {
    let (world, mut target) = world_at(place).await?;
    let options = SyncOptions { raw_push_threshold: 1, ..options() };
    let desired = world.text(&(TEXT.replace("roundrobin", "leastconn") + "\nbackend more\n"));
    // Where the API does not tell the version, it is asked for.
    target.is_silent = true;
    let result = run(&target, &desired, &options).await.unwrap();
    assert_eq!((result.retries, result.post_sync_version, target.count("version")), (0, Some(8), 1));
    // Somebody else's push comes between: what is there is read again, and is what is desired.
    let text = world.text(&(TEXT.to_owned() + "\nbackend most\n"));
    target.skips_to = Some(12);
    let result = run(&target, &text, &options).await.unwrap();
    assert_eq!((result.retries, target.count("push")), (1, 2), "{result:?}");
    is_done(&target, &text).await;
    world.end().await;
    Ok(())
}

pub(crate) async fn what_an_api_drops_of_a_text_is_an_error_that_shows_it(
    place: &Place,
) -> Result<(), Missing> {
    let (world, mut target) = world_at(place).await?;
    target.drops = Some("  http-request deny\n");
    let options = SyncOptions { raw_push_threshold: 1, ..options() };
    let text = TEXT.replace("  default_backend", "  http-request deny\n  default_backend");
    let (error, _) = error(run(&target, &world.text(&(text + "\nbackend more\n")), &options).await);
    assert_eq!(error.stage, Stage::ReadBack, "{}", error.chain());
    assert!(error.chain().contains("http_request_rule/0"), "{}", error.chain());
    world.end().await;
    Ok(())
}

/// Texts of which the original makes something else, each behind a given one, and what the error names.
fn lost_at_the_original() -> [(&'static str, String); 3] {
    let long = "x".repeat(64 * 1024);
    [
        (
            ".if",
            "\n.if defined(NOBODY)\nbackend a\n  server c1 127.0.0.1:4\n.endif\n\nbackend z\n".to_owned(),
        ),
        (".if", "\nbackend z\n  .if defined(NOBODY)\n  timeout server 9s\n  .endif\n".to_owned()),
        ("65536", format!("\nbackend long\n  # {long}\n\nbackend z\n")),
    ]
}

#[tokio::test]
async fn what_the_original_would_not_keep_is_an_error_before_anything_is_written() {
    let mut places = vec![Place::nearest(Dialect::default())];
    places.extend(Place::originals());
    for place in places {
        let (world, target) = need!(world_at(&place).await);
        let original = target.inner.as_original();
        let before = world.file();
        for (why, text) in lost_at_the_original() {
            let desired = world.text(&(TEXT.to_owned() + &text));
            let (error, result) = error(run(&original, &desired, &options()).await);
            assert_eq!(error.stage, Stage::Compare, "{place}: {}", error.chain());
            assert!(error.chain().contains(why) && !error.hints.is_empty(), "{place}: {}", error.chain());
            assert!(result.applied_operations.is_empty() && world.file() == before, "{place}: {text}");
            let planned = plan(
                &original,
                &Desired { text: desired.clone().into_bytes(), files: AuxiliaryFiles::default() },
                &options(),
                &CancellationToken::new(),
            )
            .await;
            assert_eq!(planned.unwrap_err().stage, Stage::Compare, "{place}");
        }
        // What differs in nothing is written by nobody.
        is_done(&original, &world.text(TEXT)).await;
        world.end().await;
    }
}

/// If one of them keeps such a text some day, it need not be an error any more.
#[tokio::test]
async fn an_original_that_is_found_does_not_keep_what_is_an_error() {
    for place in need!(Place::each_original()) {
        for (_, text) in lost_at_the_original() {
            let (world, target) = need!(world_at(&place).await);
            let desired = world.text(&(TEXT.to_owned() + &text));
            let version = target.version().await.unwrap();
            let pushed = target.push(desired.as_bytes(), version).await;
            let kept = target.read().await.unwrap().0;
            let is_kept = pushed.is_ok() && is_equal(&target, &kept, desired.as_bytes());
            assert!(!is_kept, "{place}: {}", String::from_utf8_lossy(&kept));
            world.end().await;
        }
    }
}

#[tokio::test]
async fn nobody_there_is_an_error_that_names_the_endpoint() {
    let world = need!(World::start(Dialect::default(), TEXT).await);
    let settings = Settings { url: "http://127.0.0.1:1".to_owned(), ..world.settings() };
    let refused = Client::connect(settings).await.unwrap_err();
    assert!(refused.to_string().contains("127.0.0.1:1"), "{refused}");
    let target = target(&world).await;
    target.fail("read", [Fault::Refused]);
    let (error, _) = error(run(&target, &world.text(TEXT), &options()).await);
    assert_eq!(error.stage, Stage::Connect);
    assert_eq!(error.cause::<ConnectionError>().unwrap().endpoint, "http://nobody");
    assert!(!error.hints.is_empty());
    world.end().await;
}
