//! Each Dataplane API that is found changes its HAProxy. `xtask/tests/parts.rs` does the same with a stand-in.

use ::http::Method;
use serde_json::json;
use setpoint_testutils::{Dataplane, dataplane, http, need, wait};

use crate::process_is_gone;

#[tokio::test]
async fn each_one_that_is_found_tells_its_version_and_changes_its_haproxy() {
    for found in need!(dataplane::programs()) {
        let mut api = need!(Dataplane::start(&found).await);
        let info = api.info().await.unwrap();
        let told = info["api"]["version"].as_str().unwrap();
        assert!(told.contains(&found.version), "{found:?} tells {info}");

        let url = format!("{}/info", api.url());
        assert_eq!(http::client().get(url).send().await.unwrap().status(), 401);
        let version = "/services/haproxy/configuration/version";
        let version: u64 = api.request(Method::GET, version).send().await.unwrap().json().await.unwrap();
        let backend = format!("/services/haproxy/configuration/backends?version={version}");
        let answer =
            api.request(Method::POST, &backend).json(&json!({ "name": "added" })).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
        let file = api.haproxy().configuration_file();
        assert!(std::fs::read_to_string(file).unwrap().contains("backend added"));
        let haproxy = api.haproxy();
        wait::until("a reload", wait::LIMIT, async || (haproxy.reloads().await > 0).then_some(())).await;

        api.restart().await;
        api.info().await.unwrap();
        let (folder, id) = (api.folder().to_path_buf(), api.process().id());
        drop(api);
        assert!(!folder.exists());
        process_is_gone(id).await;
    }
}
