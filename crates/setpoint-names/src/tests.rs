//! What holds of all code: nobody else resolves names.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// What asks the C library for names of hosts, users or groups, or would have it asked.
const ASKING: [&str; 12] = [
    "ToSocketAddrs",
    "to_socket_addrs",
    "lookup_host",
    "getaddrinfo",
    "gethostby",
    "HttpConnector::new()",
    "GaiResolver",
    "getpwnam",
    "getgrnam",
    "User::from_name",
    "Group::from_name",
    "reqwest::blocking",
];

/// What connects to a text, which is a name as well as an address: an address is parsed first.
const CONNECTING: [&str; 6] = [
    "::connect(\"",
    "::connect(format!",
    "::connect(&format!",
    "::connect((",
    "::bind(\"localhost",
    "::bind(format!",
];

/// What code does that may have the C library asked, in its order. Tests at the end of a file don't count.
fn asks_the_c_library(text: &str) -> Vec<&'static str> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut found: Vec<_> = ASKING.into_iter().chain(CONNECTING).filter(|word| code.contains(word)).collect();
    let clients =
        code.matches("reqwest::Client::builder()").count() + code.matches("reqwest::Client::new()").count();
    if clients > code.matches(".dns_resolver(").count() {
        found.push("a client of reqwest without a resolver of ours");
    }
    found
}

/// Shows the sources of what people run: all Rust files in `src` folders but those that hold tests alone.
fn sources(folder: &Path, show: &mut dyn FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name() != Some(OsStr::new("tests")) {
                sources(&path, show);
            }
        } else if path.extension() == Some(OsStr::new("rs"))
            && path.file_name() != Some(OsStr::new("tests.rs"))
        {
            show(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn no_code_of_ours_has_the_c_library_resolve_a_name() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut files, mut found) = (0, Vec::new());
    for entry in fs::read_dir(crates).unwrap() {
        let package = entry.unwrap().path();
        // It is in no program of ours.
        if package.ends_with("setpoint-testutils") {
            continue;
        }
        sources(&package.join("src"), &mut |path, text| {
            files += 1;
            let place = path.strip_prefix(crates).unwrap_or(path).display();
            found.extend(asks_the_c_library(text).into_iter().map(|what| format!("{place}: {what}")));
        });
    }
    assert!(files > 300, "the search finds only {files} files");
    // They tell of it.
    found.retain(|place| place != "setpoint-names/src/lib.rs: getaddrinfo");
    assert_eq!(
        found, [""; 0],
        "a static program can't load the modules that answer: ask `setpoint_names` instead"
    );
}

#[test]
fn what_has_the_c_library_resolve_a_name_is_noticed() {
    for (text, found) in [
        ("let found = (host, port).to_socket_addrs()?;", vec!["to_socket_addrs"]),
        ("TcpStream::connect(\"db:80\")", vec!["::connect(\""]),
        ("TcpStream::connect((host.as_str(), 80))", vec!["::connect(("]),
        ("reqwest::Client::builder().build()", vec!["a client of reqwest without a resolver of ours"]),
        ("reqwest::Client::builder().dns_resolver(ours).build()", vec![]),
        ("TcpStream::connect_timeout(&address, limit)", vec![]),
        ("fn f() {}\n#[cfg(test)]\nmod tests {\n    TcpStream::connect(\"db:80\")", vec![]),
    ] {
        assert_eq!(asks_the_c_library(text), found, "{text}");
    }
}
