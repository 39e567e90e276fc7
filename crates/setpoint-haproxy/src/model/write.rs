//! From model to text: the canonical printer.

use rustc_hash::FxHashSet;

use super::json::ModelError;
use super::{Context, Fields, Object, ObjectKind, SectionModel, Value};
use crate::table::grammar::Direction;
use crate::table::limits::Complaint;
use crate::table::write::{WriteContext, Written, unwritten, with_element, write_row};
use crate::table::{Multiplicity, Row, directives};
use crate::text::{Line, MAX_WORDS};

impl Object {
    /// Writes the canonical line of an object, or all lines of a section's own, without the one that opens it; each ends
    /// with a line feed and none is indented.
    ///
    /// HAProxy accepts some lines only in some sections; [`write_in`](Self::write_in) knows which.
    pub fn write(&self, cx: &Context, out: &mut Vec<u8>) -> Result<(), ModelError> {
        self.write_at(WriteContext::new(cx, None), cx, out)
    }

    /// Writes an object that will stand in a section of a kind. What HAProxy accepts only in others is refused.
    ///
    /// ```
    /// use setpoint_haproxy::model::{Context, Object, ObjectKind};
    ///
    /// let json = serde_json::json!({ "type": "connection", "action": "accept" });
    /// let cx = Context::default();
    /// let (rule, _) = Object::from_json(ObjectKind::TcpRequestRule, &json, &cx)?;
    /// assert!(rule.write_in(ObjectKind::Frontend, &cx, &mut Vec::new()).is_ok());
    /// let error = rule.write_in(ObjectKind::Backend, &cx, &mut Vec::new()).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "tcp_request_rule: HAProxy accepts no `tcp-request connection accept` in a backend",
    /// );
    /// # Ok::<(), setpoint_haproxy::model::ModelError>(())
    /// ```
    pub fn write_in(&self, section: ObjectKind, cx: &Context, out: &mut Vec<u8>) -> Result<(), ModelError> {
        self.write_at(WriteContext::new(cx, Some(section)), cx, out)
    }

    /// Writes an object whether HAProxy would accept it or not, as a text may hold it.
    pub(crate) fn write_unjudged(&self, cx: &Context, out: &mut Vec<u8>) -> Result<(), ModelError> {
        self.write_at(WriteContext { judges: false, ..WriteContext::new(cx, None) }, cx, out)
    }

    fn write_at(&self, site: WriteContext, cx: &Context, out: &mut Vec<u8>) -> Result<(), ModelError> {
        if self.kind.is_section() {
            let mut own = OwnLines::new(self, WriteContext { section: Some(self.kind), ..site }, cx);
            let mut lines = Vec::new();
            for row in directives().written(self.kind, cx.api).filter(|row| row.child.is_none()) {
                lines.append(&mut own.of(row)?);
            }
            own.finish()?;
            for line in lines {
                push(out, "", &line, self.kind)?;
            }
            return Ok(());
        }
        let line = self.line(site, cx)?;
        push(out, "", &line, self.kind)
    }

    /// Writes the line that opens a section.
    pub fn header(&self, cx: &Context) -> Result<String, ModelError> {
        let rows = directives().headers(self.kind, cx.api);
        Ok(self.first(rows, WriteContext::new(cx, None), cx)?.0)
    }

    /// Writes the line of a child.
    fn line(&self, site: WriteContext, cx: &Context) -> Result<String, ModelError> {
        if matches!(self.kind, ObjectKind::Bind | ObjectKind::DgramBind)
            && let (Some(name), Some(field)) = (self.name(), directives().name_field(self.kind))
        {
            // A name that is only the address is not written: it was made of it.
            let mut nameless = self.clone();
            nameless.fields.remove(field);
            if let Ok((line, _)) = nameless.first(directives().rows(self.kind, cx.api), site, cx)
                && line.split(' ').nth(1) == Some(name)
            {
                return nameless.complete(site, cx);
            }
        }
        self.complete(site, cx)
    }

    /// Writes the line of a child, in which all is that the child says.
    fn complete(&self, site: WriteContext, cx: &Context) -> Result<String, ModelError> {
        let (line, written) = self.first(directives().rows(self.kind, cx.api), site, cx)?;
        let mut lost = unwritten(Some(self.kind), &self.fields, &written.used);
        lost.extend(written.lost);
        if lost.is_empty() { Ok(line) } else { Err(ModelError::unwritten(self.kind, cx.api, lost)) }
    }

    /// Writes by the first row that can, with the comment that the object keeps.
    fn first<'t>(
        &self,
        rows: impl Iterator<Item = &'t Row>,
        site: WriteContext,
        cx: &Context,
    ) -> Result<(String, Written), ModelError> {
        let line = rows
            .filter(|row| row.attributes.direction != Direction::Read)
            .find_map(|row| write_row(row, &self.fields, site).transpose())
            .transpose()
            .map_err(|complaint| ModelError::refused(self.kind, &self.fields, complaint))?;
        let written = line.ok_or_else(|| ModelError::Incomplete {
            kind: self.kind,
            version: cx.api,
            object: directives().secrets().object(&self.fields),
        })?;
        let metadata = directives().metadata_field().and_then(|field| self.fields.get(field));
        let mut line = written.line.clone();
        if cx.api.keeps_metadata(self.kind) {
            append_comment(&mut line, metadata);
        }
        Ok((line, written))
    }
}

impl SectionModel {
    /// Writes the canonical text of the section: the line that opens it, and below it its own lines and its children,
    /// indented, in the order that the API writes them.
    ///
    /// ```
    /// use setpoint_haproxy::model::{Context, ObjectKind, SectionModel};
    ///
    /// let json = serde_json::json!({
    ///     "name": "web", "mode": "http", "connect_timeout": 5000,
    ///     "servers": { "s1": { "name": "s1", "address": "192.0.2.1", "port": 80 } },
    /// });
    /// let cx = Context::default();
    /// let mut text = Vec::new();
    /// let (section, _) = SectionModel::from_json(ObjectKind::Backend, &json, &cx)?;
    /// section.write(&cx, &mut text)?;
    /// assert_eq!(text, b"backend web\n  mode http\n  timeout connect 5s\n  server s1 192.0.2.1:80\n");
    /// # Ok::<(), setpoint_haproxy::model::ModelError>(())
    /// ```
    pub fn write(&self, cx: &Context, out: &mut Vec<u8>) -> Result<(), ModelError> {
        let Some(object) = &self.object else { return Ok(()) };
        push(out, "", &object.header(cx)?, object.kind)?;
        let site = WriteContext::new(cx, Some(object.kind));
        let mut own = OwnLines::new(object, site, cx);
        for row in directives().written(object.kind, cx.api) {
            match row.child {
                Some(kind) => {
                    let mut names: FxHashSet<Option<&str>> = FxHashSet::default();
                    for child in self.children.iter().filter(|child| child.kind == kind) {
                        let is_one_too_many = match row.attributes.several {
                            Multiplicity::Many | Multiplicity::UniqueNamesWarned => false,
                            Multiplicity::UniqueNames => names.contains(&child.name()),
                            Multiplicity::One => !names.is_empty(),
                        };
                        if is_one_too_many {
                            let why = format!("HAProxy accepts no second one like it in a {}", object.kind);
                            return Err(ModelError::refused(kind, &Fields::default(), Complaint::new(why)));
                        }
                        if !matches!(
                            row.attributes.several,
                            Multiplicity::Many | Multiplicity::UniqueNamesWarned
                        ) {
                            names.insert(child.name());
                        }
                        push(out, "  ", &child.line(site, cx)?, kind)?;
                    }
                }
                None => {
                    for line in own.of(row)? {
                        push(out, "  ", &line, object.kind)?;
                    }
                }
            }
        }
        own.finish()
    }
}

/// Writes the lines of a section's own, row by row. Of a family one row is written, and of a list all elements at once.
struct OwnLines<'o> {
    object: &'o Object,
    site: WriteContext,
    cx: &'o Context,
    families: Vec<usize>,
    lists: Vec<super::Field>,
    used: Vec<super::Field>,
    lost: Vec<(String, String)>,
}

impl<'o> OwnLines<'o> {
    fn new(object: &'o Object, site: WriteContext, cx: &'o Context) -> Self {
        let (families, lists) = (Vec::new(), Vec::new());
        Self { object, site, cx, families, lists, used: Vec::new(), lost: Vec::new() }
    }

    /// Writes what one row says of the section.
    fn of(&mut self, row: &Row) -> Result<Vec<String>, ModelError> {
        let refused = |complaint| ModelError::refused(self.object.kind, &self.object.fields, complaint);
        if row.attributes.direction == Direction::Read
            || (row.attributes.list.is_none() && self.families.contains(&row.family))
            || !directives().is_form_of(row, self.object.kind, self.cx)
        {
            return Ok(Vec::new());
        }
        let Some(list) = row.attributes.list else {
            let written = write_row(row, &self.object.fields, self.site).map_err(refused)?;
            let Some(Written { mut line, used, lost }) = written else { return Ok(Vec::new()) };
            append_comment(
                &mut line,
                row.attributes.metadata.and_then(|field| self.object.fields.get(field)),
            );
            self.used.extend(used);
            self.used.extend(row.attributes.metadata);
            self.lost.extend(lost);
            self.families.push(row.family);
            return Ok(vec![line]);
        };
        if self.lists.contains(&list) {
            return Ok(Vec::new());
        }
        self.lists.push(list);
        let Some(Value::List(elements)) = self.object.fields.get(list) else { return Ok(Vec::new()) };
        self.families.push(row.family);
        self.used.push(list);
        // A field that repeats the first element is written with it, unless it differs.
        if let Some(first) = elements.first() {
            let fields = &self.object.fields;
            let repeats = |(field, double): &&(super::Field, super::Field)| {
                with_element(first, |first| first.get(*field) == fields.get(*double))
            };
            self.used.extend(row.attributes.mirror.iter().filter(repeats).map(|(_, double)| *double));
        }
        let mut lines = Vec::with_capacity(elements.len());
        for (index, element) in elements.iter().enumerate() {
            match self.element(list, element).map_err(refused)? {
                Some((line, lost)) => {
                    lines.push(line);
                    let path = |path: String| format!("{}.{index}.{path}", list.path());
                    self.lost.extend(lost.into_iter().map(|(field, value)| (path(field), value)));
                }
                None => self.lost.push((format!("{}.{index}", list.path()), element.to_string())),
            }
        }
        Ok(lines)
    }

    /// Writes an element of a list by the first row that can, with what of it is not in the line.
    #[expect(clippy::type_complexity, reason = "a line and what is lost, used once")]
    fn element(
        &self,
        list: super::Field,
        element: &Value,
    ) -> Result<Option<(String, Vec<(String, String)>)>, Complaint> {
        with_element(element, |fields| {
            let mut rows = directives().rows(self.object.kind, self.cx.api).filter(|row| {
                row.attributes.list == Some(list) && row.attributes.direction != Direction::Read
            });
            let written = rows.find_map(|row| {
                let line = write_row(row, fields, self.site).transpose()?;
                Some(line.map(|mut written| {
                    append_comment(
                        &mut written.line,
                        row.attributes.metadata.and_then(|field| fields.get(field)),
                    );
                    written.used.extend(row.attributes.metadata);
                    let mut lost = unwritten(None, fields, &written.used);
                    lost.append(&mut written.lost);
                    (written.line, lost)
                }))
            });
            written.transpose()
        })
    }

    /// Returns whether all that the section says is written.
    fn finish(mut self) -> Result<(), ModelError> {
        let kind = self.object.kind;
        // The line that opens the section is written for itself.
        if let Ok((_, header)) =
            self.object.first(directives().headers(kind, self.cx.api), self.site, self.cx)
        {
            self.used.extend(header.used);
        }
        let mut lost = unwritten(Some(kind), &self.object.fields, &self.used);
        lost.append(&mut self.lost);
        if lost.is_empty() { Ok(()) } else { Err(ModelError::unwritten(kind, self.cx.api, lost)) }
    }
}

/// Appends what an object keeps of its comment.
fn append_comment(line: &mut String, metadata: Option<&Value>) {
    if let Some(Value::Json(json)) = metadata {
        line.push_str(" # ");
        line.push_str(&json.to_string());
    }
}

fn push(out: &mut Vec<u8>, indentation: &str, line: &str, kind: ObjectKind) -> Result<(), ModelError> {
    // Blanks in quotes make this more than there are: only then they are counted.
    if line.split(' ').count() > MAX_WORDS && Line::of(line.as_bytes()).words().count() > MAX_WORDS {
        let why = format!("a line of it would have more than {MAX_WORDS} words");
        return Err(ModelError::refused(kind, &Fields::default(), Complaint::new(why)));
    }
    out.extend_from_slice(indentation.as_bytes());
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
    Ok(())
}
