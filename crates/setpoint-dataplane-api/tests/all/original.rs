//! Where an original Dataplane API is found, it and ours get the same requests, and their answers are compared.
//!
//! ```text
//!  recorded exchange ──▶ the original ──▶ what it answers now, in the names of the recording
//!          └───────────▶ ours ──────────▶ compared with that; what differs has one of the reasons, or is a fault
//! ```
//!
//! What is compared needs a configuration and files: what runs depends on how often a HAProxy was reloaded, and they have one each.
//! That the comparison sees what differs is shown with stand-ins.

use std::path::Path;

use serde_json::Value as Json;
use setpoint_dataplane_api::Dialect;
use setpoint_haproxy::compare::compare as diff;
use setpoint_haproxy::model::Context;
use setpoint_haproxy::text::Document;
use setpoint_testutils::{Dataplane, Port, Workdir, dataplane, need};

use crate::compare::{Difference, differences};
use crate::reasons::reason;
use crate::recording::{Exchange, Recorded, exchanges};
use crate::replay::{Replay, Speaker};
use crate::world::put_files;

/// The kinds of cases that need nothing but a configuration and files.
const KINDS: [&str; 16] = [
    "acl",
    "accept",
    "auth",
    "backend",
    "backends",
    "bind",
    "body",
    "method-not-allowed",
    "raw",
    "rule",
    "server",
    "storage",
    "trailing-slash",
    "tx",
    "unknown-path",
    "version",
];
/// Those among them that need something done beforehand.
const PREPARED: [&str; 3] = ["tx.too-many", "raw.push.no-version", "storage.maps.put-back"];
/// What those begin with that show what HAProxy was told, and those at which an original (3.2.13) breaks off.
const LEFT_OUT: [&str; 3] =
    ["storage.map.", "storage.ssl_crt_lists.entries", "storage.ssl_crt_lists.get.after-add"];

/// What came of a comparison.
#[derive(Debug, Default)]
struct Compared {
    answers: usize,
    reasoned: usize,
    unexplained: Vec<String>,
}

/// Sends the same requests to another server and to ours.
async fn compare(dialect: Dialect, peer: &mut Speaker, ours: &mut Replay) -> Compared {
    let mut compared = Compared::default();
    for exchange in exchanges(dialect) {
        let kind = exchange.case.split(['.', '[']).next().unwrap_or_default();
        if !KINDS.contains(&kind)
            || PREPARED.contains(&exchange.case.as_str())
            || LEFT_OUT.iter().any(|beginning| exchange.case.starts_with(beginning))
        {
            continue;
        }
        if kind == "storage" {
            peer.settled().await;
        }
        let (status, headers, body) = peer.send(&exchange).await;
        let json: Option<Json> = serde_json::from_str(&body).ok();
        let answer = Recorded {
            status,
            headers,
            body: (json.is_none() && !body.is_empty()).then(|| peer.unnamed(&body)),
            json: json.map(|json| in_names_of(exchange.answer.json.as_ref(), &json, peer)),
            order_varies: exchange.answer.order_varies,
        };
        let answered = ours.exchange(&exchange).await;
        let theirs = Exchange { answer, ..exchange };
        let found = differences(&ours.speaker, &theirs, &answered);
        compared.answers += 1;
        if found.is_empty() {
            continue;
        }
        let is_text = theirs.path.ends_with("/configuration/raw") && found == [Difference::Body];
        let means_the_same = |text: &str| {
            let (text, ours) = (Document::parse(text.as_bytes()), Document::parse(answered.body.as_bytes()));
            diff(&text, &ours, &Context::new(dialect.version())).is_ok_and(|diff| diff.is_empty())
        };
        // The original writes sections and lines in its own order, and a digest above them.
        let is_rewritten = is_text
            && theirs.answer.body.as_deref().is_some_and(|text| means_the_same(&ours.speaker.named(text)));
        if is_rewritten || reason(&theirs, &answered, &found).is_some() {
            compared.reasoned += 1;
            continue;
        }
        let shown = |text: &str| text.chars().take(2000).collect::<String>();
        compared.unexplained.push(format!(
            "{} {} {} {}: {found:?}\n  theirs: {}\n  ours:   {}",
            dialect.version(),
            theirs.case,
            theirs.method,
            theirs.path,
            shown(&body),
            shown(&answered.body)
        ));
    }
    compared
}

/// An answer as it would have been recorded: what varies is called what it is called in the recording.
fn in_names_of(recorded: Option<&Json>, answer: &Json, speaker: &Speaker) -> Json {
    match (recorded, answer) {
        (Some(Json::String(name)), Json::String(_) | Json::Number(_)) if name.contains('$') => {
            Json::String(name.clone())
        }
        (_, Json::String(text)) => Json::String(speaker.unnamed(text)),
        (_, Json::Number(number)) => {
            let name = speaker.unnamed(&number.to_string());
            if name.starts_with("$PORT") { Json::String(name) } else { answer.clone() }
        }
        (recorded, Json::Array(values)) => {
            let of = |place: usize| recorded.and_then(|recorded| recorded.get(place));
            values.iter().enumerate().map(|(place, value)| in_names_of(of(place), value, speaker)).collect()
        }
        (recorded, Json::Object(properties)) => {
            let of = |name: &str| recorded.and_then(|recorded| recorded.get(name));
            let named = |(name, value): (&String, &Json)| {
                (name.clone(), in_names_of(of(name.as_str()), value, speaker))
            };
            properties.iter().map(named).collect()
        }
        (_, other) => other.clone(),
    }
}

/// The text that the recordings begin with, without what stands in `global`.
fn text(dialect: Dialect) -> String {
    let recorded = exchanges(dialect);
    let raw = recorded.iter().find(|exchange| exchange.case == "raw.get").unwrap();
    let text = raw.answer.body.clone().unwrap();
    text[text.find("defaults ").unwrap()..].to_owned()
}

/// The names for ports in a text, with the ports in their place.
fn with_ports(text: &str, ports: &[u16]) -> String {
    let numbered = ports.iter().enumerate();
    numbered.fold(text.to_owned(), |text, (number, port)| {
        text.replace(&format!("$PORT{number}"), &port.to_string())
    })
}

#[tokio::test]
async fn an_original_that_is_found_answers_as_ours_does_or_differs_for_a_reason() {
    let mut unexplained = Vec::new();
    for found in need!(dataplane::programs()) {
        let minor: Vec<&str> = found.version.split('.').take(2).collect();
        let Some(dialect) =
            Dialect::ALL.into_iter().find(|dialect| dialect.version().as_str() == minor.join("."))
        else {
            panic!("{found:?} speaks a dialect that is not known");
        };
        let files = Workdir::new("originals");
        put_files(files.path());
        let leased: Vec<Port> = (0..6).map(|_| Port::lease()).collect();
        let ports: Vec<u16> = leased.iter().map(Port::number).collect();
        let own = with_ports(&text(dialect), &ports).replace("$D", &files.path().display().to_string());
        let folder = files.path().to_owned();
        let mut original = need!(Dataplane::start_in(files, &found, found.haproxy(), |_| own).await);
        let mut peer = Speaker::new(original.url().trim_end_matches("/v3").to_owned(), &folder, &ports);
        let written = std::fs::read_to_string(original.haproxy().configuration_file()).unwrap();
        // Its sockets are in a folder of their own.
        let sockets = original.haproxy().folder().display().to_string();
        let written = written.replace(&sockets, "$D");
        let mut ours = need!(Replay::start_on(dialect, &peer.unnamed(&written)).await);
        peer.names.insert("$SOCKETS".to_owned(), sockets);
        let folder = ours.world.folder.path().display().to_string();
        ours.speaker.names.insert("$SOCKETS".to_owned(), folder);
        let compared = compare(dialect, &mut peer, &mut ours).await;
        println!(
            "{}: {} answers compared, {} differ for a reason",
            found.version, compared.answers, compared.reasoned
        );
        ours.world.end().await;
        unexplained.extend(compared.unexplained);
    }
    assert!(unexplained.is_empty(), "{} differ:\n{}", unexplained.len(), unexplained.join("\n"));
}

/// A server of ours in the place of the original.
async fn stand_in(dialect: Dialect, text: &str) -> Result<(Replay, Speaker), setpoint_testutils::Missing> {
    let replay = Replay::start_on(dialect, text).await?;
    let ports: Vec<u16> = replay.world.ports.iter().map(Port::number).collect();
    let folder: &Path = replay.world.folder.path();
    let speaker = Speaker::new(replay.world.url.clone(), folder, &ports);
    Ok((replay, speaker))
}

#[tokio::test]
async fn a_stand_in_that_answers_alike_agrees_and_one_that_does_not_is_noticed() {
    let dialect = Dialect::default();
    let text = format!("global\n  stats socket $D/run.sock level admin\n\n{}", text(dialect));
    let (replay, mut peer) = need!(stand_in(dialect, &text).await);
    let mut ours = need!(Replay::start_on(dialect, &text).await);
    let compared = compare(dialect, &mut peer, &mut ours).await;
    assert!(compared.answers > 150, "{compared:?}");
    assert_eq!((compared.reasoned, compared.unexplained), (0, Vec::<String>::new()));
    replay.world.end().await;
    ours.world.end().await;

    let (replay, mut peer) = need!(stand_in(Dialect::ALL[0], &text).await);
    let mut ours = need!(Replay::start_on(dialect, &text).await);
    let compared = compare(dialect, &mut peer, &mut ours).await;
    assert!(compared.unexplained.len() > 10, "{compared:?}");
    replay.world.end().await;
    ours.world.end().await;
}
