//! The original's cases of its poller, by their meaning, and those that it never tested: answers that lie, hang
//! and go back.

use std::time::Duration;

use setpoint_consul::watch;
use setpoint_consul::{Auth, Client, Error, Read, Settings};
use tokio::time::{Instant, sleep};

use crate::fake::{Answer, Fake};
use crate::watching::{Watching, client, fast};

const BASELINE: &str = "bs/compositeRole=baseline";
const PREFIX: &str = "composite/x/structure/";

#[tokio::test]
async fn data_is_passed_on_with_its_index() {
    let fake = Fake::start(|number, _| match number {
        0 => Answer::list(7, &[BASELINE]),
        _ => Answer::Hang,
    })
    .await;
    let mut watching = Watching::start(client(fake.url()), "x", fast());
    let snapshot = watching.next().await;
    assert_eq!((snapshot.index, snapshot.entries.len()), (7, 1));
    assert!(!watching.cancel.is_cancelled());
    assert_eq!(watching.end().await, None);
}

#[tokio::test]
async fn the_first_query_is_at_0_and_each_other_at_the_index_of_the_answer_before() {
    let fake = Fake::start(|number, _| match number {
        0 => Answer::list(7, &[BASELINE]),
        1 => Answer::list(9, &[BASELINE, "st/compositeRole=satellite"]),
        _ => Answer::Hang,
    })
    .await;
    let watching = Watching::start(client(fake.url()), "x", fast());
    watching.reported("Answered 2 true", 1).await;
    fake.asked(3).await;
    assert_eq!(fake.requests()[0].line.split_once('?').unwrap().0, "GET /v1/kv/composite/x/structure/");
    assert_eq!(
        fake.queries(),
        ["recurse&index=0&wait=5000ms", "recurse&index=7&wait=5000ms", "recurse&index=9&wait=5000ms"]
    );
    watching.end().await;
}

#[tokio::test]
async fn no_query_waits_longer_than_five_seconds_whatever_is_asked_for() {
    let fake = Fake::start(|_, _| Answer::Hang).await;
    let settings = watch::Settings { wait: Duration::from_mins(1), ..fast() };
    let watching = Watching::start(client(fake.url()), "x", settings);
    fake.asked(1).await;
    assert_eq!(fake.queries(), ["recurse&index=0&wait=5000ms"]);
    watching.end().await;
}

#[tokio::test]
async fn a_watch_without_a_query_of_its_own_asks_when_it_is_woken_and_when_a_grace_is_over() {
    let fake = Fake::start(|number, request| match number {
        0 => Answer::list(7, &[BASELINE]),
        1 => Answer::list(9, &[BASELINE, "st/compositeRole=satellite"]),
        _ if request.line.contains("/acl/") => Answer::error(401, "ACL support disabled"),
        _ => Answer::none(11),
    })
    .await;
    let waker = tokio::sync::watch::Sender::new(0_u64);
    let turns = std::sync::Arc::new(tokio::sync::Semaphore::new(1));
    let wakes = watch::Wakes { number: waker.subscribe(), turns };
    let mut watching =
        Watching::start(client(fake.url()), "x", watch::Settings { wakes: Some(wakes), ..fast() });
    assert_eq!(watching.next().await.entries.len(), 1);
    sleep(Duration::from_millis(300)).await;
    assert_eq!(fake.requests().len(), 1, "nobody woke it");
    waker.send_modify(|number| *number += 1);
    assert_eq!(watching.next().await.entries.len(), 2);
    // All is gone: that is believed after the grace, without another reason to ask.
    waker.send_modify(|number| *number += 1);
    watching.until("{}").await;
    assert!(fake.queries().iter().all(|query| !query.contains("index=7") && !query.contains("index=9")));
    watching.end().await;
}

#[tokio::test]
async fn an_answer_without_a_change_is_not_passed_on() {
    let fake = Fake::start(|number, _| match number {
        0..4 => Answer::list(7 + number as u64, &[BASELINE]),
        _ => Answer::Hang,
    })
    .await;
    let mut watching = Watching::start(client(fake.url()), "x", fast());
    assert_eq!(watching.next().await.entries.len(), 1);
    watching.reported("Answered 1 false", 3).await;
    assert_eq!(watching.end().await, None);
}

#[tokio::test]
async fn nothing_is_passed_on_for_an_empty_answer_before_the_grace_is_over() {
    let fake = Fake::start(|number, _| if number == 0 { Answer::none(3) } else { Answer::Hang }).await;
    let settings = watch::Settings { removal_grace: Duration::from_mins(1), ..fast() };
    let watching = Watching::start(client(fake.url()), "x", settings);
    watching.reported("RemovalSuspected", 1).await;
    assert_eq!(watching.end().await, None);
}

#[tokio::test]
async fn an_answer_that_is_no_list_is_an_error_and_is_tried_again() {
    let fake = Fake::start(|number, _| match number {
        0 => Answer::Say(200, vec![("X-Consul-Index", "3".to_owned())], "null and void".to_owned()),
        1 => Answer::Say(
            200,
            vec![("X-Consul-Index", "3".to_owned())],
            r#"[{"Key":"a","Value":"%"}]"#.to_owned(),
        ),
        2 => Answer::list(7, &[BASELINE]),
        _ => Answer::Hang,
    })
    .await;
    let mut watching = Watching::start(client(fake.url()), "x", fast());
    assert_eq!(watching.next().await.index, 7);
    assert_eq!(watching.count("Failed Malformed"), 2);
    watching.end().await;
}

#[tokio::test]
async fn a_null_value_does_not_stop_the_others() {
    let fake = Fake::start(|number, _| match number {
        0 => Answer::Say(
            200,
            vec![("X-Consul-Index", "3".to_owned())],
            r#"[{"Key":"composite/x/structure/a/compositeRole","Value":null,"ModifyIndex":2},
                {"Key":"composite/x/structure/bs/compositeRole","Value":"YmFzZWxpbmU=","ModifyIndex":3}]"#
                .to_owned(),
        ),
        _ => Answer::Hang,
    })
    .await;
    let mut watching = Watching::start(client(fake.url()), "x", fast());
    watching.until(r#"{"baseline":{"origin":"bs"}}"#).await;
    watching.end().await;
}

#[tokio::test]
async fn cancelling_aborts_the_request_and_nothing_comes_after_it() {
    let fake = Fake::start(|_, _| Answer::Hang).await;
    let watching = Watching::start(client(fake.url()), "x", fast());
    fake.asked(1).await;
    assert_eq!(watching.end().await, None);
    let aborted = async || fake.requests()[0].aborted.then_some(());
    setpoint_testutils::wait::until("the connection is closed", setpoint_testutils::wait::LIMIT, aborted)
        .await;
    assert_eq!(fake.requests().len(), 1);
}

#[tokio::test]
async fn a_watch_that_was_cancelled_before_it_began_asks_nothing() {
    let fake = Fake::start(|_, _| Answer::list(7, &[BASELINE])).await;
    let (sink, mut snapshots) = setpoint_loop::latest::channel();
    let cancel = tokio_util::sync::CancellationToken::new();
    cancel.cancel();
    watch::watch(client(fake.url()), PREFIX.to_owned(), fast(), sink, cancel, |_: watch::Event<'_>| {}).await;
    assert_eq!((snapshots.recv().await, fake.requests().len()), (None, 0));
}

#[tokio::test]
async fn a_watch_ends_when_nobody_takes_snapshots_any_more() {
    let fake = Fake::start(|_, _| Answer::Hang).await;
    let (sink, snapshots) = setpoint_loop::latest::channel();
    let observer = |_: watch::Event<'_>| {};
    let cancel = tokio_util::sync::CancellationToken::new();
    let task =
        tokio::spawn(watch::watch(client(fake.url()), PREFIX.to_owned(), fast(), sink, cancel, observer));
    drop(snapshots);
    tokio::time::timeout(setpoint_testutils::wait::LIMIT, task)
        .await
        .expect("it ends")
        .expect("without a panic");
}

#[tokio::test]
async fn an_error_is_tried_again_from_index_0() {
    let fake = Fake::start(|number, _| match number {
        0 | 4 => Answer::list(7, &[BASELINE]),
        1 => Answer::error(500, "rpc error: No cluster leader"),
        2 => Answer::error(503, "busy"),
        3 => Answer::error(400, "odd"),
        _ => Answer::Hang,
    })
    .await;
    let watching = Watching::start(client(fake.url()), "x", fast());
    watching.reported("Answered 1 false", 1).await;
    let failed: Vec<_> = watching.events().into_iter().filter(|event| event.starts_with("Failed")).collect();
    assert_eq!(failed, ["Failed Unavailable", "Failed Overloaded", "Failed Refused"]);
    assert!(fake.queries()[2].contains("index=0"), "nobody knows who will answer");
    watching.end().await;
}

#[tokio::test]
async fn a_token_that_can_not_be_read_is_tried_again() {
    let fake =
        Fake::start(|number, _| if number == 0 { Answer::list(7, &[BASELINE]) } else { Answer::Hang }).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    let auth = Auth::TokenFile(file.clone());
    let client = Client::new(Settings { auth, ..Settings::new(fake.url()) }).unwrap();
    let mut watching = Watching::start(client, "x", fast());
    watching.reported("Failed File", 2).await;
    std::fs::write(&file, "").unwrap();
    watching.reported("Failed Settings", 1).await;
    assert_eq!(fake.requests().len(), 0, "nothing is asked without it");
    std::fs::write(&file, "first\n").unwrap();
    assert_eq!(watching.next().await.entries.len(), 1);
    assert_eq!(fake.requests()[0].token.as_deref(), Some("first"));
    fake.asked(2).await;
    std::fs::write(&file, "second\n").unwrap();
    watching.reported("Renewed", 1).await;
    fake.asked(3).await;
    let last = fake.requests()[2].clone();
    assert_eq!(last.token.as_deref(), Some("second"), "the query under way is asked anew");
    assert!(last.line.contains("index=0"));
    watching.end().await;
}

#[tokio::test]
async fn an_index_that_goes_back_starts_over() {
    let fake = Fake::start(|number, _| match number {
        0 => Answer::list(100, &[BASELINE]),
        1 => Answer::list(40, &[BASELINE, "st/compositeRole=satellite"]),
        2 => Answer::list(41, &[BASELINE]),
        _ => Answer::Hang,
    })
    .await;
    let watching = Watching::start(client(fake.url()), "x", fast());
    watching.reported("Answered 1 true", 2).await;
    assert_eq!(watching.count("IndexReset { from: 100, to: 40 }"), 1);
    assert_eq!(fake.queries()[2], "recurse&index=0&wait=5000ms");
    watching.end().await;
}

#[tokio::test]
async fn an_answer_without_an_index_never_makes_the_query_spin() {
    let fake = Fake::start(|number, _| match number {
        0 => Answer::Say(200, vec![], "[]".to_owned()),
        1 => Answer::list(0, &[BASELINE]),
        _ => Answer::Hang,
    })
    .await;
    let watching = Watching::start(client(fake.url()), "x", fast());
    watching.reported("Answered 1 true", 1).await;
    fake.asked(3).await;
    assert!(fake.queries()[1].contains("index=1"), "{:?}", fake.queries());
    watching.end().await;
}

#[tokio::test]
async fn removal_is_passed_on_after_the_grace_if_a_consistent_read_says_the_same() {
    let fake = Fake::start(|number, request| match number {
        0 => Answer::list(5, &[BASELINE]),
        _ if request.line.contains("/acl/") => Answer::error(401, "ACL support disabled"),
        _ => Answer::none(6),
    })
    .await;
    let mut watching = Watching::start(client(fake.url()), "x", fast());
    watching.until(r#"{"baseline":{"origin":"bs"}}"#).await;
    watching.until("{}").await;
    assert_eq!((watching.count("RemovalSuspected"), watching.count("RemovalConfirmed")), (1, 1));
    assert_eq!(fake.queries().iter().filter(|query| query.contains("consistent")).count(), 1);
    watching.reported("Answered 0 false", 2).await;
    assert_eq!(watching.count("RemovalConfirmed"), 1, "it is told once");
    watching.end().await;
}

#[tokio::test]
async fn removal_that_a_consistent_read_denies_is_not_passed_on() {
    let fake = Fake::start(|number, request| match number {
        0 => Answer::list(5, &[BASELINE]),
        _ if request.line.contains("consistent") => Answer::list(5, &[BASELINE]),
        _ => Answer::none(6),
    })
    .await;
    let mut watching = Watching::start(client(fake.url()), "x", fast());
    assert_eq!(watching.next().await.entries.len(), 1);
    watching.reported("Answered 1 false", 2).await;
    assert_eq!(watching.count("RemovalConfirmed"), 0);
    assert_eq!(watching.end().await, None);
}

#[tokio::test]
async fn without_a_token_where_acls_are_on_nothing_seen_is_not_nothing_there() {
    let fake = Fake::start(|number, request| match number {
        0 => Answer::list(5, &[BASELINE]),
        _ if request.line.contains("/acl/") => Answer::error(403, "Permission denied"),
        _ => Answer::none(6),
    })
    .await;
    let mut watching = Watching::start(client(fake.url()), "x", fast());
    assert_eq!(watching.next().await.entries.len(), 1);
    watching.reported("Filtered { withheld: true }", 2).await;
    assert_eq!(watching.end().await, None);
}

#[tokio::test]
async fn an_answer_from_a_server_without_a_leader_is_asked_again() {
    let fake = Fake::start(|number, request| match number {
        0 => Answer::Say(
            200,
            vec![("X-Consul-Index", "5".to_owned()), ("X-Consul-KnownLeader", "false".to_owned())],
            "[]".to_owned(),
        ),
        _ if request.line.contains("consistent") => Answer::list(6, &[BASELINE]),
        2 => Answer::list(6, &[]).with("X-Consul-LastContact", "3600000"),
        _ => Answer::Hang,
    })
    .await;
    let mut watching = Watching::start(client(fake.url()), "x", fast());
    watching.until(r#"{"baseline":{"origin":"bs"}}"#).await;
    watching.reported("Stale", 2).await;
    watching.reported("Answered 1 false", 1).await;
    assert_eq!(watching.end().await, None);
}

#[tokio::test]
async fn too_many_requests_are_backed_off_from_for_as_long_as_is_asked() {
    let fake = Fake::start(|number, _| match number {
        0 => Answer::error(429, "slow down").with("Retry-After", "1"),
        1 => Answer::list(5, &[BASELINE]),
        _ => Answer::Hang,
    })
    .await;
    let settings = watch::Settings { longest_retry: Duration::from_secs(5), ..fast() };
    let start = Instant::now();
    let mut watching = Watching::start(client(fake.url()), "x", settings);
    assert_eq!(watching.next().await.entries.len(), 1);
    assert!(start.elapsed() >= Duration::from_secs(1), "no sooner than asked");
    assert_eq!(watching.count("Failed Overloaded"), 1);
    watching.end().await;
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let fake = Fake::start(|_, _| Answer::Hang).await;
    let settings = Settings { timeout: Duration::from_millis(100), ..Settings::new(fake.url()) };
    let client = Client::new(settings).unwrap();
    assert!(matches!(client.list(PREFIX, Read::Default).await, Err(Error::Timeout)));
}

#[tokio::test]
async fn a_storm_of_wakings_stays_within_the_bucket() {
    let fake = Fake::start(|number, _| Answer::none(number as u64 + 1)).await;
    let settings = watch::Settings {
        refill: Duration::from_millis(200),
        removal_grace: Duration::from_mins(1),
        ..fast()
    };
    let watching = Watching::start(client(fake.url()), "x", settings);
    let start = Instant::now();
    sleep(Duration::from_secs(1)).await;
    let asked = fake.requests().len() as u128;
    assert!(asked <= 2 + start.elapsed().as_millis() / 200, "{asked} in {:?}", start.elapsed());
    watching.end().await;
}

#[tokio::test]
async fn the_parameters_of_consul_are_in_every_request() {
    let fake = Fake::start(|_, _| Answer::none(1)).await;
    let settings = Settings {
        datacenter: Some("dc 1".to_owned()),
        namespace: Some("team".to_owned()),
        partition: Some("part".to_owned()),
        ..Settings::new(format!("{}/behind/a/path/", fake.url()))
    };
    let client = Client::new(settings).unwrap();
    client.list("a b/ü/", Read::Consistent).await.unwrap();
    assert_eq!(
        fake.requests()[0].line,
        "GET /behind/a/path/v1/kv/a%20b/%C3%BC/?dc=dc+1&ns=team&partition=part&recurse&consistent"
    );
}

#[tokio::test]
async fn no_token_is_ever_shown() {
    let secret = "5ec4e7";
    let fake = Fake::start(|_, _| Answer::error(403, "Permission denied")).await;
    let auth = Auth::Token(setpoint_consul::Secret::new(secret));
    let settings = Settings { auth, ..Settings::new(fake.url()) };
    let shown = format!("{settings:?}");
    let client = Client::new(settings).unwrap();
    let error = client.list(PREFIX, Read::Default).await.unwrap_err();
    assert_eq!(fake.requests()[0].token.as_deref(), Some(secret));
    let client_shown = format!("{client:?}");
    for text in [shown, client_shown, format!("{error:?}"), error.to_string()] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn an_address_that_can_not_be_used_is_refused_at_once() {
    for url in ["", "localhost:8500", "ftp://consul", "unix:///run/consul"] {
        assert!(matches!(Client::new(Settings::new(url)), Err(Error::Settings(_))), "{url}");
    }
}
