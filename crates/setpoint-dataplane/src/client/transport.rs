//! Calls and answers over HTTP.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::multipart::{Form, Part};
use reqwest::{Certificate, Identity, Method, Url};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tokio::sync::Semaphore;

use super::answer::{Answer, ApiError};
use super::settings::{Credentials, Secret, Settings, SettingsError};
use crate::error::{ConnectionError, causes};

/// The path that all calls share.
const BASE: &str = "v3";

/// After what time an API is asked again that takes no more, and does not say after what time.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    method: Method,
    /// Below `/v3`, each part as it is meant.
    path: Vec<String>,
    query: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    Empty,
    Json(Json),
    Text(Vec<u8>),
    /// A file of this name, in the field that the API reads.
    File(String, Vec<u8>),
}

impl Call {
    /// A call of a path below `/v3`, whose parts need no escaping.
    pub(super) fn new(method: Method, path: &str) -> Self {
        let path = path.split('/').map(str::to_owned).collect();
        Self { method, path, query: Vec::new(), headers: Vec::new(), body: Body::Empty }
    }

    pub(super) fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    pub(super) fn post(path: &str) -> Self {
        Self::new(Method::POST, path)
    }

    pub(super) fn put(path: &str) -> Self {
        Self::new(Method::PUT, path)
    }

    pub(super) fn delete(path: &str) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// Adds a part to the path: a name, whatever it holds.
    pub(super) fn part(mut self, name: &str) -> Self {
        self.path.push(name.to_owned());
        self
    }

    pub(super) fn query(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.query.push((name, format!("{value}")));
        self
    }

    pub(super) fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(super) fn json(mut self, body: Json) -> Self {
        self.body = Body::Json(body);
        self
    }

    pub(super) fn text(mut self, body: Vec<u8>) -> Self {
        self.body = Body::Text(body);
        self
    }

    pub(super) fn file(mut self, name: &str, bytes: Vec<u8>) -> Self {
        self.body = Body::File(name.to_owned(), bytes);
        self
    }
}

/// How it is called in errors.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.join("/");
        write!(f, "{} {}", self.method, path.trim_start_matches("services/haproxy/"))?;
        for (number, (name, value)) in self.query.iter().enumerate() {
            let sign = if number == 0 { '?' } else { '&' };
            write!(f, "{sign}{name}={value}")?;
        }
        Ok(())
    }
}

/// Connections to one API.
#[derive(Debug)]
pub(super) struct Transport {
    http: reqwest::Client,
    base: Url,
    endpoint: String,
    credentials: Option<Credentials>,
    timeout: Duration,
    longest_answer: usize,
    /// One permit for each call that may be under way.
    turns: Semaphore,
}

impl Transport {
    pub(super) fn new(settings: Settings) -> Result<Self, SettingsError> {
        let (base, endpoint, in_url) = address(&settings.url)?;
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .dns_resolver(setpoint_names::Resolver::default())
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(settings.connect_timeout)
            // A peer that is gone without a word is found long before a call's own limit.
            .tcp_keepalive(Duration::from_secs(15));
        if let Some(socket) = &settings.socket {
            builder = builder.unix_socket(socket.as_path());
        }
        let wrong = |error: reqwest::Error| SettingsError::Tls(error.without_url().to_string());
        if let Some(pem) = &settings.tls.authorities {
            let found = Certificate::from_pem_bundle(pem).map_err(wrong)?;
            if found.is_empty() {
                return Err(SettingsError::Tls("there is no certificate of an authority".to_owned()));
            }
            builder = builder.tls_certs_only(found);
        } else if base.scheme() == "http" {
            // The authorities of the system are not even looked for.
            builder = builder.tls_certs_only([]);
        }
        if let Some(pem) = &settings.tls.identity {
            builder = builder.identity(Identity::from_pem(pem).map_err(wrong)?);
        }
        let http = builder.build().map_err(wrong)?;
        let credentials = in_url.or(settings.credentials);
        let Settings { name, timeout, longest_answer, most_calls, .. } = settings;
        let endpoint = name.unwrap_or(endpoint);
        let turns = Semaphore::new(most_calls.clamp(1, Semaphore::MAX_PERMITS));
        Ok(Self { http, base, endpoint, credentials, timeout, longest_answer, turns })
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Makes a call. An answer with another status than these is an error. An API that takes no more has done nothing: it is asked
    /// again, for as long as an answer may take.
    pub(super) async fn call(&self, call: Call, expected: &[u16]) -> Result<Answer, ApiError> {
        let mut waited = Duration::ZERO;
        loop {
            let error = match self.call_once(call.clone(), expected).await {
                Err(error @ ApiError::Overloaded { .. }) => error,
                answered => return answered,
            };
            let ApiError::Overloaded { retry_after, .. } = &error else { return Err(error) };
            let pause = retry_after.unwrap_or(ASK_AGAIN);
            waited += pause;
            if waited > self.timeout {
                return Err(error);
            }
            tracing::info!(endpoint = self.endpoint, %error, ?pause, "the API takes no more: it is asked again");
            tokio::time::sleep(pause).await;
        }
    }

    async fn call_once(&self, call: Call, expected: &[u16]) -> Result<Answer, ApiError> {
        let name = call.to_string();
        let late = |call| ApiError::Timeout { endpoint: self.endpoint.clone(), call, within: self.timeout };
        // Nobody closes it. Who waits for others is not late.
        let _turn = self.turns.acquire().await;
        match tokio::time::timeout(self.timeout, self.exchange(call)).await {
            Err(_) => Err(late(name)),
            Ok(Err(Broken::Http(error))) if error.is_timeout() => Err(late(name)),
            Ok(Err(broken)) => Err(self.error(name, broken)),
            Ok(Ok(answer)) if expected.contains(&answer.status) => {
                for warning in &answer.warnings {
                    let warning = self.without_credentials(warning.clone().into_bytes());
                    let warning = String::from_utf8_lossy(&warning);
                    tracing::warn!(endpoint = self.endpoint, call = name, %warning, "the API has a remark");
                }
                Ok(answer)
            }
            Ok(Ok(mut answer)) => {
                answer.body = self.without_credentials(answer.body);
                Err(ApiError::of(name, &answer))
            }
        }
    }

    /// What a peer says, without the credentials that it was sent: one that repeats them does not bring them into an error.
    fn without_credentials(&self, body: Vec<u8>) -> Vec<u8> {
        let Some((user, password)) = &self.credentials else { return body };
        let sent = STANDARD.encode(format!("{user}:{}", password.expose()));
        let text = String::from_utf8_lossy(&body).replace(&sent, "***");
        match password.expose() {
            "" => text.into_bytes(),
            password => text.replace(password, "***").into_bytes(),
        }
    }

    /// Makes a call whose answer is JSON.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        call: Call,
        expected: &[u16],
    ) -> Result<(T, Answer), ApiError> {
        let name = call.to_string();
        let answer = self.call(call, expected).await?;
        match serde_json::from_slice(&answer.body) {
            Ok(value) => Ok((value, answer)),
            Err(error) => Err(ApiError::Malformed { call: name, why: error.to_string() }),
        }
    }

    async fn exchange(&self, call: Call) -> Result<Answer, Broken> {
        // Such a part would be left out, and another thing be meant.
        if let Some(part) = call.path.iter().find(|part| matches!(part.as_str(), "" | "." | "..")) {
            return Err(Broken::Unnameable(part.clone()));
        }
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push(BASE).extend(&call.path);
        }
        if !call.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&call.query);
        }
        let mut request = self.http.request(call.method, url).timeout(self.timeout);
        if let Some((user, password)) = &self.credentials {
            request = request.basic_auth(user, Some(password.expose()));
        }
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        request = match call.body {
            Body::Empty => request,
            Body::Json(json) => request.json(&json),
            Body::Text(text) => request.header("content-type", "text/plain").body(text),
            Body::File(name, bytes) => {
                let part = Part::bytes(bytes).file_name(name).mime_str("application/octet-stream")?;
                request.multipart(Form::new().part("file_upload", part))
            }
        };
        let mut response = request.send().await?;
        let headers = response.headers();
        let mut answer = Answer {
            status: response.status().as_u16(),
            version: text(headers, "configuration-version").and_then(|text| text.parse().ok()),
            reload_id: text(headers, "reload-id").filter(|id| !id.is_empty()).map(str::to_owned),
            warnings: headers
                .get_all("warning")
                .iter()
                .filter_map(|value| value.to_str().ok())
                .map(str::to_owned)
                .collect(),
            retry_after: text(headers, "retry-after")
                .and_then(|text| text.parse().ok())
                .map(Duration::from_secs),
            body: Vec::new(),
        };
        while let Some(chunk) = response.chunk().await? {
            if answer.body.len() + chunk.len() > self.longest_answer {
                return Err(Broken::TooLong);
            }
            answer.body.extend_from_slice(&chunk);
        }
        Ok(answer)
    }

    /// What it means that an exchange was not completed.
    fn error(&self, call: String, broken: Broken) -> ApiError {
        let error = match broken {
            Broken::Http(error) => error.without_url(),
            Broken::TooLong => {
                let why = format!("it is longer than {} bytes", self.longest_answer);
                return ApiError::Malformed { call, why };
            }
            Broken::Unnameable(name) => return ApiError::Unnameable { call, name },
        };
        // Who reads it wants to know what lies at the bottom.
        let root = causes(&error).last().map(ToString::to_string);
        let cause: crate::error::Cause = match root {
            Some(root) => root.into(),
            None => Box::new(error),
        };
        ConnectionError::new(&self.endpoint, cause).into()
    }
}

/// Why an exchange was not completed.
#[derive(Debug)]
enum Broken {
    Http(reqwest::Error),
    /// The answer is longer than is read.
    TooLong,
    /// A part of the path that no path can have.
    Unnameable(String),
}

impl From<reqwest::Error> for Broken {
    fn from(error: reqwest::Error) -> Self {
        Self::Http(error)
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Takes an address apart: what calls begin with, what is shown of it, and the credentials in it.
fn address(url: &str) -> Result<(Url, String, Option<Credentials>), SettingsError> {
    // Whatever is wrong, a password in it is not shown.
    let shown = || match url.rsplit_once('@') {
        Some((before, host)) => {
            format!(
                "{}{host}",
                before.split_once("://").map(|(scheme, _)| format!("{scheme}://")).unwrap_or_default()
            )
        }
        None => url.to_owned(),
    };
    let wrong = |why: &str| SettingsError::Url { url: shown(), why: why.to_owned() };
    let mut base = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(wrong("it has to begin with http:// or https://"));
    }
    if base.host_str().is_none() {
        return Err(wrong("it names no host"));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(wrong("there is something behind its path"));
    }
    let credentials = (!base.username().is_empty()).then(|| {
        let decoded = |text: &str| percent_decoded(text);
        (decoded(base.username()), Secret::new(decoded(base.password().unwrap_or_default())))
    });
    // These can't fail where there is a host.
    let _ = (base.set_username(""), base.set_password(None));
    let path = base.path().trim_end_matches('/').trim_end_matches("/v3").to_owned();
    base.set_path(&path);
    let endpoint = base.as_str().trim_end_matches('/').to_owned();
    Ok((base, endpoint, credentials))
}

/// Reads `%40` as `@`.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.filter(|_| *first == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart_and_its_password_is_not_shown() {
        let (base, endpoint, credentials) =
            address("https://admin:p%40ss@haproxy.test:5555/api/v3/").unwrap();
        assert_eq!(
            (base.as_str(), endpoint.as_str()),
            ("https://haproxy.test:5555/api", "https://haproxy.test:5555/api")
        );
        let (user, password) = credentials.unwrap();
        assert_eq!((user.as_str(), password.expose()), ("admin", "p@ss"));
        assert_eq!(format!("{password:?}"), "***");
        for url in
            ["ftp://admin:geheim@h", "http://admin:geheim@", "http://admin:geheim@h/?x", "admin:geheim@h"]
        {
            let error = address(url).unwrap_err().to_string();
            assert!(!error.contains("geheim"), "{error}");
        }
    }

    #[test]
    fn a_peer_that_repeats_what_it_was_sent_brings_no_credentials_into_an_error() {
        let settings = Settings::new("http://127.0.0.1:1").with_credentials("admin", "geheim");
        let transport = Transport::new(settings).unwrap();
        let body = b"authorization: Basic YWRtaW46Z2VoZWlt\r\npassword geheim".to_vec();
        let shown = String::from_utf8(transport.without_credentials(body)).unwrap();
        assert_eq!(shown, "authorization: Basic ***\r\npassword ***");
    }

    #[test]
    fn names_are_one_part_of_a_path_whatever_they_hold() {
        let mut url = Url::parse("http://h").unwrap();
        url.path_segments_mut()
            .unwrap()
            .pop_if_empty()
            .push(BASE)
            .extend(&Call::get("a/b").part("x/../y %?#").path);
        assert_eq!(url.as_str(), "http://h/v3/a/b/x%2F..%2Fy%20%25%3F%23");
    }
}
