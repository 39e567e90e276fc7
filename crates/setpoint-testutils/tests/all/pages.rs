//! Graphviz draws, and the browser opens pages.

use serde_json::json;
use setpoint_testutils::{Backend, Browser, Driver, graphviz, http, need};

const PAGE: &str =
    "<p id='a'></p><script>document.getElementById('a').textContent = 'made by ' + (40 + 2)</script>";

#[test]
fn graphviz_draws_a_graph_and_refuses_what_is_none() {
    let picture = need!(graphviz::svg("digraph { \"a b\" -> c }")).unwrap();
    assert!(picture.contains("<svg") && picture.contains("a b"), "{picture}");
    let complaint = need!(graphviz::svg("digraph { a -> ")).unwrap_err();
    assert!(complaint.contains("syntax error"), "{complaint}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_browser_runs_a_pages_script_and_takes_its_picture() {
    let browser = need!(Browser::find());
    let backend = Backend::start_html(PAGE).await;
    let url = format!("http://{}/", backend.address());
    let elements = browser.elements(&url).await;
    assert!(elements.contains("made by 42"), "{elements}");
    let picture = browser.screenshot(&url, 300, 200).await;
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 500);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_driver_opens_a_page_and_reads_its_text() {
    let driver = need!(Driver::start().await);
    let backend = Backend::start_html(PAGE).await;
    let options = json!({
        "binary": driver.browser().program(),
        "args": setpoint_testutils::browser::ARGUMENTS,
    });
    let capabilities = json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
    let session = http::post_json(&format!("{}/session", driver.url()), &capabilities).await.unwrap();
    let session = format!("{}/session/{}", driver.url(), session["value"]["sessionId"].as_str().unwrap());
    let page = json!({ "url": format!("http://{}/", backend.address()) });
    http::post_json(&format!("{session}/url"), &page).await.unwrap();
    let script = json!({ "script": "return document.getElementById('a').textContent", "args": [] });
    let text = http::post_json(&format!("{session}/execute/sync"), &script).await.unwrap();
    assert_eq!(text["value"], "made by 42");
    http::client().delete(&session).send().await.unwrap().error_for_status().unwrap();
}
