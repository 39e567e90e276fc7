//! What the pages about a running HAProxy show is what happens, and the manual names the files that are there.

use std::fs;
use std::process::Command;

use setpoint_testutils::{Missing, Version, http, need};

use crate::shared::{blocks, follow, page, shell};
use crate::{Serving, World};

/// The configuration that the pages begin with.
const EXAMPLE: &str = "docs/examples/haproxy.cfg";

/// What a page says, and what it is in a test: nobody else uses these places.
struct Places(Vec<(&'static str, String)>);

impl Places {
    fn here(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (shown, here)| text.replace(shown, here))
    }

    fn shown(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (shown, here)| text.replace(here, shown))
    }
}

/// Starts what a page starts, on the configuration that it begins with.
fn start(path: &str) -> Result<(World, Serving, Places), Missing> {
    let world = World::new(Version::V3_4)?;
    let folder = world.folder.path().display().to_string();
    let mut places = Places(vec![
        ("/usr/sbin/haproxy", world.program.display().to_string()),
        ("/etc/haproxy", folder.clone()),
        ("127.0.0.1:8080", world.port.address().to_string()),
    ]);
    fs::write(world.file(), places.here(&page(EXAMPLE))).unwrap();
    let lines = blocks(&page(path), "sh");
    let serve = lines.iter().flat_map(|block| block.lines()).find(|line| line.contains("haproxy serve"));
    let serve = places.here(serve.unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
    command.args(serve.split_whitespace().skip(1)).current_dir(&folder);
    let mut serving = Serving::start(command.args(["--listen", "127.0.0.1:0", "--reload-delay", "0.02"]));
    fs::read_to_string(world.own("password")).unwrap().trim().clone_into(&mut serving.password);
    let address = serving.url.trim_start_matches("http://").trim_end_matches("/v3").to_owned();
    places.0.push(("127.0.0.1:5555", address));
    Ok((world, serving, places))
}

/// The words of a line, as a shell reads it that finds nothing but quotes and backslashes at ends of lines.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.replace("\\\n", " ").split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// Does what `curl` would do, which not every machine has: asks, and prints the answer.
async fn curl(line: &str, serving: &Serving) -> String {
    let (mut method, mut url, mut body, mut headers) = ("GET".to_owned(), None, String::new(), Vec::new());
    let mut words = words(line).into_iter().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-u" => assert_eq!(words.next().unwrap(), "$auth"),
            "-X" => method = words.next().unwrap(),
            "-H" => headers.push(words.next().unwrap()),
            "-d" => body = words.next().unwrap(),
            _ => url = Some(word),
        }
    }
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = http::client().request(method, url.unwrap()).body(body);
    for header in &headers {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    let answer = request.basic_auth("admin", Some(&serving.password)).send().await.unwrap();
    answer.text().await.unwrap()
}

/// Follows a page, and returns how many commands it shows.
fn followed(path: &str) -> Result<usize, Missing> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (world, serving, places) = start(path)?;
    let run = |command: &str| {
        // A busy machine needs longer.
        let patient = command.replace("haproxy sync ", "haproxy sync --timeout 300 --reload-timeout 300 ");
        let command = places.here(&patient.replace("haproxy plan ", "haproxy plan --timeout 300 "));
        let printed = match command.strip_prefix("curl ") {
            Some(_) => runtime.block_on(curl(&command, &serving)),
            None => shell(&command, world.folder.path()),
        };
        places.shown(&printed)
    };
    let count = follow(path, run, str::to_owned);
    drop(serving);
    runtime.block_on(world.end());
    Ok(count)
}

#[test]
fn the_commands_that_bring_a_haproxy_to_a_configuration_print_what_is_shown() {
    assert_eq!(blocks(&page("docs/haproxy-sync.md"), "haproxy"), [page(EXAMPLE).trim_end()]);
    assert!(need!(followed("docs/haproxy-sync.md")) >= 6);
}

#[test]
fn the_calls_of_the_dataplane_api_answer_what_is_shown() {
    assert!(need!(followed("docs/dataplane-api.md")) >= 4);
}

#[tokio::test]
async fn the_manual_names_all_that_is_kept_beside_a_configuration() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve_with(|command| command.args(["--reload-delay", "0.02", "--backups", "2"]));
    assert_eq!(serving.weigh(1, 7).await.unwrap().0, 200);
    let new = serde_json::json!({ "name": "b" });
    assert_eq!(serving.ask("POST", "configuration/backends?version=2", Some(&new)).await.unwrap().0, 202);
    let pages = world.folder.path().join("pages");
    let written = Command::new(env!("CARGO_BIN_EXE_setpoint")).arg("man").arg(&pages).output().unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let page = fs::read_to_string(pages.join("setpoint-haproxy-serve.1")).unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir(world.own("")).unwrap() {
        let entry = entry.unwrap();
        let folder = if entry.file_type().unwrap().is_dir() { "/" } else { "" };
        found.push(format!("{}{folder}", entry.file_name().to_string_lossy()));
    }
    for name in &found {
        // Drafts are there for a moment.
        let name = name.trim_end_matches(".new").replace('-', "\\-");
        assert!(page.contains(&format!("\\fI\\&.haproxy.cfg.setpoint/{name}\\fR")), "{name} is in no FILES");
    }
    for name in ["password", "lock", "master.sock", "haproxy.log", "state.json", "reloads.json", "backups/"] {
        assert!(found.iter().any(|other| other == name), "{name} is named, and not there: {found:?}");
    }
    drop(serving);
    world.end().await;
}
