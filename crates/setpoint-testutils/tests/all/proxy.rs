//! The proxy does to connections what it is told.

use std::time::{Duration, Instant};

use setpoint_testutils::{Backend, Proxy, http, wait};

#[tokio::test]
async fn a_proxy_passes_cuts_delays_limits_and_corrupts() {
    let name = "n".repeat(1000);
    let backend = Backend::start(&name).await;
    let proxy = Proxy::start(backend.address()).await;
    let url = format!("http://{}", proxy.address());
    let took = async || {
        let started = Instant::now();
        assert_eq!(http::get(&url).await.as_deref(), Some(name.as_str()));
        started.elapsed()
    };

    took().await;

    proxy.cut();
    assert_eq!(http::get(&url).await, None);
    proxy.heal();
    took().await;

    proxy.delay(Duration::from_millis(200));
    assert!(took().await >= Duration::from_millis(400), "200 ms there and 200 ms back");
    proxy.heal();

    // About 1,100 bytes of answer at 2,000 bytes in a second.
    proxy.limit(2000);
    assert!(took().await >= Duration::from_millis(500));
    proxy.heal();

    proxy.corrupt();
    assert_ne!(http::get(&url).await.as_deref(), Some(name.as_str()));
    proxy.heal();
    took().await;
}

#[tokio::test]
async fn a_cut_ends_connections_that_are_under_way() {
    let backend = Backend::start("slow").await;
    let proxy = Proxy::start(backend.address()).await;
    proxy.delay(Duration::from_mins(10));
    let url = format!("http://{}", proxy.address());
    let started = Instant::now();
    let cut = async {
        let under_way = async || (proxy.connections() > 0).then_some(());
        wait::until("a connection", wait::LIMIT, under_way).await;
        proxy.cut();
    };
    let (answer, ()) = tokio::join!(http::get(&url), cut);
    assert_eq!(answer, None);
    assert!(started.elapsed() < Duration::from_mins(5));
}
