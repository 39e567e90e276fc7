//! Entries of maps and ACLs, replaced as a whole: prepared beside what is there, counted, and committed at once.

use std::path::{Path, PathBuf};

use super::{Refused, Reply, Worker};
use crate::cli::{Request, RequestError};

/// What a list of entries is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Keys with values.
    Map,
    /// Patterns.
    Acl,
}

/// The commands for a kind of list.
struct Commands {
    show: Request,
    prepare: Request,
    add: Request,
    commit: Request,
    clear: Request,
}

impl ListKind {
    fn commands(self) -> Commands {
        let [show, prepare, add, commit, clear] = match self {
            Self::Map => ["show map", "prepare map", "add map", "commit map", "clear map"],
            Self::Acl => ["show acl", "prepare acl", "add acl", "commit acl", "clear acl"],
        }
        .map(Request::new);
        Commands { show, prepare, add, commit, clear }
    }
}

/// A list that HAProxy has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedList {
    /// Its number.
    pub id: String,
    /// The file, as the configuration writes it; empty if there is none.
    pub file: String,
    /// What HAProxy says of it.
    pub description: String,
}

/// One entry: a key with its value, or a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListEntry {
    /// The key or the pattern.
    pub key: String,
    /// The value; patterns have none.
    pub value: Option<String>,
}

impl ListEntry {
    /// The entries of a file, as HAProxy reads it; none if it is no text, or if a key of a map has no value.
    pub fn read(kind: ListKind, bytes: &[u8]) -> Option<Vec<Self>> {
        let text = std::str::from_utf8(bytes).ok()?;
        let lines = text.split('\n').map(|line| {
            let line = line.split('\r').next().unwrap_or_default();
            line.trim_start_matches([' ', '\t'])
        });
        let entries = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        entries
            .map(|line| match kind {
                ListKind::Acl => Some(Self { key: line.to_owned(), value: None }),
                ListKind::Map => {
                    let (key, value) = line.split_once([' ', '\t'])?;
                    let value = value.trim_start_matches([' ', '\t']);
                    (!value.is_empty()).then(|| Self { key: key.to_owned(), value: Some(value.to_owned()) })
                }
            })
            .collect()
    }

    /// The entry as a line of a payload, if it can be one.
    fn line(&self) -> Option<String> {
        let is_plain = !self.key.contains(char::is_whitespace) && !self.key.is_empty();
        let value = self.value.as_ref().filter(|value| {
            !value.is_empty() && !value.starts_with([' ', '\t']) && !value.chars().any(char::is_control)
        })?;
        is_plain.then(|| format!("{} {value}\n", self.key))
    }
}

impl Worker {
    /// The lists that HAProxy has loaded.
    pub async fn lists(&self, kind: ListKind) -> Result<Vec<LoadedList>, Refused> {
        let request = kind.commands().show;
        let answer = match self.ask(&request).await? {
            Reply::Done(answer) => answer,
            Reply::Refused(why) => return Err(Refused::Command { command: request.to_string(), why }),
        };
        let rows = lines(&answer).filter_map(|line| {
            let (id, rest) = line.split_once(' ')?;
            let (file, description) = rest.strip_prefix('(')?.split_once(") ")?;
            let [id, file, description] = [id, file, description].map(str::to_owned);
            Some(LoadedList { id, file, description })
        });
        Ok(rows.collect())
    }

    /// What HAProxy calls the lists that it has loaded from a file: one for each way in which the configuration writes its path;
    /// none if it has not loaded it.
    pub async fn lists_of(
        &self,
        kind: ListKind,
        file: &Path,
        working_directory: &Path,
    ) -> Result<Vec<String>, Refused> {
        let held = self.lists(kind).await?.into_iter().map(|list| list.file);
        Ok(names_of(file, working_directory, held))
    }

    /// Puts entries in the place of all that a list holds. Until they are all there, nobody sees any of them.
    pub async fn replace_entries(
        &self,
        kind: ListKind,
        list: &str,
        entries: &[ListEntry],
    ) -> Result<(), Refused> {
        let commands = kind.commands();
        let prepared = self.run(&commands.prepare.word(list)?).await?;
        let digits = prepared.rsplit(|letter: char| !letter.is_ascii_digit());
        let version = digits.into_iter().find(|word| !word.is_empty()).unwrap_or_default();
        let at = |command: Request| command.word(&format!("@{version}"))?.word(list);
        let added = async {
            for request in self.additions(&at(commands.add)?, entries)? {
                self.run(&request).await?;
            }
            // A HAProxy that has dropped something does not say so.
            let show = at(commands.show)?;
            let answer = match self.ask(&show).await? {
                Reply::Done(answer) => answer,
                Reply::Refused(why) => return Err(Refused::Command { command: show.to_string(), why }),
            };
            let (found, wanted) = (lines(&answer).count(), entries.len());
            if found != wanted {
                let why = format!("it took {found} of {wanted} entries");
                return Err(Refused::Command { command: commands_name(kind, list), why });
            }
            self.run(&at(commands.commit)?).await.map(drop)
        };
        let added = added.await;
        if added.is_err() {
            // What was prepared is in nobody's way, and is gone with the next reload at the latest.
            let _ = self.tell(&at(commands.clear)?).await;
        }
        added
    }

    async fn run(&self, request: &Request) -> Result<String, Refused> {
        match self.tell(request).await? {
            Reply::Done(answer) => Ok(answer),
            Reply::Refused(why) => Err(Refused::Command { command: request.to_string(), why }),
        }
    }

    /// The commands that add entries, each small enough for a buffer of HAProxy.
    fn additions(&self, add: &Request, entries: &[ListEntry]) -> Result<Vec<Request>, RequestError> {
        // Half of it: the command stands in it too, and what HAProxy keeps for itself.
        let most = self.buffer() / 2;
        let mut requests: Vec<Request> = Vec::new();
        let mut payload = String::new();
        for entry in entries {
            let line = entry.line().filter(|_| self.takes_payloads());
            let length = line.as_ref().map_or(most, String::len);
            if payload.len() + length > most && !payload.is_empty() {
                requests.push(add.clone().payload(&std::mem::take(&mut payload))?);
            }
            if let Some(line) = line {
                payload.push_str(&line);
                continue;
            }
            let mut request = add.clone().word(&entry.key)?;
            if let Some(value) = &entry.value {
                request = request.word(value)?;
            }
            let fits = |last: &mut Request| !last.has_payload() && last.len() + request.len() <= most / 2;
            let last = requests.pop_if(fits);
            requests.push(last.map_or_else(|| request.clone(), |last| last.and(request.clone())));
        }
        if !payload.is_empty() {
            requests.push(add.clone().payload(&payload)?);
        }
        Ok(requests)
    }
}

/// The names among those that HAProxy has for files that stand for one file: it takes each way of writing a path for a file of its
/// own.
pub fn names_of(
    file: &Path,
    working_directory: &Path,
    held: impl IntoIterator<Item = String>,
) -> Vec<String> {
    let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let wanted = real(file.to_owned());
    let stands_for_it = |name: &String| {
        // A file that need not be there.
        let path = name.strip_prefix("opt@").unwrap_or(name);
        !path.is_empty() && real(working_directory.join(path)) == wanted
    };
    held.into_iter().filter(stands_for_it).collect()
}

fn commands_name(kind: ListKind, list: &str) -> String {
    match kind {
        ListKind::Map => format!("add map {list}"),
        ListKind::Acl => format!("add acl {list}"),
    }
}

/// Lines of an answer that are neither empty nor comments.
fn lines(answer: &str) -> impl Iterator<Item = &str> {
    answer.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str) -> ListEntry {
        ListEntry { key: key.to_owned(), value: Some(value.to_owned()) }
    }

    #[test]
    fn files_are_read_as_haproxy_reads_them() {
        let map = ListEntry::read(ListKind::Map, b"# c\n\n /a  b c \r\n\tx\ty\n").unwrap();
        assert_eq!(map, [entry("/a", "b c "), entry("x", "y")]);
        assert_eq!(ListEntry::read(ListKind::Map, b"alone\n"), None);
        let acl = ListEntry::read(ListKind::Acl, b"# c\n192.0.2.0/24\n two words\n").unwrap();
        assert_eq!(
            acl.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(),
            ["192.0.2.0/24", "two words"]
        );
    }

    #[test]
    fn a_file_is_known_by_all_names_that_lead_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.map"), folder.path().join("link.map"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let held = [file.to_str().unwrap(), "a.map", "./a.map", "link.map", "opt@a.map", "b.map", ""];
        let names = names_of(&file, folder.path(), held.map(str::to_owned));
        assert_eq!(names, held[..5]);
    }

    #[test]
    fn entries_are_told_in_pieces_that_fit_into_a_buffer() {
        let worker = Worker::at("/nowhere".into());
        let entries: Vec<_> =
            (0..5_000).map(|number| entry(&format!("/key{number}"), "a value; it's one")).collect();
        let add = Request::new("add map").word("@1").unwrap().word("/m.map").unwrap();
        let requests = worker.additions(&add, &entries).unwrap();
        assert!(requests.len() > 10 && requests.len() < 50, "{}", requests.len());
        assert!(requests.iter().all(|request| request.bytes_len() < 16_384 * 3 / 4));
        // What no payload can carry is told by a command of its own, in its place.
        let mixed = [entry("/a", "1"), entry("two words", "2"), entry("/b", "3")];
        let requests = worker.additions(&add, &mixed).unwrap();
        let shown: Vec<String> = requests.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["add map @1 /m.map", r"add map @1 /m.map two\ words 2", "add map @1 /m.map"]);
    }
}
