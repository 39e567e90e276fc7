//! Sections and what stands in them: one way for all, driven by the table.

use serde_json::{Value as Json, json};
use setpoint_haproxy::edit::{ChildKey, EditError, SectionKey};
use setpoint_haproxy::model::{Object, ObjectKind, SectionModel};
use setpoint_instance::configuration::Configuration;

use crate::Api;
use crate::answer::{Answer, Problem};
use crate::change::{Did, answer, target};
use crate::objects::{self, echoed, keeps_children, named};
use crate::request::Request;
use crate::route::parent_of;
use crate::table::{Child, Key, Section, Shape, Verb, section_of};

/// What a section without a name is called in the API.
const UNNAMED: &str = "unnamed_defaults_";

/// The key of a section by what the API calls it.
fn key_of(section: &Section, name: Option<&str>) -> SectionKey {
    let unnamed = |name: &str| name.strip_prefix(UNNAMED)?.parse::<u32>().ok()?.checked_sub(1);
    match name {
        None => SectionKey::unnamed(section.keyword),
        Some(name) => match unnamed(name).filter(|_| section.kind == ObjectKind::Defaults) {
            Some(nth) => SectionKey { nth, ..SectionKey::unnamed(section.keyword) },
            None => SectionKey::named(section.keyword, name),
        },
    }
}

/// What the API calls a section.
fn shown_name(section: &Section, key: &SectionKey) -> Option<String> {
    match &key.name {
        Some(name) => Some(name.to_string()),
        None if section.kind == ObjectKind::Defaults => Some(format!("{UNNAMED}{}", key.nth + 1)),
        None => None,
    }
}

/// A section as it is shown.
fn shown(api: &Api, section: &Section, key: &SectionKey, model: &SectionModel, full: bool) -> Json {
    let cx = api.instance.context();
    let full = full || keeps_children(section.kind, api.dialect);
    let mut json = match &model.object {
        Some(_) if full => model.to_json(cx),
        Some(object) => object.to_json(),
        None => json!({}),
    };
    if let (Json::Object(properties), None, Some(name)) = (&mut json, &key.name, shown_name(section, key)) {
        properties.insert("name".to_owned(), Json::from(name));
    }
    json
}

/// What says that properties of a body were not understood.
fn warned(api: &Api, answer: Answer, unknown: &[String]) -> Result<Answer, Problem> {
    if unknown.is_empty() {
        return Ok(answer);
    }
    if api.options.strict {
        return Err(Problem::new(422, format!("unknown properties: {}", unknown.join(", "))));
    }
    Ok(answer.warned("properties that were ignored", unknown))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

impl Api {
    /// Refuses what nobody knows before anything is changed.
    fn strictly(&self, unknown: &[String]) -> Result<(), Problem> {
        warned(self, Answer::empty(200), unknown).map(|_| ())
    }

    pub(crate) async fn section(
        &self,
        section: &'static Section,
        verb: Verb,
        names: &[String],
        request: &Request,
    ) -> Result<Answer, Problem> {
        let full = request.flag("full_section")?;
        let name = names.first().map(String::as_str);
        match verb {
            Verb::List => {
                self.look_long(request, |configuration| Ok(self.listed(section, full, configuration)))
            }
            Verb::Get => {
                let key = key_of(section, name);
                let model = self.look(request, |configuration| {
                    let model = configuration.editor(&key).section(&key);
                    model.map_err(|error| missing(section, name, error, true))
                })?;
                Ok(Answer::json(200, shown(self, section, &key, &model, full)))
            }
            Verb::Delete => {
                let target = target(request)?;
                let ((), outcome) = self
                    .change(&target, |configuration| {
                        let key = key_of(section, name);
                        let done = configuration.editor(&key).delete_section(&key);
                        done.map_err(|error| missing(section, name, error, false))
                    })
                    .await?;
                Ok(answer(Did::Delete, &outcome, Json::Null))
            }
            _ => self.write_section(section, verb == Verb::Create, name, full, request).await,
        }
    }

    /// Creates or replaces a section.
    async fn write_section(
        &self,
        section: &'static Section,
        creates: bool,
        name: Option<&str>,
        full: bool,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let (cx, body) = (self.instance.context(), request.json()?);
        // The body is judged as it is, and has the name of the path.
        let (_, unknown) = objects::section(section.kind, &body, full, cx, self.dialect)?;
        self.strictly(&unknown)?;
        let json = match name {
            Some(name) if !name.starts_with(UNNAMED) => named(section.kind, &body, name),
            Some(_) => {
                let mut json = body.clone();
                json.as_object_mut().map(|properties| properties.remove("name"));
                json
            }
            None => body.clone(),
        };
        let (model, _) = objects::section(section.kind, &json, full, cx, self.dialect)?;
        let target = target(request)?;
        let work = |configuration: &mut Configuration| {
            if creates {
                let held = model.name.clone();
                let created = configuration.create_section(&model);
                return created.map(|_| ()).map_err(|error| match error {
                    EditError::Exists { .. } => Problem::new(
                        409,
                        format!(
                            "object already exists: {} {} already exists",
                            section.label,
                            held.unwrap_or_default()
                        ),
                    ),
                    other => other.into(),
                });
            }
            let key = key_of(section, name);
            let is_there = configuration.editor(&key).section(&key);
            if section.shape == Shape::One && matches!(is_there, Err(EditError::NotFound { .. })) {
                return Ok(configuration.create_section(&model).map(|_| ())?);
            }
            let editor = configuration.editor(&key);
            let done = match &model.object {
                Some(object) if !full && !keeps_children(section.kind, self.dialect) => {
                    editor.replace_settings(&key, object)
                }
                _ => editor.replace_section(&key, &model),
            };
            done.map_err(|error| missing(section, name, error, false))
        };
        let ((), outcome) = self.change(&target, work).await?;
        let did = if creates { Did::Create } else { Did::Replace };
        warned(self, answer(did, &outcome, echoed(&body, &unknown)), &unknown)
    }

    fn listed(&self, section: &'static Section, full: bool, configuration: &mut Configuration) -> Answer {
        let (mut all, mut left_out) = (Vec::new(), Vec::new());
        for key in configuration.sections(section.keyword) {
            match configuration.editor(&key).section(&key) {
                Ok(model) => all.push(shown(self, section, &key, &model, full)),
                Err(error) => left_out.push(error.to_string()),
            }
        }
        let answer = Answer::json(200, Json::Array(all));
        if left_out.is_empty() {
            return answer;
        }
        answer.warned("not shown", &left_out)
    }

    /// `PUT defaults`: the one that the body names, or the first.
    pub(crate) async fn replace_defaults(&self, request: &Request) -> Result<Answer, Problem> {
        let body = request.json()?;
        let Some(section) = section_of(ObjectKind::Defaults) else {
            return Err(Problem::not_served("defaults"));
        };
        let first = || {
            let keys = self.instance.read(|configuration| configuration.sections(section.keyword));
            keys.first().and_then(|key| shown_name(section, key))
        };
        let name = body.get("name").and_then(Json::as_str).map(str::to_owned).or_else(first);
        let full = request.flag("full_section")?;
        self.write_section(section, name.is_none(), name.as_deref(), full, request).await
    }

    pub(crate) async fn child(
        &self,
        child: &'static Child,
        verb: Verb,
        names: &[String],
        request: &Request,
    ) -> Result<Answer, Problem> {
        let (parent, one) = parent_of(child, names, request)?;
        let Some(section) = section_of(child.within) else { return Err(Problem::not_served(child.path)) };
        let place = Place { child, section, parent, one, request };
        match verb {
            Verb::List => self.look_long(request, |configuration| place.list(configuration)),
            Verb::Get => self.look(request, |configuration| place.get(configuration)),
            Verb::Delete => {
                let target = target(request)?;
                let ((), outcome) = self.change(&target, |configuration| place.delete(configuration)).await?;
                Ok(answer(Did::Delete, &outcome, Json::Null))
            }
            Verb::ReplaceAll => {
                let (body, cx) = (request.json()?, self.instance.context());
                let (objects, unknown) = objects::list(child.kind, &body, cx, self.dialect)?;
                self.strictly(&unknown)?;
                let target = target(request)?;
                let work = |configuration: &mut Configuration| place.replace_all(configuration, &objects);
                let ((), outcome) = self.change(&target, work).await?;
                warned(self, answer(Did::Replace, &outcome, body), &unknown)
            }
            Verb::Create | Verb::CreateAt | Verb::Replace => {
                let (body, cx) = (request.json()?, self.instance.context());
                let (object, unknown) = objects::object(child.kind, &body, cx, self.dialect)?;
                self.strictly(&unknown)?;
                let target = target(request)?;
                let creates = verb != Verb::Replace;
                let work = |configuration: &mut Configuration| place.put(configuration, &object, creates);
                let ((), outcome) = self.change(&target, work).await?;
                let did = if creates { Did::Create } else { Did::Replace };
                warned(self, answer(did, &outcome, echoed(&body, &unknown)), &unknown)
            }
        }
    }

    /// Adds an entry to the `traces` section, or removes one.
    pub(crate) async fn trace_entry(&self, adds: bool, request: &Request) -> Result<Answer, Problem> {
        let body = request.json()?;
        let Some(trace) = body.get("trace").and_then(Json::as_str).map(str::to_owned) else {
            let problem = Problem::new(422, "trace in body is required");
            return Err(if self.dialect.is_new() { problem } else { problem.coded(602) });
        };
        let (target, cx) = (target(request)?, self.instance.context());
        let work = |configuration: &mut Configuration| {
            let key = SectionKey::unnamed(setpoint_haproxy::text::SectionKind::Traces);
            let model = configuration.editor(&key).section(&key)?;
            let mut json = model.object.as_ref().map_or_else(|| json!({}), Object::to_json);
            let Some(properties) = json.as_object_mut() else { return Err(Problem::not_served("traces")) };
            let entries = properties.entry("entries").or_insert_with(|| json!([]));
            let Some(entries) = entries.as_array_mut() else { return Err(Problem::not_served("traces")) };
            let is_it = |entry: &Json| entry.get("trace").and_then(Json::as_str) == Some(trace.as_str());
            if adds {
                entries.push(body.clone());
            } else {
                let count = entries.len();
                entries.retain(|entry| !is_it(entry));
                if entries.len() == count {
                    return Err(Problem::new(404, format!("missing object: trace {trace} does not exist")));
                }
            }
            let (object, _) = Object::from_json(ObjectKind::Traces, &json, cx)?;
            Ok(configuration.editor(&key).replace_settings(&key, &object)?)
        };
        let ((), outcome) = self.change(&target, work).await?;
        let did = if adds { Did::Create } else { Did::Delete };
        Ok(answer(did, &outcome, body))
    }
}

/// Says in the API's words that a section is not there.
fn missing(section: &Section, name: Option<&str>, error: EditError, reads: bool) -> Problem {
    match error {
        EditError::NotFound { .. } => {
            let label = if reads { capitalised(section.label) } else { section.label.to_owned() };
            let name = name.map(|name| format!(" {name}")).unwrap_or_default();
            Problem::new(404, format!("missing object: {label}{name} does not exist"))
        }
        other => other.into(),
    }
}

/// A child and where it stands.
struct Place<'r> {
    child: &'static Child,
    section: &'static Section,
    parent: Option<&'r str>,
    one: Option<&'r str>,
    request: &'r Request,
}

impl Place<'_> {
    fn key(&self) -> SectionKey {
        key_of(self.section, self.parent)
    }

    fn parent_name(&self) -> &str {
        self.parent.unwrap_or_default()
    }

    /// Which one, by its name or its place; none is the place behind the last.
    fn which(&self) -> Result<Option<ChildKey>, Problem> {
        let one = self.one.unwrap_or_default();
        match self.child.key {
            Key::Name(_) => Ok(Some(ChildKey::Name(one.into()))),
            Key::Index | Key::Appended => match one.parse::<i64>() {
                Ok(index) if index < 0 => Ok(None),
                Ok(index) => Ok(Some(ChildKey::Index(u32::try_from(index).unwrap_or(u32::MAX)))),
                Err(_) if self.request.dialect.is_new() => Err(Problem::new(
                    400,
                    format!("Invalid format for parameter index: {one:?} is no number"),
                )),
                Err(_) => {
                    Err(Problem::new(422, format!("index in path must be of type int64: {one:?}")).coded(601))
                }
            },
        }
    }

    /// Says in the API's words what is wrong.
    fn problem(&self, error: EditError, parent_is_there: bool) -> Problem {
        let (label, parent) = (self.section.label, self.parent_name());
        match error {
            EditError::NotFound { .. } if !parent_is_there => {
                Problem::new(400, format!("missing parent: {label} {parent} does not exist"))
            }
            EditError::NotFound { .. } => self.not_found(),
            EditError::OutOfRange { index, .. } => Problem::new(
                400,
                format!("index out of range: Object with id {index} in {label} {parent} out of range"),
            ),
            EditError::Exists { .. } => Problem::new(
                409,
                format!(
                    "object already exists: {} {} already exists in {parent} {label}",
                    self.child.kind,
                    self.one.unwrap_or_default()
                ),
            ),
            other => other.into(),
        }
    }

    fn not_found(&self) -> Problem {
        let (label, parent, one) = (self.section.label, self.parent_name(), self.one.unwrap_or_default());
        let kind = match self.child.kind {
            ObjectKind::Bind => "Bind".to_owned(),
            kind => kind.to_string(),
        };
        Problem::new(
            404,
            match self.child.key {
                Key::Name(_) => format!("missing object: {kind} {one} does not exist in {parent} {label}"),
                Key::Index | Key::Appended => {
                    format!("missing object: Object {one} does not exist in {label} {parent}")
                }
            },
        )
    }

    fn list(&self, configuration: &mut Configuration) -> Result<Answer, Problem> {
        let key = self.key();
        let objects = match configuration.editor(&key).list(&key, self.child.kind) {
            Ok(objects) => objects,
            // The original shows an empty list of what is not there, if its name is in the path.
            Err(EditError::NotFound { .. })
                if !matches!(self.child.parent, crate::table::Parent::Query(_)) =>
            {
                Vec::new()
            }
            Err(error) => return Err(self.problem(error, false)),
        };
        let filter = self.request.query("acl_name");
        let shown = objects.iter().filter(|object| filter.is_none() || object.name() == filter);
        Ok(Answer::json(200, Json::Array(shown.map(Object::to_json).collect())))
    }

    fn get(&self, configuration: &mut Configuration) -> Result<Answer, Problem> {
        let key = self.key();
        let Some(which) = self.which()? else { return Err(self.not_found()) };
        let object = configuration.editor(&key).get(&key, self.child.kind, &which);
        let object = object.map_err(|error| match error {
            EditError::OutOfRange { .. } => self.not_found(),
            error => self.problem(error, true),
        })?;
        Ok(Answer::json(200, object.to_json()))
    }

    fn delete(&self, configuration: &mut Configuration) -> Result<(), Problem> {
        let key = self.key();
        let Some(which) = self.which()? else { return Err(self.not_found()) };
        let is_there = configuration.editor(&key).section(&key).is_ok();
        let deleted = configuration.editor(&key).delete(&key, self.child.kind, &which);
        deleted.map_err(|error| match error {
            EditError::OutOfRange { .. } => self.not_found(),
            error => self.problem(error, is_there),
        })
    }

    fn replace_all(&self, configuration: &mut Configuration, objects: &[Object]) -> Result<(), Problem> {
        let key = self.key();
        let is_there = configuration.editor(&key).section(&key).is_ok();
        let replaced = configuration.editor(&key).replace_list(&key, self.child.kind, objects);
        replaced.map_err(|error| self.problem(error, is_there))
    }

    fn put(&self, configuration: &mut Configuration, object: &Object, creates: bool) -> Result<(), Problem> {
        let key = self.key();
        let is_there = !matches!(configuration.editor(&key).section(&key), Err(EditError::NotFound { .. }));
        let editor = configuration.editor(&key);
        if creates {
            let place = match (self.child.key, self.one) {
                (Key::Index, Some(_)) => match self.which()? {
                    Some(ChildKey::Index(index)) => Some(index),
                    _ => None,
                },
                _ => None,
            };
            let named = Place { one: object.name().or(self.one), ..*self };
            return editor.create(&key, object, place).map_err(|error| named.problem(error, is_there));
        }
        let Some(which) = self.which()? else { return Err(self.not_found()) };
        editor.replace(&key, &which, object).map_err(|error| match error {
            EditError::OutOfRange { .. } => self.not_found(),
            error => self.problem(error, is_there),
        })
    }
}
