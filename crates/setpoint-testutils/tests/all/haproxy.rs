//! HAProxy serves, reloads, refuses, and is found out when it does not.

use setpoint_testutils::{Backend, Haproxy, Load, Version, haproxy::Check, http, need, wait};

use crate::process_is_gone;

fn to_backend(haproxy: &str, backend: &Backend) -> String {
    format!(
        "frontend main\n  bind {haproxy}\n  default_backend servers\nbackend servers\n  server one {}\n",
        backend.address()
    )
}

async fn serves_and_reloads(version: Version) {
    let (first, second) = (Backend::start("first").await, Backend::start("second").await);
    let haproxy =
        need!(Haproxy::start_with(version, |port| to_backend(&port.address().to_string(), &first)).await);
    assert_eq!(http::get(&haproxy.url()).await.as_deref(), Some("first"));
    assert_eq!(haproxy.reloads().await, 0);
    let workers = haproxy.workers().await;
    assert_eq!(workers.len(), 1);

    let load = Load::start(&haproxy.url(), 4);
    wait::until("requests at the first backend", wait::LIMIT, async || (first.requests() > 50).then_some(()))
        .await;
    let address = haproxy.address().to_string();
    haproxy.reload(&to_backend(&address, &second)).await.unwrap();
    wait::until("requests at the second backend", wait::LIMIT, async || {
        (second.requests() > 50).then_some(())
    })
    .await;
    let report = load.stop().await;

    assert_eq!(report.total_failed(), 0, "{:?}", report.failed);
    assert!(report.answered.contains_key("first") && report.answered.contains_key("second"), "{report:?}");
    assert_eq!(haproxy.reloads().await, 1);
    assert_ne!(haproxy.workers().await, workers);
}

async fn says_so_when_a_reload_fails(version: Version) {
    let haproxy = need!(Haproxy::start(version).await);
    let check = haproxy.would_accept("frontend main\n  no-such-keyword\n");
    assert!(!check.accepted && check.output.contains("no-such-keyword"), "{}", check.output);
    let log = haproxy.reload("frontend main\n  no-such-keyword\n").await.unwrap_err();
    assert!(log.contains("no-such-keyword"), "{log}");
    assert_eq!(http::get(&haproxy.url()).await.as_deref(), Some("haproxy"), "the old worker goes on");
    assert_eq!(haproxy.reloads().await, 1);
}

fn checks_configurations(version: Version) {
    let good = "defaults\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n";
    let no_listener = need!(Haproxy::check(version, &format!("{good}backend b\n")));
    assert!(no_listener.accepted, "{}", no_listener.output);
    let Check { accepted, output } = need!(Haproxy::check(version, "backend b\n  no-such-keyword\n"));
    assert!(!accepted && output.contains("no-such-keyword"), "{output}");
}

macro_rules! on_each_version {
    ($($module:ident: $version:ident),*) => {$(
        mod $module {
            use super::*;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn serves_and_reloads_without_a_failed_request() {
                serves_and_reloads(Version::$version).await;
            }

            #[tokio::test]
            async fn says_so_when_a_reload_fails_and_goes_on() {
                says_so_when_a_reload_fails(Version::$version).await;
            }

            #[test]
            fn checks_configurations_and_accepts_one_without_listener() {
                checks_configurations(Version::$version);
            }
        }
    )*};
}

on_each_version!(v2_6: V2_6, v3_0: V3_0, v3_2: V3_2, v3_4: V3_4);

#[tokio::test]
async fn restarts_on_its_port_after_a_kill_and_stands_still_while_paused() {
    let mut haproxy = need!(Haproxy::start(Version::V3_2).await);
    let before = haproxy.workers().await;
    haproxy.restart().await;
    assert_ne!(haproxy.workers().await, before);
    assert_eq!(http::get(&haproxy.url()).await.as_deref(), Some("haproxy"));

    haproxy.process().pause();
    let paused = tokio::time::timeout(std::time::Duration::from_millis(500), http::get(&haproxy.url())).await;
    assert!(paused.is_err(), "a paused HAProxy answers nothing");
    haproxy.process().resume();
    assert_eq!(http::get(&haproxy.url()).await.as_deref(), Some("haproxy"));
}

#[tokio::test]
async fn is_gone_when_it_is_dropped() {
    let haproxy = need!(Haproxy::start(Version::V3_2).await);
    let (folder, processes) = (haproxy.folder().to_path_buf(), haproxy.processes().await);
    drop(haproxy);
    assert!(!folder.exists());
    for id in processes.workers.into_iter().chain([processes.master]) {
        process_is_gone(id).await;
    }
}
