//! What is never shown: the fields that rows call secret, and the words of lines that hold them.
//!
//! Rows decide first. Text that no row decides about is hidden rather than shown where it follows the name of a credential:
//! a header, a cookie or a variable that is called like one, the key of a converter, `password=…` in a body, the password of
//! a URL. A comment is hidden beside a secret. In a line that is wrong, words that are like those before secrets count as these.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Row;
use super::attributes::{Attributes, SecretIf};
use super::grammar::{Item, Piece, Type, first_word};
use crate::keywords::secret_arguments;
use crate::model::{Field, Fields, Value};
use crate::text::{Line, nearest};

/// What is shown instead of a secret.
pub(crate) const SECRET: &str = "(secret)";
/// What is shown of one that takes the place of another.
const ANOTHER: &str = "(another secret)";

/// What begins credentials in headers.
const SCHEMES: [&str; 2] = ["BASIC ", "BEARER "];

/// Parts of names of credentials: of headers, cookies, variables.
pub(super) const NAMES: [&str; 12] = [
    "AUTHORIZATION",
    "AUTH-KEY",
    "AUTH_KEY",
    "API-KEY",
    "API_KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASS",
    "PWD",
    "CREDENTIAL",
    "COOKIE",
];

/// How many words of a line that is wrong are held to those that stand before secrets.
const LOOKED_AT: usize = 64;

/// Words that end what belongs to the name of a credential.
const ENDS: [&str; 7] = ["if", "unless", "{", "}", "||", "or", "OR"];

/// The secrets of the table.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    fields: FxHashSet<Field>,
    /// The field that holds comments.
    metadata: Option<Field>,
    /// The fields that are secrets where another field holds something.
    conditions: Vec<SecretIf>,
    /// The words after which a word is a secret, each with the word before it where that decides.
    after: FxHashSet<(Option<&'static str>, &'static str)>,
    /// The words after which all words are secrets, but for so many at first.
    before_rest: FxHashMap<&'static str, usize>,
    /// The words after which a part of a word is a secret: what follows a colon.
    after_colon: FxHashSet<&'static str>,
    /// The words after which the second word is a secret where the first holds one of some parts.
    after_name: FxHashMap<&'static str, Vec<&'static str>>,
    /// Those of these words after which nothing but a condition follows the secret.
    ending: FxHashSet<&'static str>,
}

impl Secrets {
    pub(super) fn of(rows: &[Row], metadata: Option<Field>) -> Self {
        let mut secrets = Self { metadata, ..Self::default() };
        for row in rows {
            secrets.note(&row.items, &row.attributes, true);
            let options = row.items.iter().filter_map(|item| match item {
                Item::Options(options) => Some(&options.entries),
                _ => None,
            });
            for entry in options.flatten() {
                secrets.note(&entry.items, &entry.attributes, false);
            }
        }
        secrets
    }

    /// Notes the secrets of a row or an option, and the words before them.
    fn note(&mut self, items: &[Item], attributes: &Attributes, is_row: bool) {
        self.fields.extend(&attributes.secret);
        self.conditions.extend(attributes.secret_if.iter().cloned());
        let is_secret = |field: &Field| attributes.secret.contains(field);
        let items = flat(items);
        let word_at = |at: usize| items.get(at).copied().and_then(first_word);
        for (at, item) in items.iter().copied().enumerate() {
            let before = |back: usize| at.checked_sub(back).and_then(word_at);
            let rest = items.get(at + 1..).unwrap_or_default();
            let is_last = is_row && rest.iter().all(|item| matches!(item, Item::Condition { .. }));
            match item {
                Item::Value { field, ty: Type::Rest, .. } if is_secret(field) => {
                    let keyword = (0..at).rev().find_map(|place| Some((word_at(place)?, at - place - 1)));
                    self.before_rest.extend(keyword);
                }
                Item::Value { field, .. } => {
                    if let Some(word) = before(1).filter(|_| is_secret(field)) {
                        self.after.insert((before(2), word));
                        self.ending.extend(is_last.then_some(word));
                    }
                    let parts = attributes.secret_if.iter().filter(|condition| condition.secret == *field);
                    if let Some(word) = before(2) {
                        for condition in parts {
                            self.after_name.entry(word).or_default().extend(&condition.parts);
                            self.ending.extend(is_last.then_some(word));
                        }
                    }
                }
                Item::Pattern { pieces, .. } => {
                    let holds =
                        |piece: &Piece| matches!(piece, Piece::Value { field, .. } if is_secret(field));
                    if let Some(word) = before(1).filter(|_| pieces.iter().any(holds)) {
                        self.after_colon.insert(word);
                        self.ending.extend(is_last.then_some(word));
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
        if before == after {
            after = after.map(|after| another(&after));
        }
        (before, after)
    }

    /// Returns whether a secret follows a word, whatever stands before that.
    pub(super) fn is_before_secret(&self, word: &str) -> bool {
        self.after.iter().any(|(before, after)| before.is_none() && *after == word)
    }

    fn is_secret(&self, field: Field, beside: &Fields) -> bool {
        let holds = |condition: &SecretIf| {
            let other = beside.get(condition.field).and_then(Value::as_str).unwrap_or_default();
            condition.secret == field && has_part(other, &condition.parts)
        };
        let is_so = |field: Field| self.fields.contains(&field) || self.conditions.iter().any(holds);
        is_so(field)
            || self.metadata == Some(field) && beside.iter().any(|(other, _)| self.fields.contains(other))
    }

    /// Shows a value of a field, with the fields beside it, without the secrets in it.
    pub(crate) fn value(&self, field: Field, value: &Value, beside: &Fields) -> String {
        if self.is_secret(field, beside) {
            return SECRET.to_owned();
        }
        match value {
            Value::List(values) => {
                values.iter().map(|value| self.value(field, value, beside)).collect::<Vec<_>>().join(", ")
            }
            Value::Object(fields) => self.object(fields),
            Value::Text(text) => self.text(text),
            Value::Json(json) if is_credential(&json.to_string()) => SECRET.to_owned(),
            value => value.to_string(),
        }
    }

    /// Shows the fields of an object without the secrets in them.
    pub(crate) fn object(&self, fields: &Fields) -> String {
        let show = |(field, value): &(Field, Value)| format!("{field}={}", self.value(*field, value, fields));
        fields.iter().map(show).collect::<Vec<_>>().join(" ")
    }

    /// Shows a message about some fields without the secrets in them.
    pub(crate) fn message(&self, message: &str, fields: &Fields) -> String {
        let mut secrets = Vec::new();
        self.collect(fields, &mut secrets);
        hidden(message, &secrets)
    }

    fn collect(&self, fields: &Fields, secrets: &mut Vec<String>) {
        for (field, value) in fields {
            let values = match value {
                Value::List(values) => &**values,
                value => std::slice::from_ref(value),
            };
            for value in values {
                match value {
                    Value::Object(fields) => self.collect(fields, secrets),
                    value if self.is_secret(*field, fields) => secrets.push(value.to_string()),
                    Value::Text(text) if self.text(text) != text.as_str() => secrets.push(text.to_string()),
                    _ => {}
                }
            }
        }
    }

    /// Shows text that may be a part of a line.
    fn text(&self, text: &str) -> String {
        let is_line = !text.contains(['\n', '\r', '\0']);
        if is_credential(text) && (!is_line || !text.contains(['{', '('])) {
            return SECRET.to_owned();
        }
        let line = Line::of(text.as_bytes());
        let found = if is_line { self.in_line(&line) } else { Vec::new() };
        if found.is_empty() { text.to_owned() } else { masked(text.as_bytes(), &found) }
    }

    /// Shows a line without the secrets in it.
    pub(crate) fn line(&self, line: &Line<'_>) -> String {
        masked(line.raw(), &self.in_line(line)).trim().to_owned()
    }

    /// Returns which bytes of a line are secrets, in their order.
    pub(crate) fn in_line(&self, line: &Line<'_>) -> Vec<Range<usize>> {
        self.found_in(line, false)
    }

    /// Returns which bytes of a line that is wrong are secrets or may be: a word in it may be meant for one that stands before a
    /// secret, and what follows a secret for a part of it.
    pub(crate) fn in_wrong_line(&self, line: &Line<'_>) -> Vec<Range<usize>> {
        self.found_in(line, true)
    }

    fn found_in(&self, line: &Line<'_>, is_wrong: bool) -> Vec<Range<usize>> {
        let raw = line.raw();
        let mut found = Vec::new();
        let mut before: Vec<String> = Vec::new();
        let (mut end, mut follows_name, mut rest_from) = (0, false, usize::MAX);
        for (position, word) in line.words().enumerate() {
            let start = usize::try_from(word.column).unwrap_or(1).saturating_sub(1);
            end = start + word.raw.len();
            let written = word.to_str_lossy();
            let keyword = if is_wrong && position < LOOKED_AT { self.like(&written) } else { None };
            let meant = keyword.map_or_else(|| written.clone(), Cow::Borrowed);
            follows_name |= position >= rest_from;
            if !word.quoted && ENDS.contains(&&*written) {
                (follows_name, rest_from) = (false, usize::MAX);
            } else if follows_name && !is_flag(&written, before.last()) {
                found.push(start..end);
            } else if let Some(visible) = self.visible(word.raw, &written, &before) {
                found.push(start + visible..end);
                let mut keywords = before.iter().rev().take(2);
                follows_name |= is_wrong && keywords.any(|word| self.ending.contains(&**word));
            } else {
                found.extend(parts_of(word.raw).into_iter().map(|key| start + key.start..start + key.end));
            }
            follows_name |= written.split_once('(').is_some_and(|(_, arguments)| has_part(arguments, &NAMES));
            let rest = self.before_rest.get(&*meant).map(|skipped| position + 1 + skipped);
            rest_from = rest.unwrap_or(rest_from).min(rest_from);
            before.push(meant.into_owned());
        }
        let rest = raw.get(end..).unwrap_or_default();
        let start = end + rest.len() - rest.trim_ascii_start().len();
        let text = String::from_utf8_lossy(rest);
        let is_hidden = if line.error().is_some() {
            // What can't be split into words is one.
            follows_name
                || before.len() >= rest_from
                || !parts_of(rest).is_empty()
                || self.visible(text.trim_start().as_bytes(), &text, &before).is_some()
        } else {
            !found.is_empty() || is_credential(&text)
        };
        if is_hidden && start < raw.len() {
            let hash = usize::from(raw.get(start) == Some(&b'#'));
            found.push(start + hash..raw.len());
        }
        found
    }

    /// Finds a word that stands before secrets and that another one may be meant for.
    fn like(&self, word: &str) -> Option<&'static str> {
        let after = self.after.iter().map(|(_, word)| *word);
        let others = self.before_rest.keys().chain(&self.after_colon).chain(self.after_name.keys()).copied();
        // Length and ends of a word rule out most others.
        let ends = |word: &str| (word.bytes().next(), word.bytes().next_back());
        let (first, last) = ends(word);
        let is_near = |other: &&'static str| {
            let (other_first, other_last) = ends(other);
            (first == other_first || last == other_last) && word.len().abs_diff(other.len()) * 3 <= word.len()
        };
        nearest(word, after.chain(others).filter(is_near))
    }

    /// Returns how much can be shown of a word that is a secret: who logs in is none.
    fn visible(&self, raw: &[u8], meant: &str, before: &[String]) -> Option<usize> {
        let back = |count: usize| before.len().checked_sub(count).and_then(|at| before.get(at));
        let (last, second) = (back(1).map(String::as_str), back(2).map(String::as_str));
        let is_after = last.is_some_and(|last| {
            let pair = |pair: &(Option<&str>, &str)| pair.1 == last && (pair.0.is_none() || pair.0 == second);
            self.after.iter().any(pair)
        });
        let is_named = second
            .and_then(|keyword| self.after_name.get(keyword))
            .is_some_and(|parts| last.is_some_and(|name| has_part(name, parts)));
        if is_after || is_named || is_credential(meant) {
            return Some(0);
        }
        let is_login = last.is_some_and(|last| self.after_colon.contains(last));
        let colon = raw.iter().position(|byte| *byte == b':').filter(|_| is_login)?;
        Some(colon + 1)
    }
}

/// Returns whether a word is a flag of an ACL, or what the flag before it needs.
fn is_flag(word: &str, before: Option<&String>) -> bool {
    word.starts_with('-') || before.is_some_and(|before| matches!(before.as_str(), "-m" | "-f" | "-M"))
}

/// Returns some items, and those that may be left out in their places.
fn flat(items: &[Item]) -> Vec<&Item> {
    let mut found = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Item::Optional(items) => found.extend(flat(items)),
            item => found.push(item),
        }
    }
    found
}

/// Shows what is hidden of a line or a value that takes the place of one that is shown alike.
pub(crate) fn another(shown: &str) -> String {
    shown.replace(SECRET, ANOTHER)
}

/// Returns the parts of a word that are secrets: keys of converters and passwords of URLs, in their order.
fn parts_of(word: &[u8]) -> Vec<Range<usize>> {
    let mut parts = keys(word);
    parts.extend(passwords(word));
    parts.sort_by_key(|part| part.start);
    parts
}

/// Returns the passwords of the URLs in a word, as in `https://user:password@host/`.
fn passwords(word: &[u8]) -> Vec<Range<usize>> {
    const SEPARATOR: &[u8] = b"://";
    let mut found = Vec::new();
    for at in memchr::memmem::find_iter(word, SEPARATOR) {
        let start = at + SEPARATOR.len();
        let rest = word.get(start..).unwrap_or_default();
        let length = rest.iter().position(|byte| b"/?# \t\"'".contains(byte)).unwrap_or(rest.len());
        let authority = rest.get(..length).unwrap_or_default();
        let Some(end) = memchr::memrchr(b'@', authority) else { continue };
        let login = authority.get(..end).unwrap_or_default();
        let colon = memchr::memchr(b':', login).filter(|colon| colon + 1 < end);
        found.extend(colon.map(|colon| start + colon + 1..start + end));
    }
    found
}

/// Returns the keys that a word gives to converters, in their order.
fn keys(word: &[u8]) -> Vec<Range<usize>> {
    let mut keys = Vec::new();
    if memchr::memchr(b'(', word).is_none() {
        return keys;
    }
    for (name, secrets) in secret_arguments() {
        for at in memchr::memmem::find_iter(word, name.as_bytes()) {
            let open = at + name.len();
            if word.get(open) != Some(&b'(') {
                continue;
            }
            let end = word.get(open..).and_then(|rest| memchr::memchr(b')', rest));
            let end = end.map_or(word.len(), |length| open + length);
            let mut start = open + 1;
            for (position, argument) in
                word.get(start..end).unwrap_or_default().split(|byte| *byte == b',').enumerate()
            {
                if secrets.contains(&position) && !argument.is_empty() {
                    keys.push(start..start + argument.len());
                }
                start += argument.len() + 1;
            }
        }
    }
    keys.sort_by_key(|key| key.start);
    keys.dedup();
    keys
}

/// Shows some text without the bytes that are secrets.
pub(crate) fn masked(text: &[u8], secrets: &[Range<usize>]) -> String {
    let (mut shown, mut at) = (String::new(), 0);
    for secret in secrets {
        if secret.start >= at {
            shown.push_str(&String::from_utf8_lossy(text.get(at..secret.start).unwrap_or_default()));
            shown.push_str(SECRET);
        }
        at = at.max(secret.end);
    }
    shown.push_str(&String::from_utf8_lossy(text.get(at..).unwrap_or_default()));
    shown
}

/// Shows a message without the secrets in it, and without what it quotes of them. A secret that is shorter than any word is
/// hidden only where it is quoted: otherwise it would be found in every word.
pub(crate) fn hidden(message: &str, secrets: &[String]) -> String {
    const SHORTEST: usize = 4;
    let mut shown = message.to_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= SHORTEST) {
        shown = shown.replace(secret.as_str(), SECRET);
    }
    let is_quote = |part: &str| {
        secrets.iter().any(|secret| secret == part || part.len() >= SHORTEST && secret.contains(part))
    };
    let parts = shown.split('`').enumerate();
    let parts = parts.map(|(at, part)| if at % 2 == 1 && is_quote(part) { SECRET } else { part });
    parts.collect::<Vec<_>>().join("`")
}

/// Returns whether a name holds one of some parts, whatever its case.
fn has_part(name: &str, parts: &[&str]) -> bool {
    let name = name.to_ascii_uppercase();
    parts.iter().any(|part| name.contains(part))
}

/// Returns whether text holds a credential: a scheme with what follows it, or the name of one with a value.
fn is_credential(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    let has_value = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let rest = text.get(at + name.len()..).unwrap_or_default();
            let rest =
                rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '"'));
            rest.strip_prefix([':', '=']).is_some_and(|value| !value.trim().is_empty())
        })
    };
    SCHEMES.iter().any(|scheme| text.contains(scheme)) || NAMES.into_iter().any(has_value)
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
            ("server s 10.0.0.1:80 # password: x", "server s 10.0.0.1:80 #(secret)"),
            ("stats auth admin:new # was x", "stats auth admin:(secret) #(secret)"),
            ("stats auth \"admin:x", "stats auth \"admin:(secret)"),
            ("tcp-check send \"AUTH x\\r\\n\"", "tcp-check send (secret)"),
            ("http-check send meth GET body \"a=x\"", "http-check send meth GET body (secret)"),
            ("option httpchk GET / HTTP/1.0\\r\\nAuthorization:\\ x", "option httpchk GET / (secret)"),
            ("ssl-passphrase-cmd /bin/echo x", "ssl-passphrase-cmd (secret) (secret)"),
            ("setenv DB_PW x", "setenv DB_PW (secret)"),
            ("set-var proc.password str(x)", "set-var proc.password (secret)"),
            ("http-request set-var(txn.token) str(x) if a", "http-request set-var(txn.token) (secret) if a"),
            (
                "acl a req.hdr(authorization) -m str \"Bearer x\"",
                "acl a req.hdr(authorization) -m str (secret)",
            ),
            (
                "http-request deny unless { req.hdr(X-Api-Key) x } a",
                "http-request deny unless { req.hdr(X-Api-Key) (secret) } a",
            ),
            (
                "http-request deny if { req.hdr(a),hmac(sha256,x) -m bin 00 }",
                "http-request deny if { req.hdr(a),hmac(sha256,(secret)) -m bin 00 }",
            ),
            (
                "http-request set-var(txn.a) req.hdr(a),jwt_decrypt_secret(s3cret)",
                "http-request set-var(txn.a) req.hdr(a),jwt_decrypt_secret((secret))",
            ),
            (
                "http-request set-var(txn.a) bin(00),aes_gcm_enc(128,n,k,txn.t)",
                "http-request set-var(txn.a) bin(00),aes_gcm_enc(128,(secret),(secret),txn.t)",
            ),
            ("http-request set-header Cookie \"session=x\"", "http-request set-header Cookie (secret)"),
            ("server s 10.0.0.1:80 check send-proxy", "server s 10.0.0.1:80 check send-proxy"),
            (
                "http-request redirect location \"https://user:x@h/a\" code 302",
                "http-request redirect location \"https://user:(secret)@h/a\" code 302",
            ),
            (
                "http-request redirect location http://h:80/a@b:c",
                "http-request redirect location http://h:80/a@b:c",
            ),
            ("server s 10.0.0.1:80 agent-send x check", "server s 10.0.0.1:80 agent-send (secret) check"),
            ("lua-load /a.lua token x", "lua-load /a.lua (secret) (secret)"),
        ] {
            let document = Document::parse(format!("global\n  {text}\n").as_bytes());
            let section = document.sections().first().unwrap();
            let line = section.lines().next().unwrap();
            assert_eq!(accepted().secrets().line(&line), shown);
        }
    }
}
