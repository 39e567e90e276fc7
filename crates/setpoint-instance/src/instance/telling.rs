//! What a running HAProxy is told of files that hold something else: entries of maps, patterns, certificates, authorities.
//!
//! Who tells says what came of it: what HAProxy can't be told of comes with a reload.

use std::path::Path;

use setpoint_haproxy::text::Document;

use super::Instance;
use crate::blocking::run_blocking;
use crate::cli::{Request, SocketError};
use crate::runtime::{ListEntry, ListKind, Reply, Worker, names_of};

impl Instance {
    /// Tells the running HAProxy the entries of a file that it has loaded. Returns whether it has them now; it can't if the
    /// configuration uses the file for something else, too.
    pub async fn tell_entries(&self, kind: ListKind, path: &Path, bytes: &[u8]) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if run_blocking(|| uses_otherwise(&self.snapshot().whole(), kind, &name)) {
            return false;
        }
        let Some(entries) = ListEntry::read(kind, bytes) else { return false };
        let (worker, folder) = (self.worker(), &self.settings().working_directory);
        let Ok(lists) = worker.lists_of(kind, path, folder).await else { return false };
        let other = match kind {
            ListKind::Map => ListKind::Acl,
            ListKind::Acl => ListKind::Map,
        };
        // By another way of writing its path, HAProxy may have loaded it as the other, too.
        if !worker.lists_of(other, path, folder).await.is_ok_and(|lists| lists.is_empty()) {
            return false;
        }
        for list in &lists {
            if let Err(error) = worker.replace_entries(kind, list, &entries).await {
                tracing::warn!(%error, list, "entries could not be told, and come with a reload");
                return false;
            }
        }
        !lists.is_empty()
    }

    /// Tells the running HAProxy what a file holds that is neither a map nor a certificate: authorities, a list of revoked
    /// certificates, or patterns of an ACL. Returns whether it uses it now.
    pub async fn tell_general(&self, path: &Path, bytes: &[u8]) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = self.snapshot().print();
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut lines = text.lines().filter(|line| line.contains(&name));
        let kind = ["ca-file", "crl-file"].into_iter().find(|word| text_uses(&text, word, &name));
        match kind {
            // It can't be told to both.
            Some(kind) => {
                lines.all(|line| line.contains(&format!("{kind} ")))
                    && self.tell_ssl_file(kind, path, bytes).await
            }
            None => self.tell_entries(ListKind::Acl, path, bytes).await,
        }
    }

    /// Tells the running HAProxy another content of a file for TLS: of a `cert`, a `ca-file` or a `crl-file`, by all names that it
    /// has for the file. Returns whether it uses it now; it does not if it never loaded the file, or if the text does not fit into
    /// its buffer.
    pub async fn tell_ssl_file(&self, kind: &'static str, path: &Path, bytes: &[u8]) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = self.snapshot().print();
        // A certificate of a `crt-store` may have a name from which nobody knows its file.
        let is_alias = |line: &str| line.trim_start().starts_with("load ") && line.contains(&name);
        if String::from_utf8_lossy(&text).lines().any(is_alias) {
            return false;
        }
        let (worker, folder) = (self.worker(), &self.settings().working_directory);
        let Ok(names) = loaded(&worker, kind, path, folder).await else { return false };
        for name in &names {
            if !self.tell_ssl(kind, name, bytes).await {
                return false;
            }
        }
        !names.is_empty()
    }

    /// Tells the running HAProxy another content of a file for TLS that it knows by a name. Returns whether it uses it now.
    pub async fn tell_ssl(&self, kind: &'static str, name: &str, bytes: &[u8]) -> bool {
        let worker = self.worker();
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        if !worker.takes_payloads() {
            return false;
        }
        let command = |verb: &'static str| {
            Request::new(verb).word("ssl").and_then(|it| it.word(kind)).and_then(|it| it.word(name))
        };
        let set = command("set").and_then(|set| set.payload(&without_empty_lines(text)));
        let (Ok(set), Ok(commit), Ok(abort)) = (set, command("commit"), command("abort")) else {
            return false;
        };
        match worker.tell(&set).await {
            Ok(Reply::Done(answer)) if answer.to_lowercase().contains("transaction") => {}
            _ => return false,
        }
        match worker.tell(&commit).await {
            Ok(Reply::Done(answer)) if answer.contains("Success") => true,
            _ => {
                let _ = worker.tell(&abort).await;
                false
            }
        }
    }

    /// Tells the running HAProxy what who pushes a text without a reload says of it. What nobody knows is passed over, as the
    /// original does. An error is the first action that HAProxy refused; the others are told all the same.
    pub async fn tell_actions(&self, actions: &str) -> Result<(), String> {
        let (worker, mut refused) = (self.worker(), Ok(()));
        for action in actions.split(';') {
            let words: Vec<&str> = action.split_ascii_whitespace().collect();
            let request = match words.as_slice() {
                ["SetServerWeight", backend, server, weight] => set(backend, server, &["weight", weight]),
                ["SetServerState", backend, server, state] => set(backend, server, &["state", state]),
                ["SetServerHealth", backend, server, health] => set(backend, server, &["health", health]),
                ["SetServerAddr", backend, server, address, port] => {
                    set(backend, server, &["addr", address, "port", port])
                }
                ["SetFrontendMaxConn", frontend, number] => {
                    Request::new("set maxconn frontend").word(frontend).and_then(|it| it.word(number)).ok()
                }
                ["EnableServer", backend, server] => set(backend, server, &["state", "ready"]),
                ["DisableServer", backend, server] => set(backend, server, &["state", "maint"]),
                _ => None,
            };
            let Some(request) = request else {
                tracing::warn!(action, "a runtime action is not known");
                continue;
            };
            let why = match worker.tell(&request).await {
                Ok(Reply::Done(_)) => continue,
                Ok(Reply::Refused(why)) => why,
                Err(error) => error.to_string(),
            };
            tracing::warn!(action, why, "a runtime action failed");
            refused =
                refused.and_then(|()| Err(format!("HAProxy refused the runtime action `{action}`: {why}")));
        }
        refused
    }
}

/// The names by which HAProxy has loaded a file of a kind (`cert`, `ca-file`, `crl-file` or `crt-list`): one for each way in which
/// the configuration writes its path; none if it has not.
pub async fn loaded(
    worker: &Worker,
    kind: &'static str,
    path: &Path,
    working_directory: &Path,
) -> Result<Vec<String>, SocketError> {
    let Ok(request) = Request::new("show ssl").word(kind) else { return Ok(Vec::new()) };
    let Reply::Done(answer) = worker.ask(&request).await? else { return Ok(Vec::new()) };
    let lines = answer.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    // Beside a file of authorities it says how many they are.
    let names = lines.map(|line| line.rsplit_once(" - ").map_or(line, |(name, _)| name).to_owned());
    Ok(names_of(path, working_directory, names))
}

/// Returns whether a configuration names a file as something else than a list of this kind.
fn uses_otherwise(configuration: &Document, kind: ListKind, name: &str) -> bool {
    let lines = configuration.sections().iter().flat_map(|section| section.all_lines());
    let mut naming = lines.filter(|line| String::from_utf8_lossy(line.raw()).contains(name));
    naming.any(|line| {
        let words: Vec<String> = line.words().map(|word| word.to_str_lossy().into_owned()).collect();
        words.iter().enumerate().any(|(number, word)| {
            let before = number.checked_sub(1).and_then(|number| words.get(number));
            let is_list = match kind {
                ListKind::Map => is_map(word, name),
                ListKind::Acl => before.is_some_and(|before| before == "-f"),
            };
            word.contains(name) && !is_list
        })
    })
}

/// Returns whether a word names a file as that of a map only: `map_beg(/maps/a.map)`, `set-map(a.map)`.
fn is_map(word: &str, name: &str) -> bool {
    word.match_indices(name).all(|(at, _)| {
        let before = word.get(..at).and_then(|before| before.rsplit_once('('));
        before.is_some_and(|(converter, path)| {
            let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let converter = converter.rsplit(|letter| !is_of_name(letter)).next().unwrap_or_default();
            !path.contains([',', ')']) && (converter == "map" || converter.starts_with("map_"))
        })
    })
}

/// Returns whether a line of a configuration names a file behind a word.
fn text_uses(text: &str, word: &str, name: &str) -> bool {
    text.lines().any(|line| line.split_once(word).is_some_and(|(_, rest)| rest.contains(name)))
}

/// A payload has no empty lines.
pub fn without_empty_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    format!("{}\n", lines.join("\n"))
}

fn set(backend: &str, server: &str, words: &[&str]) -> Option<Request> {
    let path = format!("{backend}/{server}");
    let mut request = Request::new("set server").word(&path).ok()?;
    for word in words {
        request = request.word(word).ok()?;
    }
    Some(request)
}
