//! What is never shown: the fields that rows call secret, and the words of lines that hold them.

use rustc_hash::FxHashSet;

use super::grammar::{Item, Piece, first_word};
use super::{Row, collect_fields};
use crate::model::{Field, Fields, Value};
use crate::text::Line;

/// What is shown instead of a secret.
const SECRET: &str = "(secret)";
/// What is shown of one that takes the place of another.
const ANOTHER: &str = "(another secret)";

/// The secrets of the table.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    fields: FxHashSet<Field>,
    /// The words after which a word is a secret.
    after: FxHashSet<&'static str>,
    /// The words after which a part of a word is a secret: what follows a colon.
    after_colon: FxHashSet<&'static str>,
}

impl Secrets {
    pub(super) fn of(rows: &[Row]) -> Self {
        let mut secrets = Self::default();
        for row in rows {
            if let Some(field) = row.secret {
                secrets.fields.insert(field);
                secrets.note(&row.items, &[field]);
            }
            let options = row.items.iter().filter_map(|item| match item {
                Item::Options(options) => Some(&options.entries),
                _ => None,
            });
            for entry in options.flatten().filter(|entry| entry.secret) {
                let mut fields = Vec::new();
                collect_fields(&entry.items, &mut fields);
                secrets.note(&entry.items, &fields);
                secrets.fields.extend(fields);
            }
        }
        secrets
    }

    /// Notes the words before secret values.
    fn note(&mut self, items: &[Item], fields: &[Field]) {
        for pair in items.windows(2) {
            let [before, item] = pair else { continue };
            let Some(word) = first_word(before) else { continue };
            match item {
                Item::Value { field, .. } if fields.contains(field) => {
                    self.after.insert(word);
                }
                Item::Pattern { pieces, .. } => {
                    let is_secret =
                        |piece: &Piece| matches!(piece, Piece::Value { field, .. } if fields.contains(field));
                    if pieces.iter().any(is_secret) {
                        self.after_colon.insert(word);
                    }
                }
                _ => {}
            }
        }
    }

    /// Shows two values of a field, none of which gives a secret away.
    pub(crate) fn shown(
        &self,
        field: Field,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> (Option<String>, Option<String>) {
        let show = |value: Option<&Value>| value.map(|value| self.value(field, value));
        let (before, mut after) = (show(old), show(new));
        if before == after
            && let Some(after) = &mut after
        {
            *after = after.replace(SECRET, ANOTHER);
        }
        (before, after)
    }

    fn value(&self, field: Field, value: &Value) -> String {
        if self.fields.contains(&field) {
            return SECRET.to_owned();
        }
        match value {
            Value::List(values) => {
                values.iter().map(|value| self.value(field, value)).collect::<Vec<_>>().join(", ")
            }
            Value::Object(fields) => self.object(fields),
            value => value.to_string(),
        }
    }

    fn object(&self, fields: &Fields) -> String {
        let show = |(field, value): &(Field, Value)| format!("{field}={}", self.value(*field, value));
        fields.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    /// Shows a line without the secrets in it. Comments are shown as they are.
    pub(crate) fn line(&self, line: &Line<'_>) -> String {
        let raw = line.raw();
        let (mut shown, mut at) = (String::new(), line.indentation().len());
        let mut before: Option<String> = None;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for word in line.words() {
            let start = usize::try_from(word.column).unwrap_or(1).saturating_sub(1);
            shown.push_str(&text(raw.get(at..start).unwrap_or_default()));
            at = start + word.raw.len();
            let is_after = |words: &FxHashSet<&'static str>| {
                before.as_deref().is_some_and(|before| words.contains(before))
            };
            let spelled = text(word.raw);
            match spelled.split_once(':').filter(|_| is_after(&self.after_colon)) {
                _ if is_after(&self.after) => shown.push_str(SECRET),
                Some((visible, _)) => {
                    shown.push_str(visible);
                    shown.push(':');
                    shown.push_str(SECRET);
                }
                None => shown.push_str(&spelled),
            }
            before = Some(word.to_str_lossy().into_owned());
        }
        shown.push_str(&text(raw.get(at..).unwrap_or_default()));
        shown.trim().to_owned()
    }
}
