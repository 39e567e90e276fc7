//! A client of the API, as small as can be: each call on a connection of its own.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A client of one API, without a password: nobody else may connect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
}

/// A call, and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The command that does the same by hand.
    pub(super) command: String,
    pub(super) status: u16,
    pub(super) took: Duration,
    /// The reload that follows, if one does.
    pub(super) reload: Option<String>,
    pub(super) body: Json,
}

impl Client {
    /// Calls the API. A body that is a text is sent as it is, any other as JSON.
    pub(super) async fn call(self, method: &str, path: &str, body: Option<Json>) -> io::Result<Call> {
        let path = format!("/v3/services/haproxy/{path}");
        let (kind, text) = match &body {
            Some(Json::String(text)) => ("text/plain", text.clone()),
            Some(json) => ("application/json", json.to_string()),
            None => ("application/json", String::new()),
        };
        let begun = Instant::now();
        let mut stream = TcpStream::connect(self.address).await?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            self.address,
            text.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(text.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let took = begun.elapsed();
        let wrong = || io::Error::other(format!("the API answered {answer:?}"));
        let (head, content) = answer.split_once("\r\n\r\n").ok_or_else(wrong)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(wrong)?;
        let reload = head.lines().find_map(|line| line.strip_prefix("reload-id: ").map(str::to_owned));
        let shown = match &body {
            None => String::new(),
            Some(Json::String(_)) => format!(" -H 'content-type: {kind}' --data-binary @haproxy.cfg"),
            Some(json) => format!(" -H 'content-type: {kind}' -d '{json}'"),
        };
        let command = format!("curl -X {method} 'http://{}{path}'{shown}", self.address);
        let body = serde_json::from_str(content).unwrap_or_else(|_| Json::from(content));
        Ok(Call { command, status, took, reload, body })
    }
}
