//! Plain HTTP to a part on this machine.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;

/// How long a request may take: what a busy machine needs, and less than the limit of whoever asks again.
const ANSWER_WITHIN: Duration = Duration::from_mins(2);

/// A client for parts on this machine: no proxy from the environment, and a limit on every request.
///
/// It is made once: the authorities that it could trust are read for that, which takes longer than most requests. It keeps no
/// connection, as one would end with the runtime of the test that opened it.
pub fn client() -> reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(|| {
        reqwest::Client::builder()
            .no_proxy()
            .timeout(ANSWER_WITHIN)
            .pool_max_idle_per_host(0)
            .build()
            .expect("an HTTP client without TLS can always be made")
    });
    CLIENT.clone()
}

/// Whether a GET is answered with success.
pub async fn answers(url: &str) -> bool {
    get(url).await.is_some()
}

/// The body of a GET that is answered with success.
pub async fn get(url: &str) -> Option<String> {
    let response = client().get(url).send().await.ok()?.error_for_status().ok()?;
    response.text().await.ok()
}

/// Posts JSON and returns the JSON that comes back.
pub async fn post_json(url: &str, body: &Value) -> Result<Value, reqwest::Error> {
    client().post(url).json(body).send().await?.error_for_status()?.json().await
}
