//! Files that take effect, or wait for a reload: HAProxy reloads as often as the plan says, and what could not be completed is
//! completed by the next sync.

use setpoint_dataplane::client::{Client, Settings};
use setpoint_dataplane::costs::Weights;
use setpoint_dataplane::error::Stage;
use setpoint_dataplane::files::{AuxiliaryFiles, Files};
use setpoint_dataplane::sync::{Choice, Desired, Strategy, SyncMode, SyncOptions, SyncResult, plan, sync};
use setpoint_dataplane::target::{ApiTarget, Target};
use setpoint_dataplane_api::Dialect;
use setpoint_testutils::certificates::Authority;
use setpoint_testutils::need;
use tokio_util::sync::CancellationToken;

use crate::counting::Fault;
use crate::fake::{Fake, hello};
use crate::sync::{TEXT, error, options, world};
use crate::world::World;

pub(crate) fn certificate() -> Vec<u8> {
    let made = Authority::new().server();
    (made.certificate + &made.key).into_bytes()
}

#[expect(clippy::unnecessary_wraps, reason = "a kind of files that is managed is some")]
pub(crate) fn files<const N: usize>(files: [(&str, &[u8]); N]) -> Option<Files> {
    Some(files.into_iter().map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).collect())
}

pub(crate) fn cheapest() -> SyncOptions {
    SyncOptions { choice: Choice::Cheapest(Weights::default()), fallback_to_raw: false, ..options() }
}

pub(crate) async fn bring<T: Target>(target: &T, text: &str, files: &AuxiliaryFiles) -> SyncResult {
    let desired = Desired { text: text.as_bytes().to_vec(), files: files.clone() };
    let synced = sync(target, &desired, &cheapest(), &CancellationToken::new()).await;
    synced.map_err(|failed| failed.error.chain()).unwrap()
}

/// Brings a target there: HAProxy reloads as often as the plan said, and a second sync finds nothing to do. Returns how often.
pub(crate) async fn as_planned<T: Target>(
    world: &World,
    target: &T,
    text: &str,
    files: &AuxiliaryFiles,
) -> u64 {
    let desired = Desired { text: text.as_bytes().to_vec(), files: files.clone() };
    let planned = plan(target, &desired, &cheapest(), &CancellationToken::new()).await.unwrap();
    world.settled().await;
    let before = world.reloads();
    let result = bring(target, text, files).await;
    world.settled().await;
    let reloads = world.reloads() - before;
    assert_eq!(reloads, u64::from(planned.reload.is_some()), "{:?}: {result:?}", planned.reload);
    assert_eq!(result.reload_triggered, reloads > 0, "{result:?}");
    assert!(reloads == 0 || result.reload_verified, "{result:?}");
    let again = bring(target, text, files).await;
    assert!(again.applied_files.is_empty() && again.applied_operations.is_empty(), "{again:?}");
    assert!(!again.reload_triggered, "{again:?}");
    reloads
}

const SECURE: &str = "frontend web\n  bind 127.0.0.1:PORT ssl crt DIR/ssl/site.pem\n  default_backend app\n\nbackend app\n  \
                      balance roundrobin\n  server s1 127.0.0.1:1 weight 10\n";

#[tokio::test]
async fn a_certificate_that_is_replaced_again_and_again_never_reloads() {
    let (world, target) = need!(world(Dialect::default()).await);
    let text = world.text(SECURE);
    let with = |bytes: &[u8]| AuxiliaryFiles {
        certificates: files([("site.pem", bytes)]),
        ..AuxiliaryFiles::default()
    };
    bring(&target, &text, &with(&certificate())).await;
    for _ in 0..3 {
        assert_eq!(as_planned(&world, &target, &text, &with(&certificate())).await, 0);
    }
    world.end().await;
}

#[tokio::test]
async fn haproxy_reloads_at_most_once_for_files_and_as_often_as_the_plan_says() {
    for dialect in [Dialect::ALL[0], Dialect::default()] {
        let (world, target) = need!(world(dialect).await);
        let is_old = dialect == Dialect::ALL[0];
        let base = SECURE.replace(
            "  default_backend",
            "  errorfile 503 DIR/general/503.http\n  http-request deny if { src -f DIR/general/bad.lst }\n  \
             http-request set-header x-m %[path,map(DIR/maps/used.map)]\n  default_backend",
        );
        let text = world.text(&base);
        let page = |words: &str| format!("HTTP/1.0 503 No\r\n\r\n{words}\n").into_bytes();
        let (mut general, mut maps) = (files([]).unwrap(), files([]).unwrap());
        general.insert("503.http".to_owned(), page("one"));
        general.insert("bad.lst".to_owned(), b"192.0.2.1\n".to_vec());
        general.insert("unused.http".to_owned(), page("one"));
        maps.insert("used.map".to_owned(), b"/a 1\n".to_vec());
        maps.insert("unused.map".to_owned(), b"/a 1\n".to_vec());
        let mut all = AuxiliaryFiles {
            general: Some(general.clone()),
            maps: Some(maps.clone()),
            certificates: files([("site.pem", &certificate())]),
            ..AuxiliaryFiles::default()
        };
        bring(&target, &text, &all).await;
        // What HAProxy can be told of, and what nothing names.
        maps.insert("used.map".to_owned(), b"/a 2\n".to_vec());
        maps.insert("unused.map".to_owned(), b"/a 2\n".to_vec());
        general.insert("bad.lst".to_owned(), b"192.0.2.2\n".to_vec());
        general.insert("unused.http".to_owned(), page("two"));
        (all.general, all.maps) = (Some(general.clone()), Some(maps.clone()));
        assert_eq!(as_planned(&world, &target, &text, &all).await, 0, "{dialect:?}");
        // An error page is read when HAProxy starts.
        general.insert("503.http".to_owned(), page("two"));
        all.general = Some(general.clone());
        assert_eq!(as_planned(&world, &target, &text, &all).await, 1, "{dialect:?}");
        // A certificate, beside what HAProxy can be told.
        all.certificates = files([("site.pem", &certificate())]);
        let weight = text.replace("weight 10", "weight 20");
        assert_eq!(as_planned(&world, &target, &weight, &all).await, u64::from(is_old), "{dialect:?}");
        // And beside what takes a reload anyway, with an error page and a map.
        all.certificates = files([("site.pem", &certificate())]);
        general.insert("503.http".to_owned(), page("three"));
        maps.insert("used.map".to_owned(), b"/a 3\n".to_vec());
        (all.general, all.maps) = (Some(general), Some(maps));
        let more = weight + "\nbackend more\n  balance source\n  server m1 127.0.0.1:3\n";
        assert_eq!(as_planned(&world, &target, &more, &all).await, 1, "{dialect:?}");
        world.end().await;
    }
}

#[tokio::test]
async fn a_certificate_that_joins_a_folder_in_use_is_loaded_with_one_reload() {
    let (world, target) = need!(world(Dialect::default()).await);
    let text = world.text(&SECURE.replace("ssl/site.pem", "ssl"));
    let (one, other) = (certificate(), certificate());
    let mut all = AuxiliaryFiles { certificates: files([("site.pem", &one)]), ..AuxiliaryFiles::default() };
    bring(&target, &text, &all).await;
    all.certificates = files([("site.pem", &one), ("other.pem", &other)]);
    assert_eq!(as_planned(&world, &target, &text, &all).await, 1);
    world.end().await;
}

#[tokio::test]
async fn a_map_that_waits_for_a_reload_gets_one_where_all_else_is_told() {
    let (world, mut target) = need!(world(Dialect::default()).await);
    target.is_original = true;
    let base = TEXT.replace(
        "  default_backend",
        "  http-request set-header x-m %[path,map(DIR/maps/used.map)]\n  default_backend",
    );
    let text = world.text(&base);
    let maps =
        |bytes: &[u8]| AuxiliaryFiles { maps: files([("used.map", bytes)]), ..AuxiliaryFiles::default() };
    bring(&target, &text, &maps(b"/a 1\n")).await;
    world.settled().await;
    for (weight, choice) in [("20", Choice::Document), ("30", Choice::Cheapest(Weights::default()))] {
        let before = world.reloads();
        let text = text.replace("weight 10", &format!("weight {weight}"));
        let desired = Desired { text: text.into_bytes(), files: maps(format!("/a {weight}\n").as_bytes()) };
        let options = SyncOptions { choice, ..cheapest() };
        let planned = plan(&target, &desired, &options, &CancellationToken::new()).await.unwrap();
        assert!(planned.reload.is_some(), "{planned:?}");
        let result = sync(&target, &desired, &options, &CancellationToken::new()).await.unwrap();
        world.settled().await;
        assert!(result.reload_triggered && result.reload_verified, "{result:?}");
        assert_eq!(world.reloads() - before, 1, "{result:?}");
    }
    world.end().await;
}

#[tokio::test]
async fn certificates_that_were_written_in_part_are_known_to_be() {
    let (world, target) = need!(world(Dialect::default()).await);
    let text = world.text(TEXT);
    let pair = |one: &[u8], other: &[u8]| AuxiliaryFiles {
        certificates: files([("a.pem", one), ("b.pem", other)]),
        ..AuxiliaryFiles::default()
    };
    let (old, new) = ([certificate(), certificate()], [certificate(), certificate()]);
    let former = pair(&old[0], &old[1]);
    bring(&target, &text, &former).await;
    // The first is replaced, the second is not, and nobody notes it.
    target.fail("replace_file", [Fault::Pass, Fault::Broken]);
    let desired = Desired { text: text.clone().into_bytes(), files: pair(&new[0], &new[1]) };
    let outcome = sync(&target, &desired, &cheapest(), &CancellationToken::new()).await;
    error(outcome);
    target.calm();
    let result = bring(&target, &text, &former).await;
    assert!(result.applied_files.contains(&"~ certificate a.pem".to_owned()), "{result:?}");
    assert_eq!(std::fs::read(world.path("ssl/a.pem")).unwrap(), old[0]);
    assert_eq!(std::fs::read(world.path("ssl/b.pem")).unwrap(), old[1]);
    assert!(bring(&target, &text, &former).await.applied_files.is_empty());
    world.end().await;
}

/// What a file holds and what HAProxy runs differ until it has reloaded, whatever came between.
#[tokio::test]
async fn a_file_whose_reload_never_came_is_loaded_by_the_next_sync() {
    let (world, target) = need!(world(Dialect::default()).await);
    let base = TEXT.replace("  default_backend", "  errorfile 503 DIR/general/503.http\n  default_backend");
    let text = world.text(&base);
    let page = |words: &str| AuxiliaryFiles {
        general: files([("503.http", format!("HTTP/1.0 503 No\r\n\r\n{words}\n").as_bytes())]),
        ..AuxiliaryFiles::default()
    };
    bring(&target, &text, &page("one")).await;
    target.fail("commit", [Fault::Broken]);
    let desired = Desired { text: text.clone().into_bytes(), files: page("two") };
    let outcome = sync(&target, &desired, &cheapest(), &CancellationToken::new()).await;
    error(outcome);
    assert_eq!(as_planned(&world, &target, &text, &page("two")).await, 1);
    world.end().await;
}

/// The original is told entries one by one; our own API knows the same calls.
#[tokio::test]
async fn a_map_at_the_original_is_told_entry_by_entry_and_what_calls_can_not_tell_takes_a_reload() {
    for dialect in [Dialect::ALL[0], Dialect::ALL[2]] {
        let (world, target) = need!(world(dialect).await);
        let target = target.inner.as_original();
        let base = TEXT.replace(
            "  default_backend",
            "  http-request set-header x-m %[path,map(DIR/maps/used.map)]\n  default_backend",
        );
        let text = world.text(&base);
        let maps = |bytes: &str| AuxiliaryFiles {
            maps: files([("used.map", bytes.as_bytes())]),
            ..AuxiliaryFiles::default()
        };
        bring(&target, &text, &maps("/a 1\n/b 2\n/c 3\n")).await;
        assert_eq!(as_planned(&world, &target, &text, &maps("/a 1\n/c 4\n/d 5\n")).await, 0, "{dialect:?}");
        let held = target.client().map_entries("used.map").await.unwrap().unwrap();
        let mut held: Vec<_> = held.iter().map(|entry| (entry.key.as_str(), entry.value.as_str())).collect();
        held.sort_unstable();
        assert_eq!(held, [("/a", "1"), ("/c", "4"), ("/d", "5")]);
        assert_eq!(std::fs::read_to_string(world.path("maps/used.map")).unwrap(), "/a 1\n/c 4\n/d 5\n");
        assert_eq!(as_planned(&world, &target, &text, &maps("/a two words\n")).await, 1, "{dialect:?}");
        world.end().await;
    }
}

#[tokio::test]
async fn authorities_at_the_original_are_told_where_it_can_and_take_a_reload_where_not() {
    for (dialect, reloads) in [(Dialect::ALL[0], 1), (Dialect::ALL[2], 0)] {
        let (world, target) = need!(world(dialect).await);
        let target = target.inner.as_original();
        let (one, other) = (Authority::new().certificate(), Authority::new().certificate());
        let secure = SECURE.replace("site.pem", "site.pem ca-file DIR/general/ca.pem verify optional");
        let text = world.text(&secure);
        let site = certificate();
        let with = |authority: &str| AuxiliaryFiles {
            certificates: files([("site.pem", &site)]),
            ca_files: files([("ca.pem", authority.as_bytes())]),
            ..AuxiliaryFiles::default()
        };
        bring(&target, &text, &with(&one)).await;
        assert_eq!(as_planned(&world, &target, &text, &with(&other)).await, reloads, "{dialect:?}");
        world.end().await;
    }
}

/// The specification says the one, and the original the other.
#[tokio::test]
async fn authorities_are_told_whether_the_api_says_that_they_were_changed_or_made() {
    for status in [200, 201] {
        let fake =
            Fake::start(move |call| hello("v3.4.0", call).unwrap_or((status, "", String::new()))).await;
        let client = Client::connect(Settings::new(&fake.url)).await.unwrap();
        client.replace_ca_file("/general/ca.pem", b"authority").await.unwrap();
    }
}

/// What is written at the original never reloads by itself, but for a certificate that it can tell HAProxy of.
#[tokio::test]
async fn files_at_the_original_are_written_without_a_reload_but_for_certificates_that_are_told() {
    for (version, is_told) in [("v3.0.21", false), ("v3.2.13", true)] {
        let fake = Fake::start(move |call| {
            if let Some(said) = hello(version, call) {
                return said;
            }
            let path = call.split(' ').nth(1).unwrap().trim_start_matches("/v3/services/haproxy/");
            let listed = |names: &str| (200, "configuration-version: 5", names.to_owned());
            let text = "global\n  maxconn 5\n\nfrontend f\n  bind :1 ssl crt /ssl/used.pem\n  errorfile 503 /g/used.http\n";
            match (call.split(' ').next().unwrap(), path) {
                ("GET", "configuration/raw") => listed(text),
                ("GET", "storage/maps") => listed("[{\"storage_name\":\"unused.map\"}]"),
                ("GET", "storage/general") => {
                    listed("[{\"storage_name\":\"used.http\"},{\"storage_name\":\"setpoint-digests.json\"}]")
                }
                ("GET", "storage/ssl_certificates") => {
                    listed("[{\"storage_name\":\"used.pem\"},{\"storage_name\":\"unused.pem\"}]")
                }
                ("GET", "storage/general/setpoint-digests.json") => listed("{}"),
                ("GET", "reloads") => listed("[]"),
                ("GET", _) => listed("old"),
                ("POST", "transactions?version=5") => {
                    (201, "", "{\"_version\":5,\"id\":\"t\",\"status\":\"in_progress\"}".to_owned())
                }
                ("PUT", path) if path.starts_with("transactions") => (200, "configuration-version: 6", "{}".to_owned()),
                ("PUT", _) => (204, "", String::new()),
                (_, _) => (500, "", "{}".to_owned()),
            }
        })
        .await;
        let client = Client::connect(Settings::new(&fake.url)).await.unwrap();
        let target = ApiTarget::new(client).await.unwrap();
        let desired = Desired {
            text: b"global\n  maxconn 5\n\nfrontend f\n  bind :1 ssl crt /ssl/used.pem\n  errorfile 503 /g/used.http\n".to_vec(),
            files: AuxiliaryFiles {
                maps: files([("unused.map", b"a b\n")]),
                general: files([("used.http", b"new")]),
                certificates: files([("used.pem", b"new"), ("unused.pem", b"new")]),
                ..AuxiliaryFiles::default()
            },
        };
        let options = SyncOptions { verify_reload: false, ..cheapest() };
        let planned = plan(&target, &desired, &options, &CancellationToken::new()).await.unwrap();
        assert!(planned.reload.is_some(), "{planned:?}");
        let _ = sync(&target, &desired, &options, &CancellationToken::new()).await;
        let calls = fake.calls();
        let writes = calls.iter().filter_map(|call| call.strip_prefix("PUT /v3/services/haproxy/storage/"));
        let reloading: Vec<&str> = writes.filter(|call| !call.ends_with("?skip_reload=true")).collect();
        let expected: &[&str] = if is_told { &["ssl_certificates/used.pem"] } else { &[] };
        assert_eq!(reloading, expected, "{version}: {calls:#?}");
        let commits =
            calls.iter().filter(|call| call.contains("PUT /v3/services/haproxy/transactions/t")).count();
        assert_eq!(commits, 1, "{version}: one reload for all of them: {calls:#?}");
    }
}

/// A file whose reload came before is no reason to believe what HAProxy was told after it.
#[tokio::test]
async fn what_haproxy_was_told_after_the_reload_of_a_file_is_read_back() {
    let (world, mut target) = need!(world(Dialect::default()).await);
    // Only when it is told of an error page does it turn out that this takes a reload.
    target.boasts = true;
    let base = TEXT.replace("  default_backend", "  errorfile 503 DIR/general/503.http\n  default_backend");
    let page = |words: &str| AuxiliaryFiles {
        general: files([("503.http", format!("HTTP/1.0 503 No\r\n\r\n{words}\n").as_bytes())]),
        ..AuxiliaryFiles::default()
    };
    bring(&target, &world.text(&base), &page("one")).await;
    target.lies = true;
    let desired = Desired {
        text: world.text(&base.replace("weight 10", "weight 20")).into_bytes(),
        files: page("two"),
    };
    let (error, result) = error(sync(&target, &desired, &cheapest(), &CancellationToken::new()).await);
    assert!(result.reload_triggered, "{result:?}");
    assert_eq!(error.stage, Stage::ReadBack, "{}", error.chain());
    assert!(error.to_string().contains("server s1 runs with weight 1 and not 20"), "{error}");
    world.end().await;
}

/// What HAProxy goes back to where the reload fails may name them.
#[tokio::test]
async fn files_are_deleted_only_when_no_reload_is_left_that_nobody_has_seen() {
    let (world, target) = need!(world(Dialect::default()).await);
    std::fs::write(world.path("maps/old.map"), "a b\n").unwrap();
    let text = world.text(&TEXT.replace("  default_backend", "  http-request deny\n  default_backend"));
    let desired = Desired {
        text: text.into_bytes(),
        files: AuxiliaryFiles { maps: files([]), ..AuxiliaryFiles::default() },
    };
    let unverified = SyncOptions { verify_reload: false, ..cheapest() };
    let result = sync(&target, &desired, &unverified, &CancellationToken::new()).await.unwrap();
    assert!(result.reload_triggered && !result.reload_verified, "{result:?}");
    assert_eq!(result.kept_files, ["old.map"]);
    assert!(result.warnings.iter().any(|warning| warning.contains("old.map is not deleted")), "{result:?}");
    assert!(world.path("maps/old.map").exists());
    // The next one asks whether that reload is still to come.
    target.calls();
    let result = sync(&target, &desired, &cheapest(), &CancellationToken::new()).await.unwrap();
    assert_eq!(result.applied_files, ["- map old.map"]);
    let calls = target.calls();
    let at = |call: &str| calls.iter().position(|noted| noted.starts_with(call)).unwrap();
    assert!(at("pending_reload") < at("delete_file"), "{calls:?}");
    world.end().await;
}

/// HAProxy looks such a map up line by line, and the original puts new entries behind all others.
#[tokio::test]
async fn a_map_whose_order_counts_takes_a_reload_at_the_original_and_none_at_ours() {
    let (world, target) = need!(world(Dialect::default()).await);
    let base = TEXT.replace(
        "  default_backend",
        "  http-request set-header x-m %[path,map_reg(DIR/maps/used.map)]\n  default_backend",
    );
    let text = world.text(&base);
    let maps = |bytes: &str| AuxiliaryFiles {
        maps: files([("used.map", bytes.as_bytes())]),
        ..AuxiliaryFiles::default()
    };
    bring(&target, &text, &maps("^/a a\n. b\n")).await;
    assert_eq!(as_planned(&world, &target, &text, &maps("^/c c\n^/a a\n. b\n")).await, 0);
    let entries = target.inner.client().map_entries("used.map").await.unwrap().unwrap();
    let keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(keys, ["^/c", "^/a", "."]);
    let original = target.inner.as_original();
    assert_eq!(as_planned(&world, &original, &text, &maps("^/d d\n^/c c\n^/a a\n. b\n")).await, 1);
    world.end().await;
}

/// The API tells a serial number and who signed, and both may stay the same.
#[tokio::test]
async fn a_certificate_that_differs_in_its_key_or_its_chain_alone_is_replaced() {
    let (world, target) = need!(world(Dialect::default()).await);
    let text = world.text(TEXT);
    let with = |bytes: &[u8]| AuxiliaryFiles {
        certificates: files([("site.pem", bytes)]),
        ..AuxiliaryFiles::default()
    };
    let authority = Authority::new();
    let made = authority.server();
    let plain = made.certificate.clone() + &made.key;
    let chained = made.certificate.clone() + &authority.certificate() + &made.key;
    bring(&target, &text, &with(plain.as_bytes())).await;
    assert!(bring(&target, &text, &with(plain.as_bytes())).await.applied_files.is_empty());
    for bytes in [chained, plain] {
        let result = bring(&target, &text, &with(bytes.as_bytes())).await;
        assert_eq!(result.applied_files, ["~ certificate site.pem"]);
        assert_eq!(std::fs::read(world.path("ssl/site.pem")).unwrap(), bytes.as_bytes());
    }
    // And a checksum of all that is desired knows all kinds of files.
    let digest = |files: AuxiliaryFiles| Desired { text: b"backend b\n".to_vec(), files }.digest();
    let of = |bytes: &str| AuxiliaryFiles {
        ca_files: files([("ca.pem", bytes.as_bytes())]),
        ..AuxiliaryFiles::default()
    };
    assert_ne!(digest(of("one")), digest(of("two")));
    world.end().await;
}

/// One that is empty is compared like any other, whichever way the configuration goes.
#[tokio::test]
async fn the_last_file_of_a_kind_goes_also_where_the_whole_text_is_pushed() {
    let (world, target) = need!(world(Dialect::default()).await);
    let page = b"HTTP/1.0 503 No\r\n\r\n";
    let all = AuxiliaryFiles {
        maps: files([("one.map", b"a b\n")]),
        general: files([("503.http", page)]),
        certificates: files([("site.pem", &certificate())]),
        ..AuxiliaryFiles::default()
    };
    bring(&target, &world.text(TEXT), &all).await;
    let none = AuxiliaryFiles {
        maps: files([]),
        general: files([]),
        certificates: files([]),
        ..AuxiliaryFiles::default()
    };
    let desired =
        Desired { text: world.text(&TEXT.replace("weight 10", "weight 20")).into_bytes(), files: none };
    let options = SyncOptions { choice: Choice::Always(Strategy::Text), ..cheapest() };
    let result = sync(&target, &desired, &options, &CancellationToken::new()).await.unwrap();
    assert_eq!(result.mode, SyncMode::RawChosen);
    assert_eq!(result.applied_files, ["- map one.map", "- file 503.http", "- certificate site.pem"]);
    for name in ["maps/one.map", "general/503.http", "ssl/site.pem"] {
        assert!(!world.path(name).exists(), "{name}");
    }
    assert!(world.path("general/setpoint-digests.json").exists(), "what is noted of files is none of them");
    world.end().await;
}

/// An API that says only afterwards that a change of a server takes a reload.
#[tokio::test]
async fn a_reload_that_a_change_by_itself_turns_out_to_take_is_verified_by_the_process() {
    let (world, mut target) = need!(world(Dialect::default()).await);
    target.reloads_silently = true;
    let desired = Desired {
        text: world.text(&TEXT.replace("weight 10", "weight 20")).into_bytes(),
        files: AuxiliaryFiles::default(),
    };
    let before = world.reloads();
    let options = SyncOptions { choice: Choice::Always(Strategy::OneByOne), ..cheapest() };
    let result = sync(&target, &desired, &options, &CancellationToken::new()).await.unwrap();
    assert!(result.reload_triggered && result.reload_id.is_none() && result.reload_verified, "{result:?}");
    assert!(world.reloads() > before);
    target.forgets = true;
    let again = Desired {
        text: world.text(&TEXT.replace("weight 10", "weight 30")).into_bytes(),
        files: AuxiliaryFiles::default(),
    };
    let options =
        SyncOptions { reload_verification_timeout: std::time::Duration::from_millis(200), ..options };
    let (error, result) = error(sync(&target, &again, &options, &CancellationToken::new()).await);
    assert_eq!(error.stage, Stage::ReloadVerification, "{}", error.chain());
    assert!(!result.reload_verified, "nobody has seen another process");
    world.end().await;
}
