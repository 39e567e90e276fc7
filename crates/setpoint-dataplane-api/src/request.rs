//! A request, taken apart.

use std::sync::OnceLock;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};

use crate::answer::Problem;
use crate::dialect::Dialect;

/// A request, whole.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// The path as it was sent.
    pub(crate) path: String,
    /// What stands behind the path, as it was sent.
    pub(crate) query_text: String,
    query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    pub(crate) dialect: Dialect,
    /// Who asks, or why nobody knows.
    pub(crate) user: Result<String, Problem>,
    /// The name of the request in logs.
    pub(crate) id: String,
    /// The version of the configuration that was looked at for it.
    pub(crate) version: OnceLock<u64>,
}

impl Request {
    pub(crate) fn new(
        parts: Parts,
        body: Vec<u8>,
        dialect: Dialect,
        user: Result<String, Problem>,
        id: &HeaderValue,
    ) -> Self {
        let query_text = parts.uri.query().unwrap_or_default().to_owned();
        let pairs = query_text.split('&').filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
        });
        Self {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            query: query.collect(),
            query_text,
            headers: parts.headers,
            body,
            dialect,
            user,
            id: id.to_str().unwrap_or_default().to_owned(),
            version: OnceLock::new(),
        }
    }

    /// The parts of the path, decoded.
    pub(crate) fn segments(&self) -> Vec<String> {
        let path = self.path.trim_start_matches('/');
        path.strip_suffix('/').unwrap_or(path).split('/').map(decoded).collect()
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(held, _)| held == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that has to be there.
    pub(crate) fn required(&self, name: &str) -> Result<&str, Problem> {
        self.query(name).filter(|value| !value.is_empty()).ok_or_else(|| {
            if self.dialect.is_new() {
                Problem::new(400, format!("Query argument {name} is required, but not found"))
            } else {
                Problem::new(422, format!("{name} in query is required")).coded(602)
            }
        })
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.query(name) {
            None | Some("" | "false" | "0" | "f" | "F" | "False" | "FALSE") => Ok(false),
            Some("true" | "1" | "t" | "T" | "True" | "TRUE") => Ok(true),
            Some(other) => Err(self.malformed(name, "bool", other)),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Problem> {
        self.query(name)
            .map(|value| value.parse().map_err(|_| self.malformed(name, "int64", value)))
            .transpose()
    }

    fn malformed(&self, name: &str, needed: &str, found: &str) -> Problem {
        if self.dialect.is_new() {
            let function = if needed == "bool" { "ParseBool" } else { "ParseInt" };
            Problem::new(
                400,
                format!(
                    "Invalid format for parameter {name}: error binding string parameter: strconv.{function}: parsing {found:?}: invalid syntax"
                ),
            )
        } else {
            Problem::new(422, format!("{name} in query must be of type {needed}: {found:?}")).coded(601)
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The media type of the body, without its parameters.
    fn media_type(&self) -> &str {
        self.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default().trim()
    }

    /// Refuses a body of another type. The old dialects read JSON wherever they read anything.
    pub(crate) fn expects(&self, kinds: &[&str]) -> Result<(), Problem> {
        let found = self.media_type();
        if kinds.contains(&found) {
            return Ok(());
        }
        Err(if self.dialect.is_new() {
            let sent = self.header("content-type").unwrap_or_default();
            Problem::new(415, format!("header Content-Type has unexpected value {sent:?}"))
        } else {
            let found = if found.is_empty() { "application/octet-stream" } else { found };
            let kinds = kinds.join(" ");
            Problem::new(415, format!("unsupported media type {found:?}, only [{kinds}] are allowed"))
        })
    }

    /// Refuses a body that is not there.
    pub(crate) fn has_body(&self) -> Result<(), Problem> {
        if !self.body.is_empty() {
            return Ok(());
        }
        Err(if self.dialect.is_new() {
            Problem::new(400, "value is required but missing")
        } else {
            Problem::new(422, "data in body is required").coded(602)
        })
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Result<serde_json::Value, Problem> {
        self.expects(&["application/json"])?;
        self.has_body()?;
        serde_json::from_slice(&self.body).map_err(|error| {
            let before = if self.dialect.is_new() {
                "failed to decode request body"
            } else {
                "parsing data body failed"
            };
            Problem::new(400, format!("{before}: {error}"))
        })
    }
}

/// Puts bytes for what stands for them as `%20`.
fn decoded(text: &str) -> String {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        let decoded = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| byte == b'%');
        out.push(decoded.unwrap_or(byte));
        at += if decoded.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_queries_are_decoded_after_they_are_split() {
        let parts = axum::http::Request::get("/v3/a%2Fb/c/?x=1%202&y&z=%zz").body(()).unwrap().into_parts().0;
        let id = HeaderValue::from_static("1");
        let request = Request::new(parts, Vec::new(), Dialect::default(), Ok("admin".to_owned()), &id);
        assert_eq!(request.segments(), ["v3", "a/b", "c"]);
        assert_eq!(
            (request.query("x"), request.query("y"), request.query("z")),
            (Some("1 2"), Some(""), Some("%zz"))
        );
        assert_eq!(request.query("none"), None);
    }
}
