//! What is never shown: the fields that rows call secret, and the words of lines that hold them.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Row;
use super::attributes::{Attributes, SecretIf};
use super::grammar::{Item, Piece, first_word};
use crate::model::{Field, Fields, Value};
use crate::text::Line;

/// What is shown instead of a secret.
const SECRET: &str = "(secret)";
/// What is shown of one that takes the place of another.
const ANOTHER: &str = "(another secret)";

/// What begins the values of headers that let someone in.
const SCHEMES: [&str; 2] = ["Basic ", "Bearer "];

/// The secrets of the table.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    fields: FxHashSet<Field>,
    /// The fields that are secrets where another field holds something.
    conditions: Vec<SecretIf>,
    /// The words after which a word is a secret.
    after: FxHashSet<&'static str>,
    /// The words after which a part of a word is a secret: what follows a colon.
    after_colon: FxHashSet<&'static str>,
    /// The words after which the second word is a secret where the first holds one of some parts.
    after_name: FxHashMap<&'static str, Vec<&'static str>>,
}

impl Secrets {
    pub(super) fn of(rows: &[Row]) -> Self {
        let mut secrets = Self::default();
        for row in rows {
            secrets.note(&row.items, &row.attributes);
            let options = row.items.iter().filter_map(|item| match item {
                Item::Options(options) => Some(&options.entries),
                _ => None,
            });
            for entry in options.flatten() {
                secrets.note(&entry.items, &entry.attributes);
            }
        }
        secrets
    }

    /// Notes the secrets of a row or an option, and the words before them.
    fn note(&mut self, items: &[Item], attributes: &Attributes) {
        self.fields.extend(&attributes.secret);
        self.conditions.extend(attributes.secret_if.iter().cloned());
        let is_secret = |field: &Field| attributes.secret.contains(field);
        for (at, item) in items.iter().enumerate() {
            let before = |back: usize| at.checked_sub(back).and_then(|at| items.get(at)).and_then(first_word);
            match item {
                Item::Value { field, .. } => {
                    if let Some(word) = before(1).filter(|_| is_secret(field)) {
                        self.after.insert(word);
                    }
                    let parts = attributes.secret_if.iter().filter(|condition| condition.secret == *field);
                    if let Some(word) = before(2) {
                        for condition in parts {
                            self.after_name.entry(word).or_default().extend(&condition.parts);
                        }
                    }
                }
                Item::Pattern { pieces, .. } => {
                    let holds =
                        |piece: &Piece| matches!(piece, Piece::Value { field, .. } if is_secret(field));
                    if let Some(word) = before(1).filter(|_| pieces.iter().any(holds)) {
                        self.after_colon.insert(word);
                    }
                }
                _ => {}
            }
        }
    }

    /// Shows two values of a field, none of which gives a secret away. Each comes with the fields beside it.
    pub(crate) fn shown(
        &self,
        field: Field,
        old: Option<(&Value, &Fields)>,
        new: Option<(&Value, &Fields)>,
    ) -> (Option<String>, Option<String>) {
        let show =
            |value: Option<(&Value, &Fields)>| value.map(|(value, beside)| self.value(field, value, beside));
        let (before, mut after) = (show(old), show(new));
        if before == after
            && let Some(after) = &mut after
        {
            *after = after.replace(SECRET, ANOTHER);
        }
        (before, after)
    }

    fn is_secret(&self, field: Field, beside: &Fields) -> bool {
        let holds = |condition: &SecretIf| {
            let other = beside.get(condition.field).and_then(Value::as_str).unwrap_or_default();
            condition.secret == field && has_part(other, &condition.parts)
        };
        self.fields.contains(&field) || self.conditions.iter().any(holds)
    }

    fn value(&self, field: Field, value: &Value, beside: &Fields) -> String {
        if self.is_secret(field, beside) {
            return SECRET.to_owned();
        }
        match value {
            Value::List(values) => {
                values.iter().map(|value| self.value(field, value, beside)).collect::<Vec<_>>().join(", ")
            }
            Value::Object(fields) => self.object(fields),
            Value::Text(text) if lets_in(text) => SECRET.to_owned(),
            value => value.to_string(),
        }
    }

    fn object(&self, fields: &Fields) -> String {
        let show = |(field, value): &(Field, Value)| format!("{field}={}", self.value(*field, value, fields));
        fields.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    /// Shows a line without the secrets in it. Comments are shown as they are.
    pub(crate) fn line(&self, line: &Line<'_>) -> String {
        let raw = line.raw();
        let (mut shown, mut at) = (String::new(), line.indentation().len());
        let mut before: Vec<String> = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for word in line.words() {
            let start = usize::try_from(word.column).unwrap_or(1).saturating_sub(1);
            shown.push_str(&text(raw.get(at..start).unwrap_or_default()));
            at = start + word.raw.len();
            let spelled = text(word.raw);
            let meant = word.to_str_lossy();
            let visible = self.visible(&spelled, &meant, &before);
            match visible {
                Some(visible) => {
                    shown.push_str(visible);
                    shown.push_str(SECRET);
                }
                None => shown.push_str(&spelled),
            }
            before.push(meant.into_owned());
        }
        shown.push_str(&text(raw.get(at..).unwrap_or_default()));
        shown.trim().to_owned()
    }

    /// Returns what can be shown of a word that is a secret: who logs in is none.
    fn visible<'w>(&self, spelled: &'w str, meant: &str, before: &[String]) -> Option<&'w str> {
        let back = |count: usize| before.len().checked_sub(count).and_then(|at| before.get(at));
        let is_after =
            |words: &FxHashSet<&'static str>| back(1).is_some_and(|before| words.contains(before.as_str()));
        let is_named = back(2)
            .and_then(|keyword| self.after_name.get(keyword.as_str()))
            .is_some_and(|parts| back(1).is_some_and(|name| has_part(name, parts)));
        if is_after(&self.after) || is_named || lets_in(meant) {
            return Some("");
        }
        let colon = spelled.find(':').filter(|_| is_after(&self.after_colon))?;
        spelled.get(..=colon)
    }
}

/// Returns whether a name holds one of some parts, whatever its case.
fn has_part(name: &str, parts: &[&str]) -> bool {
    let name = name.to_ascii_uppercase();
    parts.iter().any(|part| name.contains(part))
}

/// Returns whether a value lets someone in who sends it.
fn lets_in(text: &str) -> bool {
    let bare = text.trim_start_matches(['"', '\'', ' ']);
    SCHEMES.iter().any(|scheme| bare.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use crate::table::accepted;
    use crate::text::Document;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        for (text, shown) in [
            ("user a password $6$x", "user a password (secret)"),
            ("user a insecure-password \"two words\" groups g", "user a insecure-password (secret) groups g"),
            ("stats auth admin:s3cret", "stats auth admin:(secret)"),
            ("bind :443 ssl ca-sign-pass x crt y", "bind :443 ssl ca-sign-pass (secret) crt y"),
            ("server s 10.0.0.1:80 tcp-md5sig x", "server s 10.0.0.1:80 tcp-md5sig (secret)"),
            ("dynamic-cookie-key k", "dynamic-cookie-key (secret)"),
            ("cluster-secret k", "cluster-secret (secret)"),
            ("anonkey 12", "anonkey (secret)"),
            ("eab-mac-key k", "eab-mac-key (secret)"),
            ("setenv DB_PASSWORD x", "setenv DB_PASSWORD (secret)"),
            ("presetenv api_token x", "presetenv api_token (secret)"),
            ("setenv PORT 80", "setenv PORT 80"),
            (
                "http-request set-header Authorization \"x y\"",
                "http-request set-header Authorization (secret)",
            ),
            ("http-request add-header X-Api-Key k if a", "http-request add-header X-Api-Key (secret) if a"),
            ("http-check send hdr Authorization x", "http-check send hdr Authorization (secret)"),
            ("http-request set-header X-Any \"Basic eA==\"", "http-request set-header X-Any (secret)"),
            ("http-request auth realm x", "http-request auth realm x"),
            ("server s 10.0.0.1:80 # password", "server s 10.0.0.1:80 # password"),
        ] {
            let document = Document::parse(format!("global\n  {text}\n").as_bytes());
            let section = document.sections().first().unwrap();
            let line = section.lines().next().unwrap();
            assert_eq!(accepted().secrets().line(&line), shown);
        }
    }
}
