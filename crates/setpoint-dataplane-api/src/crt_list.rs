//! Lists of certificates in the storage: their entries, and what a running HAProxy is told of them.

use std::path::Path;

use serde_json::{Value as Json, json};
use setpoint_instance::cli::Request as CliRequest;
use setpoint_instance::instance::loaded;
use setpoint_instance::runtime::{Reply, Worker};

use crate::Api;
use crate::answer::{Answer, Problem};
use crate::request::Request;
use crate::storage::{Effect, settle};
use crate::table::{Stored, Verb};

impl Api {
    /// The lines of a list of certificates.
    pub(crate) async fn crt_list_entries(
        &self,
        verb: Verb,
        name: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let text = String::from_utf8_lossy(&self.storage.folder(Stored::CrtList).read(name)?).into_owned();
        match verb {
            Verb::List => Ok(Answer::json(200, text.lines().filter_map(entry).collect())),
            Verb::Create => {
                let body = request.json()?;
                let Some(line) = line_of(&body) else {
                    return Err(Problem::new(422, "file in body is required"));
                };
                let joint = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                let new = format!("{text}{joint}{line}\n");
                let effect = self.change_crt_list(name, new.as_bytes(), request).await?;
                Ok(effect.answer(202, 201, |status| Answer::json(status, body)))
            }
            _ => {
                let certificate = request.required("certificate")?;
                let number = request.number("line_number")?.and_then(|number| usize::try_from(number).ok());
                let is_it = |(at, line): &(usize, &str)| {
                    number.is_none_or(|number| number == at + 1)
                        && line.split_ascii_whitespace().next() == Some(certificate)
                };
                let Some((at, _)) = text.lines().enumerate().find(is_it) else {
                    return Err(Problem::new(
                        404,
                        format!("missing object: entry {certificate} does not exist"),
                    ));
                };
                let kept = text.lines().enumerate().filter(|(line, _)| *line != at);
                let kept: Vec<&str> = kept.map(|(_, line)| line).collect();
                let end = if kept.is_empty() { "" } else { "\n" };
                let new = format!("{}{end}", kept.join("\n"));
                let effect = self.change_crt_list(name, new.as_bytes(), request).await?;
                Ok(effect.answer(202, 204, Answer::empty))
            }
        }
    }

    /// Writes a list that HAProxy accepts, and tells HAProxy. A list that HAProxy has not loaded needs no reload.
    async fn change_crt_list(&self, name: &str, new: &[u8], request: &Request) -> Result<Effect, Problem> {
        let folder = self.storage.folder(Stored::CrtList);
        let is_asked = !request.flag("skip_reload")? && !request.flag("force_reload")?;
        let replaced = self.instance.replace_file(folder, name, new).await?;
        let (path, before) = (replaced.path.clone(), replaced.before.clone());
        let is_applied =
            is_asked && (!self.uses_crt_list(&path).await || self.set_crt_list(&path, &before, new).await);
        settle(replaced, request, is_applied).await
    }

    /// Returns whether the running HAProxy has loaded a list; also if that is not known.
    async fn uses_crt_list(&self, path: &Path) -> bool {
        let settings = self.instance.settings();
        let lists = loaded(&self.instance.worker(), "crt-list", path, &settings.working_directory).await;
        !lists.is_ok_and(|lists| lists.is_empty())
    }

    /// Tells the running HAProxy the entries that come and go. Returns whether it has them now. It can't be told of other changes
    /// than these: of another order, or of another first entry, which serves those who name no host.
    pub(crate) async fn set_crt_list(&self, path: &Path, old: &[u8], new: &[u8]) -> bool {
        let worker = self.instance.worker();
        let folder = &self.instance.settings().working_directory;
        let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
        let Some((gone, come)) = changes(&old, &new) else { return false };
        let Ok(lists) = loaded(&worker, "crt-list", path, folder).await else { return false };
        for list in &lists {
            if !self.tell_entries(&worker, list, &gone, &come).await {
                return false;
            }
        }
        !lists.is_empty()
    }

    /// Tells the running HAProxy which entries go from a list, and which come. Returns whether it has them now.
    async fn tell_entries(&self, worker: &Worker, list: &str, gone: &[&str], come: &[&str]) -> bool {
        for line in gone {
            let Ok(delete) =
                CliRequest::new("del ssl crt-list").word(list).and_then(|it| it.word(file(line)))
            else {
                return false;
            };
            if !matches!(worker.tell(&delete).await, Ok(Reply::Done(_))) {
                return false;
            }
        }
        for line in come {
            if !self.load_certificate(worker, file(line)).await {
                return false;
            }
            let add = CliRequest::new("add ssl crt-list").word(list);
            let Ok(add) = add.and_then(|add| add.payload(&format!("{line}\n"))) else { return false };
            match worker.tell(&add).await {
                Ok(Reply::Done(answer)) if answer.contains("Success") => {}
                _ => return false,
            }
        }
        true
    }

    /// Makes the running HAProxy know a certificate that a list is going to name.
    async fn load_certificate(&self, worker: &Worker, file: &str) -> bool {
        let path = self.instance.settings().working_directory.join(file);
        let word = |command: &'static str| CliRequest::new(command).word(file);
        let (Ok(show), Ok(new)) = (word("show ssl cert"), word("new ssl cert")) else { return false };
        match worker.ask(&show).await {
            Ok(Reply::Done(answer)) if answer.contains("Filename:") => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
        let Ok(bytes) = std::fs::read(&path) else { return false };
        matches!(worker.tell(&new).await, Ok(Reply::Done(_)))
            && self.instance.tell_ssl("cert", file, &bytes).await
    }
}

/// The file that an entry names.
fn file(line: &str) -> &str {
    line.split_ascii_whitespace().next().unwrap_or_default()
}

/// The entries of a list as they are compared.
fn entries(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The entries that go, and those that come; none if that is not all that changes.
fn changes<'t>(old: &'t str, new: &'t str) -> Option<(Vec<&'t str>, Vec<&'t str>)> {
    let (old, new) = (entries(old), entries(new));
    let stays = |line: &&str| new.contains(line);
    let gone: Vec<&str> = old.iter().copied().filter(|line| !stays(line)).collect();
    let kept: Vec<&str> = old.iter().copied().filter(stays).collect();
    // What comes is added at the end.
    let come = new.strip_prefix(kept.as_slice())?.to_vec();
    let is_first = old.first().is_none_or(|first| new.first() == Some(first));
    // An entry is named by its file.
    let is_single = |line: &&str| old.iter().filter(|other| file(other) == file(line)).count() == 1;
    (is_first && gone.iter().all(is_single)).then_some((gone, come))
}

/// A line of a list: a file, options in brackets, and names.
pub(crate) fn entry(line: &str) -> Option<Json> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (file, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let (options, names) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((options, names)) => (options.trim(), names),
        None => ("", rest),
    };
    let names: Vec<&str> = names.split_ascii_whitespace().collect();
    let mut json = json!({ "file": file });
    if let Some(properties) = json.as_object_mut() {
        if !options.is_empty() {
            properties.insert("ssl_bind_config".to_owned(), Json::from(options));
        }
        if !names.is_empty() {
            properties.insert("sni_filter".to_owned(), Json::from(names));
        }
    }
    Some(json)
}

/// The line of an entry.
pub(crate) fn line_of(json: &Json) -> Option<String> {
    let mut line = json.get("file")?.as_str().filter(|file| !file.is_empty())?.to_owned();
    if let Some(options) =
        json.get("ssl_bind_config").and_then(Json::as_str).filter(|options| !options.is_empty())
    {
        line = format!("{line} [{options}]");
    }
    for name in json.get("sni_filter").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
    {
        line = format!("{line} {name}");
    }
    (!line.contains(['\n', '\r'])).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_come_at_the_end_and_entries_that_go_can_be_told() {
        let of = |old: &'static str, new: &'static str| changes(old, new);
        assert_eq!(of("a\nb x\n", "a\n# why\nb x\nc y\n"), Some((vec![], vec!["c y"])));
        assert_eq!(of("a\nb x\nc\n", "a\nc\n"), Some((vec!["b x"], vec![])));
        assert_eq!(of("a\nb x\n", "a\nb y\n"), Some((vec!["b x"], vec!["b y"])));
    }

    #[test]
    fn another_order_another_first_entry_and_a_file_of_several_entries_come_with_a_reload() {
        assert_eq!(changes("a\nb\n", "b\n"), None);
        assert_eq!(changes("a\nb\nc\n", "a\nc\nb\n"), None);
        assert_eq!(changes("a\nb\n", "a\nc\nb\n"), None);
        assert_eq!(changes("a\nb x\nb y\n", "a\nb x\n"), None);
    }
}
