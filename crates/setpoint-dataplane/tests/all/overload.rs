//! An API that takes no more for a while.

use std::time::{Duration, Instant};

use setpoint_dataplane::client::{ApiError, Client, Settings};
use setpoint_dataplane::error::Stage;
use setpoint_dataplane::files::AuxiliaryFiles;
use setpoint_dataplane::sync::{Desired, SyncOptions, sync};
use setpoint_dataplane::target::ApiTarget;
use setpoint_dataplane_api::Dialect;
use setpoint_testutils::{Proxy, need, wait};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::counting::Fault;
use crate::fake::{Fake, hello};
use crate::sync::{TEXT, error, options, run, world};

#[tokio::test]
async fn an_api_that_takes_no_more_is_asked_again_when_it_says() {
    let mut refused = 0;
    let fake = Fake::start(move |asked| {
        if let Some(said) = hello("v3.2.4", asked) {
            return said;
        }
        refused += 1;
        if refused <= 2 {
            return (429, "retry-after: 1", "{\"code\":429,\"message\":\"too many\"}".to_owned());
        }
        (201, "", "{\"_version\":1,\"id\":\"t\",\"status\":\"in_progress\"}".to_owned())
    })
    .await;
    let client = Client::connect(Settings::new(&fake.url)).await.unwrap();
    let started = Instant::now();
    assert_eq!(client.begin(1).await.unwrap().id, "t");
    assert!(started.elapsed() >= Duration::from_secs(2), "it was waited for as long as the API said");
    assert_eq!(fake.calls().iter().filter(|call| call.contains("transactions")).count(), 3);
}

#[tokio::test]
async fn an_api_that_never_takes_more_is_an_error_that_says_what_to_do() {
    let fake = Fake::start(|asked| {
        let busy = || (429, "retry-after: 1", "{\"code\":429,\"message\":\"too many\"}".to_owned());
        hello("v3.2.4", asked).unwrap_or_else(busy)
    })
    .await;
    let settings = Settings { timeout: Duration::from_millis(1500), ..Settings::new(&fake.url) };
    let target = ApiTarget::new(Client::connect(settings).await.unwrap()).await.unwrap();
    let desired = Desired { text: b"backend b\n".to_vec(), files: AuxiliaryFiles::default() };
    let (error, _) = error(sync(&target, &desired, &options(), &CancellationToken::new()).await);
    assert!(error.hints.iter().any(|hint| hint.contains("takes no more")), "{:?}", error.hints);
    assert!(matches!(error.cause(), Some(ApiError::Overloaded { .. })), "{}", error.chain());
    assert!(error.chain().contains("too many"), "{}", error.chain());
}

#[tokio::test]
async fn a_sync_waits_until_another_transaction_has_ended_where_there_are_too_many() {
    let (world, _) = need!(world(Dialect::default()).await);
    let proxy = Proxy::start(world.url.trim_start_matches("http://").parse().unwrap()).await;
    let through = Settings { url: format!("http://{}", proxy.address()), ..world.settings() };
    let target = ApiTarget::new(Client::connect(through).await.unwrap()).await.unwrap();
    let client = world.client().await;
    let mut open = Vec::new();
    for _ in 0..20 {
        open.push(client.begin(7).await.unwrap().id);
    }
    let desired = world.text(&TEXT.replace("roundrobin", "leastconn"));
    let options = options();
    let ends = async {
        // Who asks for the second time was refused.
        let is_begin = |request: &&String| request.starts_with("POST ") && request.contains("/transactions");
        let refused = async || (proxy.requests().iter().filter(is_begin).count() >= 2).then_some(());
        wait::until("it to be refused", wait::LIMIT, refused).await;
        client.abort(&open[0]).await.unwrap();
    };
    let (synced, ()) = tokio::join!(run(&target, &desired, &options), ends);
    assert!(synced.unwrap().success);
    world.end().await;
}

#[tokio::test]
async fn however_much_is_asked_at_once_it_takes_few_connections() {
    let fake = Fake::start(|asked| {
        std::thread::sleep(Duration::from_millis(2));
        hello("v3.2.4", asked).unwrap_or_else(|| (200, "", "7".to_owned()))
    })
    .await;
    let settings = Settings { most_calls: 4, ..Settings::new(&fake.url) };
    let client = Client::connect(settings).await.unwrap();
    let asked = futures::future::join_all((0..200).map(|_| client.configuration_version())).await;
    assert!(asked.into_iter().all(|version| version.unwrap() == 7));
    assert!(fake.connections() <= 20, "{} connections", fake.connections());
}

/// Whatever became of the sync, it ends.
#[tokio::test]
async fn a_transaction_that_nobody_drops_in_time_holds_up_nobody() {
    let (world, mut target) = need!(world(Dialect::default()).await);
    target.fail("operate", [Fault::Broken]);
    target.held = Some(("abort", Semaphore::new(0)));
    let desired =
        world.text(&(TEXT.replace("roundrobin", "leastconn") + "\nbackend more\n  server m1 127.0.0.1:3\n"));
    let options = SyncOptions { fallback_to_raw: false, ..options() };
    let ended = tokio::time::timeout(wait::LIMIT, run(&target, &desired, &options)).await;
    let (error, _) = error(ended.expect("it has a deadline of its own"));
    assert_eq!((error.stage, target.count("abort")), (Stage::Apply, 1), "{}", error.chain());
    world.end().await;
}
