//! The five kinds of files, and what becomes of them where a sync fails.

use std::collections::BTreeMap;

use setpoint_dataplane::error::Stage;
use setpoint_dataplane::files::{AuxiliaryFiles, Files};
use setpoint_dataplane::sync::{Desired, sync};
use setpoint_dataplane_api::Dialect;
use setpoint_testutils::need;
use tokio_util::sync::CancellationToken;

use crate::sync::{TEXT, error, files, options, world};

#[tokio::test]
async fn crt_list_delete_entries_cleared() {
    let (world, target) = need!(world(Dialect::default()).await);
    let with = |general: &[(&str, &str)], lists: Option<&[(&str, &str)]>| AuxiliaryFiles {
        general: Some(files(general)),
        crt_lists: lists.map(files),
        ..AuxiliaryFiles::default()
    };
    let bring = async |files: AuxiliaryFiles| {
        let desired = Desired { text: world.text(TEXT).into_bytes(), files };
        sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap().applied_files
    };
    bring(with(&[("a.http", "HTTP/1.0 503 no\r\n\r\n")], Some(&[("list.txt", "site.pem\n")]))).await;
    target.calls();
    // Whoever manages general files alone leaves lists alone.
    assert_eq!(bring(with(&[], None)).await, ["- file a.http"]);
    assert!(world.path("general/list.txt").exists());
    assert_eq!(bring(with(&[], Some(&[]))).await, ["- file list.txt"]);
    assert_eq!(target.count("delete_file"), 2, "each was deleted once");
    world.end().await;
}

#[tokio::test]
async fn authorities_come_before_other_files_and_each_kind_deletes_its_own() {
    let (world, target) = need!(world(Dialect::default()).await);
    let authority = setpoint_testutils::certificates::Authority::new().certificate();
    let mut all = AuxiliaryFiles {
        maps: Some(files(&[("hosts.map", "a b\n")])),
        general: Some(files(&[("a.http", "HTTP/1.0 503 no\r\n\r\n")])),
        ca_files: Some(files(&[("z-ca.pem", &authority)])),
        ..AuxiliaryFiles::default()
    };
    let bring = async |files: &AuxiliaryFiles| {
        let desired = Desired { text: world.text(TEXT).into_bytes(), files: files.clone() };
        sync(&target, &desired, &options(), &CancellationToken::new()).await.unwrap().applied_files
    };
    bring(&all).await;
    let calls = target.calls();
    let at = |call: &str| calls.iter().position(|noted| noted == call).unwrap();
    assert!(at("created file z-ca.pem") < at("create_file map hosts.map"), "{calls:?}");
    assert!(at("created file z-ca.pem") < at("create_file file a.http"), "{calls:?}");
    assert_eq!(bring(&all).await, Vec::<String>::new());
    // A kind that nobody manages any more is left alone, and one that is empty goes.
    let none = AuxiliaryFiles { general: Some(Files::new()), ..AuxiliaryFiles::default() };
    assert_eq!(bring(&none).await, ["- file a.http"]);
    let general = AuxiliaryFiles { general: Some(files(&[("b.http", "x")])), ..AuxiliaryFiles::default() };
    assert_eq!(bring(&general).await, ["+ file b.http"]);
    (all.general, all.maps, all.ca_files) = (None, None, Some(Files::new()));
    assert_eq!(bring(&all).await, ["- file z-ca.pem"]);
    assert!(world.path("general/b.http").exists());
    world.end().await;
}

#[tokio::test]
async fn a_sync_that_fails_after_it_replaced_a_certificate_says_which() {
    let (world, target) = need!(world(Dialect::default()).await);
    let certificate = || {
        let made = setpoint_testutils::certificates::Authority::new().server();
        Some(BTreeMap::from([("site.pem".to_owned(), (made.certificate + &made.key).into_bytes())]))
    };
    let desired = |text: &str| Desired {
        text: world.text(text).into_bytes(),
        files: AuxiliaryFiles { certificates: certificate(), ..AuxiliaryFiles::default() },
    };
    sync(&target, &desired(TEXT), &options(), &CancellationToken::new()).await.unwrap();
    let wrong = desired(&TEXT.replace("default_backend app", "default_backend nowhere"));
    let (error, result) = error(sync(&target, &wrong, &options(), &CancellationToken::new()).await);
    assert_eq!(result.not_restorable, ["~ certificate site.pem"]);
    assert!(
        error.hints.iter().any(|hint| hint.starts_with("certificate site.pem: replaced")),
        "{:?}",
        error.hints
    );
    world.end().await;
}

#[tokio::test]
async fn a_reload_that_fails_deletes_no_file() {
    let (world, target) = need!(world(Dialect::default()).await);
    std::fs::write(world.path("maps/old.map"), "a b\n").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!("{TEXT}\nfrontend more\n  bind {}\n", taken.local_addr().unwrap());
    let files = AuxiliaryFiles { maps: Some(Files::new()), ..AuxiliaryFiles::default() };
    let desired = Desired { text: world.text(&text).into_bytes(), files };
    let (error, _) = error(sync(&target, &desired, &options(), &CancellationToken::new()).await);
    assert_eq!(error.stage, Stage::ReloadVerification, "{}", error.chain());
    assert!(world.path("maps/old.map").exists());
    world.end().await;
}
