//! Lookups by files of the test's own, and by a name server that knows two names.

use tokio::net::UdpSocket;

use super::*;

/// Files in a folder of the test's own.
struct Files(tempfile::TempDir);

impl Files {
    fn new(hosts: Option<&str>, servers: Option<&str>) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        for (name, text) in [("hosts", hosts), ("resolv.conf", servers)] {
            if let Some(text) = text {
                files.write(name, text);
            }
        }
        files
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    fn resolver(&self, port: Option<u16>) -> Resolver {
        Resolver::with_files(self.0.path().join("hosts"), self.0.path().join("resolv.conf"), port)
    }
}

/// A name server on the loopback interface, and its port. Its names are `consul.test` and `api.svc.test`; of all
/// others it says that there are none.
async fn name_server() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut buffer = [0; 512];
        while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
            socket.send_to(&answer(&buffer[..length]), client).await.unwrap();
        }
    });
    port
}

/// The answer to a query: its header and question, and an address where the name and the type have one.
fn answer(query: &[u8]) -> Vec<u8> {
    const A: u16 = 1;
    let (mut end, mut name) = (12, Vec::new());
    while query[end] != 0 {
        let label = &query[end + 1..=end + usize::from(query[end])];
        name.push(String::from_utf8_lossy(label).to_ascii_lowercase());
        end += label.len() + 1;
    }
    let kind = u16::from_be_bytes([query[end + 1], query[end + 2]]);
    let known = match name.join(".").as_str() {
        "consul.test" => Some([192, 0, 2, 1]),
        "api.svc.test" => Some([192, 0, 2, 2]),
        _ => None,
    };
    let address = known.filter(|_| kind == A);
    let mut reply = query[..2].to_vec();
    // A response, recursion available; whether the name is there; one question, and perhaps one answer.
    let status = if known.is_some() { 0x80 } else { 0x83 };
    reply.extend([0x81, status, 0, 1, 0, u8::from(address.is_some()), 0, 0, 0, 0]);
    reply.extend(&query[12..end + 5]);
    if let Some(address) = address {
        // The name of the question, an address of the Internet, for a minute, of four bytes.
        reply.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        reply.extend(address);
    }
    reply
}

fn addresses(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_name_in_the_hosts_file_is_found_without_asking_a_name_server() {
    let hosts =
        "# ours\n192.0.2.7 Consul consul.test # alias\n2001:db8::7\tconsul\n192.0.2.7 consul\nodd consul\n";
    let files = Files::new(Some(hosts), Some("nameserver 192.0.2.53\nsearch example.test\n"));
    let resolver = files.resolver(None);
    // No server answers at that address.
    assert_eq!(resolver.lookup("consul").await.unwrap(), addresses(&["192.0.2.7", "2001:db8::7"]));
    assert_eq!(resolver.lookup("CONSUL.test.").await.unwrap(), addresses(&["192.0.2.7"]));
}

#[tokio::test]
async fn localhost_is_found_without_any_file() {
    let resolver = Files::new(None, None).resolver(None);
    for name in ["localhost", "LocalHost.", "consul.localhost"] {
        assert_eq!(resolver.lookup(name).await.unwrap(), addresses(&["127.0.0.1", "::1"]), "{name}");
    }
    let files = Files::new(Some("127.0.0.9 localhost\n"), None);
    assert_eq!(files.resolver(None).lookup("localhost").await.unwrap(), addresses(&["127.0.0.9"]));
}

#[tokio::test]
async fn other_names_are_asked_of_the_name_server_with_the_search_list() {
    let port = name_server().await;
    let files = Files::new(None, Some("search other.test svc.test\nnameserver 127.0.0.1\noptions ndots:2\n"));
    let resolver = files.resolver(Some(port));
    assert_eq!(resolver.lookup("consul.test").await.unwrap(), addresses(&["192.0.2.1"]));
    assert_eq!(resolver.lookup("api").await.unwrap(), addresses(&["192.0.2.2"]));
    let error = resolver.lookup("nobody.test").await.unwrap_err();
    assert_eq!(error.to_string(), "no name server knows nobody.test");
}

#[tokio::test]
async fn without_a_name_server_in_the_file_this_host_is_asked() {
    let port = name_server().await;
    for servers in [None, Some("search svc.test\n")] {
        let resolver = Files::new(None, servers).resolver(Some(port));
        assert_eq!(resolver.lookup("consul.test").await.unwrap(), addresses(&["192.0.2.1"]), "{servers:?}");
    }
}

#[tokio::test]
async fn a_change_of_the_files_counts_from_the_next_lookup_on() {
    let port = name_server().await;
    let files = Files::new(Some(""), Some("nameserver 127.0.0.1\n"));
    let resolver = files.resolver(Some(port));
    assert!(resolver.lookup("api").await.is_err());
    files.write("resolv.conf", "nameserver 127.0.0.1\nsearch svc.test\n");
    assert_eq!(resolver.lookup("api").await.unwrap(), addresses(&["192.0.2.2"]));
    files.write("hosts", "192.0.2.9 api\n");
    assert_eq!(resolver.lookup("api").await.unwrap(), addresses(&["192.0.2.9"]));
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_named() {
    let files = Files::new(None, None);
    std::fs::create_dir(files.0.path().join("hosts")).unwrap();
    let error = files.resolver(None).lookup("consul").await.unwrap_err();
    assert!(error.to_string().contains("hosts"), "{error}");
}
