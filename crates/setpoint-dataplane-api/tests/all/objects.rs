//! What was recorded of objects and texts, sent over HTTP: the lines that an object becomes, and the objects that a text is
//! read as.
//!
//! Why the model writes or reads something else than the original is for the model's own recordings to explain. Here is held
//! that the API writes and reads just what the model does, whatever the way through transactions, paths and parameters.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Client;
use serde_json::{Map, Value as Json, json};
use setpoint_dataplane_api::Dialect;
use setpoint_haproxy::model::{Context, Object, ObjectKind, SectionModel, section_model};
use setpoint_haproxy::text::{Document, SectionKind};
use setpoint_testutils::{Missing, need};

use crate::world::{Plan, World};

/// Each parent that a recorded child stands in.
const BASE: &str = "global\n\ndefaults d2\n\ndefaults d\n\nfrontend fe\n\nbackend be\n\nbackend bet\n\nfcgi-app fa\n  docroot /srv\n\nring rg\n\n\
    peers p\n\nmailers m\n\nresolvers r\n\nuserlist u\n\nlog-forward lf\n\ncrt-store cs\n\n";

/// What is there beside it from 3.4 on.
const HEALTH_CHECKS: &str = "healthcheck hc\n  type tcp-check\n\nhealthcheck hch\n  type httpchk\n\n";

/// Counts of one section.
#[derive(Clone, Copy, Default)]
struct Count {
    cases: usize,
    agree: usize,
    reasoned: usize,
}

/// Counts by section, and what can't be explained.
#[derive(Default)]
struct Tally {
    sections: BTreeMap<String, Count>,
    differ: Vec<String>,
}

impl Tally {
    /// Counts a case of a section: as recorded, as the model says, or neither.
    fn count(
        &mut self,
        (section, case): (&str, &str),
        as_recorded: bool,
        as_modelled: bool,
        told: impl FnOnce() -> String,
    ) {
        let count = self.sections.entry(section.to_owned()).or_default();
        count.cases += 1;
        if as_recorded {
            count.agree += 1;
        } else if as_modelled {
            count.reasoned += 1;
        } else {
            self.differ.push(format!("{case}: {}", told()));
        }
    }
}

struct Server {
    world: World,
    client: Client,
    dialect: Dialect,
}

impl Server {
    async fn start(dialect: Dialect) -> Result<Self, Missing> {
        let plan = Plan { dialect, checks: false, delay: Duration::from_hours(1), ..Plan::default() };
        let world = World::start_in_memory(&plan, |_, ports| {
            format!("defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\nfrontend f\n  bind {}\n", ports[0].address())
        })
        .await?;
        let client = Client::builder().no_proxy().timeout(Duration::from_mins(1)).build().unwrap();
        Ok(Self { world, client, dialect })
    }

    async fn ask(&self, method: &str, path: &str, body: Option<(&str, String)>) -> (u16, String) {
        let url = format!("{}/v3/services/haproxy/{path}", self.world.url);
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.client.request(method, url).basic_auth("admin", Some("adminpwd"));
        if let Some((kind, body)) = body {
            request = request.header("content-type", kind).body(body);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn push(&self, text: &str) -> u16 {
        let path = "configuration/raw?skip_version=true&skip_reload=true";
        self.ask("POST", path, Some(("text/plain", text.to_owned()))).await.0
    }

    fn context(&self) -> Context {
        self.world.api.instance().context().clone()
    }

    /// Sends an object in a transaction of its own. Returns the status, the lines that came, and what is read back.
    async fn send(&self, case: &Json) -> (u16, Vec<String>, Json) {
        let (_, begun) = self.ask("POST", "transactions?version=1", None).await;
        let begun: Json = serde_json::from_str(&begun).unwrap();
        let id = begun["id"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
        let (method, path, one) = place(case, self.dialect);
        let full = if case["full_section"] == true { "&full_section=true" } else { "" };
        let joint = if path.contains('?') { '&' } else { '?' };
        let before = self.raw(&id).await;
        let path = format!("configuration/{path}{joint}transaction_id={id}{full}");
        let (status, _) = self.ask(method, &path, Some(("application/json", case["sent"].to_string()))).await;
        let (mut came, mut read) = (Vec::new(), Json::Null);
        if status < 300 {
            let mut held: BTreeMap<&str, usize> = BTreeMap::new();
            before.lines().for_each(|line| *held.entry(line).or_default() += 1);
            for line in self.raw(&id).await.lines().filter(|line| !line.trim().is_empty()) {
                match held.get_mut(line) {
                    Some(count) if *count > 0 => *count -= 1,
                    _ => came.push(line.to_owned()),
                }
            }
            if let Some(one) = one {
                let joint = if one.contains('?') { '&' } else { '?' };
                let (_, text) = self
                    .ask("GET", &format!("configuration/{one}{joint}transaction_id={id}{full}"), None)
                    .await;
                read = serde_json::from_str(&text).unwrap_or(Json::Null);
                // It went to one of another name.
                if path.starts_with("configuration/defaults/d2") && read["name"] == "d2" {
                    read["name"] = case["sent"]["name"].clone();
                }
            }
        }
        self.ask("DELETE", &format!("transactions/{id}"), None).await;
        (status, came, read)
    }

    async fn raw(&self, id: &str) -> String {
        self.ask("GET", &format!("configuration/raw?transaction_id={id}"), None).await.1
    }
}

/// The kind of a recorded section, by its name in the recordings.
pub(crate) fn section_kind(name: &str) -> ObjectKind {
    match name {
        "peers" => ObjectKind::Peers,
        "mailers" => ObjectKind::Mailers,
        "resolvers" => ObjectKind::Resolvers,
        "http_errors" => ObjectKind::HttpErrors,
        "acme" => ObjectKind::Acme,
        name => ObjectKind::by_model(name).unwrap_or_else(|| panic!("{name}")),
    }
}

pub(crate) fn child_kind(name: &str) -> ObjectKind {
    let named = ObjectKind::ALL.iter().copied().find(|kind| !kind.is_section() && kind.collection() == name);
    named.unwrap_or_else(|| match name {
        "force_be_switches" => ObjectKind::ForceBeSwitch,
        name => ObjectKind::by_model(name.strip_suffix('s').unwrap()).unwrap_or_else(|| panic!("{name}")),
    })
}

/// The method and path that an object is sent with, and the path that it is read back from.
fn place(case: &Json, dialect: Dialect) -> (&'static str, String, Option<String>) {
    let (section, sent) = (case["section"].as_str().unwrap(), &case["sent"]);
    let kind = section_kind(section);
    let Some(child) = case["child"].as_str() else {
        let collection = kind.collection();
        let name = sent["name"].as_str().unwrap_or_default();
        return match kind {
            ObjectKind::Global => ("PUT", collection.to_owned(), Some(collection.to_owned())),
            ObjectKind::Traces => ("POST", collection.to_owned(), Some(collection.to_owned())),
            // 3.0 changes the one that is there.
            ObjectKind::Defaults if dialect == Dialect::ALL[0] => {
                // One that starts from another is another.
                let path = if sent.get("from").is_some() { "defaults/d" } else { "defaults/d2" };
                ("PUT", path.to_owned(), Some(path.to_owned()))
            }
            _ => ("POST", collection.to_owned(), Some(format!("{collection}/{name}"))),
        };
    };
    let parent = case["parent"].as_str().unwrap_or_else(|| parent_of(section, child));
    let kind_of_child = child_kind(child);
    let name = kind_of_child
        .name_path()
        .and_then(|path| sent[path].as_str())
        .unwrap_or_default()
        .replace('/', "%2F");
    let asked = match (section, child) {
        ("peers", "peer_entries") => Some("peer_section"),
        ("mailers", _) => Some("mailers_section"),
        ("resolvers", _) => Some("resolver"),
        ("userlist", _) => Some("userlist"),
        ("crt_store", _) if dialect < Dialect::ALL[2] => Some("crt_store"),
        _ => None,
    };
    if let Some(parameter) = asked {
        let one = format!("{child}/{name}?{parameter}={parent}");
        return ("POST", format!("{child}?{parameter}={parent}"), Some(one));
    }
    let outer = match section {
        "peers" => "peers".to_owned(),
        "global" => "global".to_owned(),
        _ => kind.collection().to_owned(),
    };
    let outer = if parent.is_empty() { outer } else { format!("{outer}/{parent}") };
    if !kind_of_child.is_ordered() {
        return ("POST", format!("{outer}/{child}"), Some(format!("{outer}/{child}/{name}")));
    }
    let path = match child {
        "ssl_front_uses" | "force_be_switches" => format!("{outer}/{child}"),
        _ => format!("{outer}/{child}/0"),
    };
    ("POST", path, Some(format!("{outer}/{child}/0")))
}

/// The section of [`BASE`] that a child stands in.
fn parent_of(section: &str, child: &str) -> &'static str {
    match (section, child) {
        ("backend", "tcp_checks") => "bet",
        ("backend", _) => "be",
        ("frontend", _) => "fe",
        ("defaults", _) => "d2",
        ("fcgi_app", _) => "fa",
        ("ring", _) => "rg",
        ("peers", _) => "p",
        ("mailers", _) => "m",
        ("resolvers", _) => "r",
        ("userlist", _) => "u",
        ("log_forward", _) => "lf",
        ("crt_store", _) => "cs",
        ("healthcheck", "http_checks") => "hch",
        ("healthcheck", _) => "hc",
        _ => "",
    }
}

/// Lines as words, those of children with names in an order of their own.
fn words(lines: &[String]) -> Vec<Vec<String>> {
    let mut lines: Vec<Vec<String>> = lines
        .iter()
        .map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| !line.is_empty())
        .collect();
    lines.sort();
    lines
}

/// What says nothing is as good as not there.
fn tidied(json: &Json) -> Json {
    match json {
        Json::Array(values) => values.iter().map(tidied).collect(),
        Json::Object(properties) => {
            let says = |json: &Json| match json {
                Json::Null => false,
                Json::String(text) => !text.is_empty(),
                Json::Array(values) => !values.is_empty(),
                Json::Object(properties) => !properties.is_empty(),
                Json::Bool(_) | Json::Number(_) => true,
            };
            let properties = properties.iter().map(|(name, value)| (name.clone(), tidied(value)));
            Json::Object(properties.filter(|(_, value)| says(value)).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

/// The lines that the model writes; none if it refuses.
fn modelled(case: &Json, cx: &Context) -> Option<Vec<String>> {
    let kind = section_kind(case["section"].as_str().unwrap());
    let mut text = Vec::new();
    if let Some(child) = case["child"].as_str() {
        let (object, _) = Object::from_json(child_kind(child), &case["sent"], cx).ok()?;
        object.write_in(kind, cx, &mut text).ok()?;
    } else {
        let (mut section, _) = SectionModel::from_json(kind, &case["sent"], cx).ok()?;
        let holds = kind == ObjectKind::CrtStore && cx.api < setpoint_haproxy::model::Version::V3_2;
        if case["full_section"] != true && !holds {
            section.children.clear();
        }
        section.write(cx, &mut text).ok()?;
    }
    Some(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}

/// What the model reads of the lines that it writes, as the API shows it.
fn read_by_model(case: &Json, lines: &[String], cx: &Context) -> Option<Json> {
    let kind = section_kind(case["section"].as_str().unwrap());
    let Some(child) = case["child"].as_str().map(child_kind) else {
        let text = Document::parse(lines.join("\n").as_bytes());
        let section = text.sections().iter().find(|section| section.kind() != SectionKind::Preamble)?;
        let model = section_model(section, cx);
        let is_full = case["full_section"] == true || kind == ObjectKind::CrtStore;
        return Some(if is_full { model.to_json(cx) } else { model.object.as_ref()?.to_json() });
    };
    // It stands where such objects stand; what is around it says nothing.
    let base = Document::parse(format!("{BASE}{HEALTH_CHECKS}").as_bytes());
    let around = base.sections().iter().find(|section| {
        section_model(section, cx).object.as_ref().is_some_and(|object| object.kind == kind)
    })?;
    let header = String::from_utf8_lossy(around.header()?.raw()).into_owned();
    let text = Document::parse(format!("{header}\n{}\n", lines.join("\n")).as_bytes());
    let model = section_model(text.sections().first()?, cx);
    let found = model.children.iter().find(|found| found.kind == child)?;
    Some(found.to_json())
}

/// The recorded objects or texts of a dialect.
pub(crate) fn recording(dialect: Dialect, kind: &str) -> Option<Vec<Json>> {
    let text = crate::recording::read(dialect, kind)?;
    let text = text.replace("$D", "/rec");
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// All cases if the command asks for them, else a sample.
fn sampled(cases: Vec<Json>, every: usize) -> impl Iterator<Item = Json> {
    let every = if std::env::var_os("SETPOINT_CONFORMANCE").is_some() { 1 } else { every };
    cases.into_iter().step_by(every)
}

async fn models(dialect: Dialect) -> Result<Option<Tally>, Missing> {
    let Some(cases) = recording(dialect, "model") else { return Ok(None) };
    let server = Server::start(dialect).await?;
    let mut base = BASE.to_owned();
    if dialect == Dialect::default() {
        base.push_str(HEALTH_CHECKS);
    }
    assert_eq!(server.push(&base).await, 201);
    let (cx, mut tally) = (server.context(), Tally::default());
    for case in sampled(cases, 40) {
        if case["child"] == "entries" {
            continue;
        }
        let (name, section) = (case["case"].as_str().unwrap(), case["section"].as_str().unwrap());
        let (status, came, read) = server.send(&case).await;
        let recorded: Vec<String> = serde_json::from_value(case["text"].clone()).unwrap_or_default();
        let model = modelled(&case, &cx);
        // As what the client got wrong, and not as a fault of ours.
        let refused = matches!(status, 400 | 409 | 422) && model.is_none();
        let expected = model.as_deref().and_then(|lines| read_by_model(&case, lines, &cx));
        // A section that was there already: its first line did not come.
        let is_changed = case["child"].is_null() && came.first().is_none_or(|line| line.starts_with(' '));
        let model = model.map(|lines| lines.get(usize::from(is_changed)..).unwrap_or_default().to_vec());
        let as_recorded = if case["status"].as_u64().is_some_and(|status| status >= 400) {
            // What the original refuses is refused, whatever for.
            status >= 400
        } else {
            status < 300 && words(&came) == words(&recorded) && tidied(&read) == tidied(&case["read"])
        };
        // A line that expands a variable of which nobody knows the value stays text: there is no such object.
        let is_text =
            expected.is_none() && read["code"] == 404 && came.iter().any(|line| line.contains("${"));
        let is_read = is_text || expected.as_ref().map(tidied) == Some(tidied(&read));
        let as_modelled =
            refused || status < 300 && model.as_deref().map(words) == Some(words(&came)) && is_read;
        tally.count((section, name), as_recorded, as_modelled, || {
            let expected = expected.as_ref().map(tidied);
            format!("{status}\n  recorded {recorded:?}\n  model    {model:?}\n  ours     {came:?}\n  read     {} and {}\n  by model {expected:?}", case["read"], tidied(&read))
        });
    }
    server.world.end().await;
    Ok(Some(tally))
}

async fn texts(dialect: Dialect) -> Result<Option<Tally>, Missing> {
    let Some(cases) = recording(dialect, "text") else { return Ok(None) };
    let server = Server::start(dialect).await?;
    let (cx, mut tally) = (server.context(), Tally::default());
    for case in sampled(cases, 40).filter(|case| case["status"] == 201) {
        let (name, config) = (case["case"].as_str().unwrap(), case["config"].as_str().unwrap());
        let status = server.push(config).await;
        let document = Document::parse(config.as_bytes());
        for (collection, recorded) in case["read"].as_object().into_iter().flatten() {
            let (_, ours) =
                server.ask("GET", &format!("configuration/{collection}?full_section=true"), None).await;
            let ours = sorted(tidied(&unnamed(serde_json::from_str(&ours).unwrap_or(Json::Null))));
            // What is not there has nothing to say.
            let ours =
                if ours.get("code").is_some() && ours.get("message").is_some() { json!({}) } else { ours };
            // Of one section that alone was recorded.
            let ours = match ours {
                Json::Array(all) if !recorded.is_array() => {
                    let of_name = all.iter().find(|one| one.get("name") == recorded.get("name")).cloned();
                    of_name.or(all.into_iter().next()).unwrap_or(json!({}))
                }
                ours => ours,
            };
            let sections =
                document.sections().iter().filter(|section| section.kind() != SectionKind::Preamble);
            let models: Vec<_> = sections.map(|section| section_model(section, &cx)).collect();
            let of_kind = models.iter().filter(|model| {
                model.text_only.is_none()
                    && model.object.as_ref().is_some_and(|object| object.kind.collection() == collection)
            });
            let of_kind: Vec<Json> = of_kind.map(|model| tidied(&model.to_json(&cx))).collect();
            let model = if recorded.is_array() {
                sorted(Json::Array(of_kind))
            } else {
                {
                    let of_name = of_kind.iter().find(|one| one.get("name") == recorded.get("name"));
                    of_name.or(of_kind.first()).cloned().unwrap_or(json!({}))
                }
            };
            let as_recorded = status == 201 && ours == sorted(tidied(&unnamed(recorded.clone())));
            tally.count((collection, name), as_recorded, status == 201 && ours == model, || {
                format!("{status} {collection}\n  recorded {recorded}\n  model    {model}\n  ours     {ours}")
            });
        }
    }
    server.world.end().await;
    Ok(Some(tally))
}

/// Objects without the names that the API gives to sections that have none.
fn unnamed(json: Json) -> Json {
    match json {
        Json::Array(values) => values.into_iter().map(unnamed).collect(),
        Json::Object(mut properties) => {
            let is_made_up =
                |name: &Json| name.as_str().is_some_and(|name| name.starts_with("unnamed_defaults_"));
            if properties.get("name").is_some_and(is_made_up) {
                properties.remove("name");
            }
            Json::Object(properties)
        }
        other => other,
    }
}

fn sorted(json: Json) -> Json {
    match json {
        Json::Array(mut values) => {
            values.sort_by_key(|value| value.get("name").map(Json::to_string));
            Json::Array(values)
        }
        other => other,
    }
}

fn report(kind: &str, dialect: Dialect, tally: &Tally) {
    for (section, count) in &tally.sections {
        crate::conformance::show_line(
            kind,
            dialect.version().as_str(),
            section,
            (count.cases, count.agree, count.reasoned),
            None,
        );
    }
    let cases: usize = tally.sections.values().map(|count| count.cases).sum();
    let shown: Vec<&String> = tally.differ.iter().take(20).collect();
    assert!(
        tally.differ.is_empty(),
        "{} of {} {kind} cases of {}:\n{shown:#?}",
        tally.differ.len(),
        cases,
        dialect.version()
    );
}

#[tokio::test]
async fn recorded_objects_become_the_lines_that_the_model_writes() {
    for dialect in Dialect::ALL {
        if let Some(tally) = need!(models(dialect).await) {
            report("model", dialect, &tally);
        }
    }
}

#[tokio::test]
async fn recorded_texts_are_read_as_the_model_reads_them() {
    for dialect in Dialect::ALL {
        if let Some(tally) = need!(texts(dialect).await) {
            report("text", dialect, &tally);
        }
    }
}
