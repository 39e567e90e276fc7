//! A Consul that lies, hangs and refuses, for what a real one can't be made to do.

use std::sync::{Arc, Mutex};

use setpoint_testutils::wait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What a request is answered with.
pub(crate) enum Answer {
    /// A status, headers and a body.
    Say(u16, Vec<(&'static str, String)>, String),
    /// Nothing, until the other side gives up.
    Hang,
}

impl Answer {
    /// A list of keys below `composite/x/structure/`, each as `namespace/attribute=value`, at an index.
    pub(crate) fn list(index: u64, lines: &[&str]) -> Self {
        use base64::Engine as _;
        let pairs: Vec<_> = lines
            .iter()
            .map(|line| {
                let (key, value) = line.split_once('=').expect("a key and a value");
                let value = base64::engine::general_purpose::STANDARD.encode(value);
                serde_json::json!({"Key": format!("composite/x/structure/{key}"), "Value": value, "ModifyIndex": index})
            })
            .collect();
        Self::Say(200, Self::index(index), serde_json::Value::Array(pairs).to_string())
    }

    /// No such key, at an index.
    pub(crate) fn none(index: u64) -> Self {
        Self::Say(404, Self::index(index), String::new())
    }

    pub(crate) fn error(status: u16, body: &str) -> Self {
        Self::Say(status, Vec::new(), body.to_owned())
    }

    pub(crate) fn with(mut self, header: &'static str, value: &str) -> Self {
        if let Self::Say(_, headers, _) = &mut self {
            headers.push((header, value.to_owned()));
        }
        self
    }

    fn index(index: u64) -> Vec<(&'static str, String)> {
        vec![("X-Consul-Index", index.to_string()), ("X-Consul-KnownLeader", "true".to_owned())]
    }
}

/// What was seen of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// Method, path and query.
    pub(crate) line: String,
    /// The token it came with.
    pub(crate) token: Option<String>,
    /// Whether the other side closed the connection while it was waiting.
    pub(crate) aborted: bool,
}

pub(crate) struct Fake {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    _tasks: JoinSet<()>,
}

impl Fake {
    /// Answers each request by its number, from 0, and what it asks for.
    pub(crate) async fn start(answer: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&requests), Arc::new(answer));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&seen), Arc::clone(&answer)));
            }
        });
        Self { url, requests, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Waits until it was asked so often.
    pub(crate) async fn asked(&self, times: usize) {
        let asked = async || (self.requests().len() >= times).then_some(());
        wait::until("it to be asked", wait::LIMIT, asked).await;
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no test panicked with it").clone()
    }

    /// What was asked for, without what comes before the query.
    pub(crate) fn queries(&self) -> Vec<String> {
        let query = |request: Request| request.line.split_once('?').unwrap_or_default().1.to_owned();
        self.requests().into_iter().map(query).collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: Arc<Mutex<Vec<Request>>>,
    answer: Arc<impl Fn(usize, &Request) -> Answer + Send + Sync>,
) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read(&mut byte).await, Ok(1)) {
            return;
        }
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let header = |name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let line = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    let request = Request { line, token: header("x-consul-token"), aborted: false };
    let number = {
        let mut seen = seen.lock().expect("no test panicked with it");
        seen.push(request.clone());
        seen.len() - 1
    };
    match answer(number, &request) {
        Answer::Say(status, headers, body) => {
            let lines: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let headers = lines.concat();
            let length = body.len();
            let text = format!(
                "HTTP/1.1 {status} Said\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(text.as_bytes()).await;
        }
        Answer::Hang => {
            let _ = stream.read(&mut byte).await;
            seen.lock().expect("no test panicked with it")[number].aborted = true;
        }
    }
}
