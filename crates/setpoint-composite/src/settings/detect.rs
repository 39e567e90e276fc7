//! Finds out which cloud this machine is in, by the metadata service that each of them has at the same address.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::CloudProvider;

/// Where clouds have their metadata service.
pub const METADATA: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(169, 254, 169, 254), 80));
/// How long an answer may take: the service is on the machine's own link.
const LIMIT: Duration = Duration::from_secs(1);
/// How much of an answer is read.
const MOST: u64 = 64 * 1024;

/// Asks the metadata service at an address which cloud it is of. Where none answers as a cloud does, it is none.
///
/// Each question takes a second at most.
pub async fn detect_provider(metadata: SocketAddr) -> CloudProvider {
    if is_google(metadata).await {
        CloudProvider::Gke
    } else if is_amazon(metadata).await {
        CloudProvider::Eks
    } else if is_azure(metadata).await {
        CloudProvider::Aks
    } else {
        CloudProvider::OnPrem
    }
}

/// Google says what it is in a header, and is asked for what only a node of its Kubernetes has.
async fn is_google(metadata: SocketAddr) -> bool {
    let path = "/computeMetadata/v1/instance/attributes/cluster-name";
    let answer = ask(metadata, "GET", path, &["Metadata-Flavor: Google"]).await;
    answer.is_some_and(|answer| answer.is_ok() && answer.header("metadata-flavor") == Some("Google"))
}

/// Amazon gives a token first, and takes no question without one where it is set up as it should be.
async fn is_amazon(metadata: SocketAddr) -> bool {
    let seconds = "X-aws-ec2-metadata-token-ttl-seconds: 60";
    let token = ask(metadata, "PUT", "/latest/api/token", &[seconds]).await.filter(Answer::is_ok);
    // What is no token of one word is none, and can't be sent back.
    let token = token.map(|answer| answer.body.trim().to_owned());
    let token = token.filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
    let header = token.map(|token| format!("X-aws-ec2-metadata-token: {token}"));
    let answer = ask(metadata, "GET", "/latest/meta-data/instance-id", header.as_deref().as_slice()).await;
    answer.is_some_and(|answer| answer.is_ok() && answer.body.trim().starts_with("i-"))
}

/// Azure answers with JSON that names the virtual machine.
async fn is_azure(metadata: SocketAddr) -> bool {
    let answer = ask(metadata, "GET", "/metadata/instance?api-version=2021-02-01", &["Metadata: true"]).await;
    let body = answer.filter(Answer::is_ok).map(|answer| answer.body);
    let json = body.and_then(|body| serde_json::from_str::<serde_json::Value>(&body).ok());
    json.is_some_and(|json| json["compute"]["vmId"].is_string())
}

/// An answer to a question.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Answer {
    fn is_ok(&self) -> bool {
        self.status == 200
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    fn parse(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        Some(Self { status, headers: lines.filter_map(header).collect(), body: body.to_owned() })
    }
}

/// Asks once, in clear text and never through a proxy, as this service is asked; none if there is no answer in time.
async fn ask(metadata: SocketAddr, method: &str, path: &str, headers: &[impl AsRef<str>]) -> Option<Answer> {
    let asked = async {
        let mut stream = TcpStream::connect(metadata).await.ok()?;
        // By the older version of the protocol the answer comes whole, and its end is that of the connection.
        let mut request =
            format!("{method} {path} HTTP/1.0\r\nHost: {}\r\nContent-Length: 0\r\n", metadata.ip());
        for header in headers {
            request += header.as_ref();
            request += "\r\n";
        }
        request += "\r\n";
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut text = Vec::new();
        stream.take(MOST).read_to_end(&mut text).await.ok()?;
        Answer::parse(&String::from_utf8_lossy(&text))
    };
    timeout(LIMIT, asked).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio::task::JoinSet;

    use super::*;

    /// A metadata service that answers by the first line and the headers of a request.
    struct Metadata {
        address: SocketAddr,
        _task: JoinSet<()>,
    }

    impl Metadata {
        async fn start(answer: fn(&str) -> String) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let mut task = JoinSet::new();
            task.spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    let mut head = [0; 2048];
                    let length = stream.read(&mut head).await.unwrap_or(0);
                    let answer = answer(&String::from_utf8_lossy(&head[..length]));
                    if answer.is_empty() {
                        // It never answers, and holds on.
                        std::mem::forget(stream);
                        continue;
                    }
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
            Self { address, _task: task }
        }
    }

    async fn detected(answer: fn(&str) -> String) -> CloudProvider {
        let metadata = Metadata::start(answer).await;
        detect_provider(metadata.address).await
    }

    fn ok(headers: &str, body: &str) -> String {
        format!("HTTP/1.0 200 OK\r\n{headers}\r\n{body}")
    }

    fn not_found() -> String {
        "HTTP/1.0 404 Not Found\r\n\r\n".to_owned()
    }

    // The cases of CloudProviderDetector upstream, by their meaning.

    #[tokio::test]
    async fn google_is_known_by_its_header() {
        let provider = detected(|request| {
            let asked = request.starts_with("GET /computeMetadata/v1/")
                && request.contains("Metadata-Flavor: Google");
            if asked { ok("Metadata-Flavor: Google\r\n", "shop") } else { not_found() }
        });
        assert_eq!(provider.await, CloudProvider::Gke);
    }

    #[tokio::test]
    async fn an_answer_without_the_header_is_not_googles() {
        assert_eq!(detected(|_| ok("", "anything")).await, CloudProvider::OnPrem);
    }

    #[tokio::test]
    async fn a_machine_of_google_without_its_kubernetes_is_none() {
        let provider = detected(|_| "HTTP/1.0 404 Not Found\r\nMetadata-Flavor: Google\r\n\r\n".to_owned());
        assert_eq!(provider.await, CloudProvider::OnPrem);
    }

    #[tokio::test]
    async fn amazon_is_asked_with_the_token_that_it_gave() {
        let provider = detected(|request| {
            if request.starts_with("PUT /latest/api/token ") && request.contains("ttl-seconds: 60") {
                ok("", "secret")
            } else if request.contains("/latest/meta-data/")
                && request.contains("X-aws-ec2-metadata-token: secret\r\n")
            {
                ok("", "i-0123456789")
            } else {
                not_found()
            }
        });
        assert_eq!(provider.await, CloudProvider::Eks);
    }

    #[tokio::test]
    async fn amazon_may_still_answer_without_a_token() {
        let provider = detected(|request| {
            if request.starts_with("GET /latest/meta-data/instance-id ") {
                ok("", "i-1")
            } else {
                not_found()
            }
        });
        assert_eq!(provider.await, CloudProvider::Eks);
    }

    #[tokio::test]
    async fn a_token_that_is_more_than_a_word_is_not_sent_back() {
        let provider = detected(|request| {
            assert!(!request.contains("Injected"), "{request}");
            if request.starts_with("PUT ") { ok("", "a\r\nInjected: b") } else { not_found() }
        });
        assert_eq!(provider.await, CloudProvider::OnPrem);
    }

    #[tokio::test]
    async fn azure_is_known_by_the_machine_that_it_names() {
        let provider = detected(|request| {
            let asked = request.starts_with("GET /metadata/instance?") && request.contains("Metadata: true");
            if asked { ok("", r#"{"compute": {"vmId": "1"}}"#) } else { not_found() }
        });
        assert_eq!(provider.await, CloudProvider::Aks);
    }

    #[tokio::test]
    async fn other_json_is_not_azures() {
        assert_eq!(detected(|_| ok("", r#"{"compute": {}}"#)).await, CloudProvider::OnPrem);
    }

    #[tokio::test]
    async fn nobody_who_answers_is_no_cloud() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert_eq!(detect_provider(address).await, CloudProvider::OnPrem);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_never_comes_is_given_up() {
        let began = tokio::time::Instant::now();
        assert_eq!(detected(|_| String::new()).await, CloudProvider::OnPrem);
        assert!(began.elapsed() <= LIMIT * 5, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn what_is_no_http_and_errors_are_no_cloud() {
        assert_eq!(detected(|_| "SSH-2.0-x\r\n\r\n".to_owned()).await, CloudProvider::OnPrem);
        assert_eq!(detected(|_| "HTTP/1.0 500 No\r\n\r\n".to_owned()).await, CloudProvider::OnPrem);
    }
}
