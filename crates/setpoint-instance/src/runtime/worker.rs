//! The worker that serves: where it listens, and whether it did what it was told.

use std::io;
use std::path::PathBuf;

use setpoint_haproxy::model::Version;
use setpoint_haproxy::text::{Document, SectionKind};

use crate::cli::{Request, Socket, SocketError};

/// Severities up to this one are errors, as `syslog` counts them.
const ERROR: u8 = 3;

/// The worker of a HAProxy, as it is reached.
#[derive(Clone, Debug)]
pub struct Worker {
    socket: Socket,
    /// Whether its messages say how grave they are.
    graded: bool,
    /// Whether payloads get through whole.
    takes_payloads: bool,
    /// How many lines stand before the answer to the first command.
    lines_before: usize,
    /// The size of a buffer, into which a command has to fit.
    buffer: usize,
}

/// The size of a buffer unless `tune.bufsize` says something else.
const BUFFER: usize = 16 << 10;

/// What came of a command that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// HAProxy did it; this is what it printed.
    Done(String),
    /// HAProxy refused; this is why.
    Refused(String),
}

impl Worker {
    /// Finds out how a worker is reached: by the first socket of its configuration that lets everything, else through its
    /// master.
    pub fn of(configuration: &Document, master: &Socket, version: Version) -> Self {
        let worker = match own_socket(configuration) {
            Some(path) => Self::at(path),
            None => Self::behind(master, version),
        };
        Self { buffer: buffer(configuration), ..worker }
    }

    /// A worker with a socket of its own.
    pub fn at(path: PathBuf) -> Self {
        Self {
            socket: Socket::new(path).with_severity(),
            graded: true,
            takes_payloads: true,
            // `set severity-output` is answered by an empty one.
            lines_before: 1,
            buffer: BUFFER,
        }
    }

    /// A worker that is reached through its master.
    pub fn behind(master: &Socket, version: Version) -> Self {
        let socket = Socket::of_worker_behind(master);
        let is_new = version > Version::V2_6;
        Self {
            socket: if is_new { socket.with_severity() } else { socket },
            graded: is_new,
            takes_payloads: is_new,
            // A master says nothing of it.
            lines_before: 0,
            buffer: BUFFER,
        }
    }

    /// Where it is reached.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Returns whether commands with a payload get to it whole: a master of 2.6 passes them on in pieces.
    pub fn takes_payloads(&self) -> bool {
        self.takes_payloads
    }

    /// The size of a buffer, into which a command with its payload has to fit.
    pub fn buffer(&self) -> usize {
        self.buffer
    }

    /// The answer to all commands of a request. HAProxy ends each one with a line: one that ended before has answered nothing.
    async fn answer(&self, request: &Request) -> Result<String, SocketError> {
        let answer = self.socket.ask(request).await?;
        if answer.matches('\n').count() < request.count() + self.lines_before {
            let source = io::Error::new(io::ErrorKind::UnexpectedEof, "it ended before it had answered");
            let (path, command) = (self.socket.path().to_owned(), request.to_string());
            return Err(SocketError::Broken { path, command, source });
        }
        Ok(answer)
    }

    /// Asks for something that is shown.
    pub async fn ask(&self, request: &Request) -> Result<Reply, SocketError> {
        let answer = self.answer(request).await?;
        // `set severity-output` itself answers with an empty line.
        let answer = answer.strip_prefix('\n').unwrap_or(&answer);
        Ok(match graded(answer) {
            Some((severity, text)) if severity <= ERROR => Reply::Refused(text.trim().to_owned()),
            _ => Reply::Done(answer.to_owned()),
        })
    }

    /// Tells it to change something. Any message that is an error counts, of however many commands; and what can't be one of its
    /// messages is no consent.
    pub async fn tell(&self, request: &Request) -> Result<Reply, SocketError> {
        let answer = self.answer(request).await?;
        let mut messages = answer.lines().filter(|line| !line.trim().is_empty());
        let refused = messages.find(|line| match graded(line) {
            Some((severity, text)) => severity <= ERROR || is_a_refusal(text),
            None if self.graded => request.is_of_servers() || looks_like_an_error(line),
            None => !is_good_news(line),
        });
        Ok(match refused {
            Some(line) => Reply::Refused(graded(line).map_or(line, |(_, text)| text).trim().to_owned()),
            None => Reply::Done(answer.trim().to_owned()),
        })
    }
}

/// The severity of a message, and the message.
fn graded(line: &str) -> Option<(u8, &str)> {
    let (severity, text) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    Some((severity.parse().ok()?, text))
}

/// What a HAProxy prints without a severity when it does not know a command.
fn looks_like_an_error(line: &str) -> bool {
    line.starts_with("Unknown command") || line.starts_with("Permission denied")
}

/// What a HAProxy prints as a warning where it refuses: `set server` warns of all that it prints.
fn is_a_refusal(text: &str) -> bool {
    const REFUSALS: [&str; 6] = [
        "are not enabled on this server",
        "nvalid addr",
        "provided port",
        "can't unset 'port'",
        "problem converting port",
        "through configuration file",
    ];
    REFUSALS.iter().any(|refusal| text.contains(refusal))
}

/// What a HAProxy prints when it did something, where messages have no severity.
fn is_good_news(line: &str) -> bool {
    const NEWS: [&str; 8] = [
        "New server registered",
        "Server deleted",
        "IP changed from",
        "port changed from",
        "no need to change",
        "Transaction",
        "Success!",
        "New version created",
    ];
    NEWS.iter().any(|news| line.contains(news))
}

/// The lines of all `global` sections, as words.
fn global_lines(configuration: &Document) -> impl Iterator<Item = Vec<String>> {
    let sections = configuration.sections().iter().filter(|section| section.kind() == SectionKind::Global);
    sections.flat_map(|section| {
        let words =
            section.lines().map(|line| line.words().map(|word| word.to_str_lossy().into_owned()).collect());
        words.collect::<Vec<Vec<String>>>()
    })
}

/// The first socket in a file that lets everything, among the sockets of the configuration.
fn own_socket(configuration: &Document) -> Option<PathBuf> {
    global_lines(configuration).find_map(|words| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let ["stats", "socket", path, rest @ ..] = words.as_slice() else { return None };
        let is_admin = rest.windows(2).any(|pair| pair == ["level", "admin"]);
        let path = path.strip_prefix("unix@").unwrap_or(path);
        (is_admin && path.starts_with('/')).then(|| PathBuf::from(path))
    })
}

/// A size, with the unit that HAProxy 3.1 and later know.
fn bytes(size: &str) -> Option<usize> {
    let units = [("k", 10), ("m", 20), ("g", 30)];
    let lower = size.to_ascii_lowercase();
    let found = units.iter().find_map(|(unit, shift)| Some((lower.strip_suffix(unit)?, *shift)));
    let (number, shift) = found.unwrap_or((&lower, 0));
    number.parse::<usize>().ok()?.checked_mul(1 << shift)
}

/// The size of a buffer that a configuration asks for; the last one counts.
fn buffer(configuration: &Document) -> usize {
    let sizes = global_lines(configuration).filter_map(|words| match words.as_slice() {
        [word, size, ..] if word == "tune.bufsize" => bytes(size),
        _ => None,
    });
    sizes.last().unwrap_or(BUFFER).max(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_that_lets_everything_is_found_in_the_configuration() {
        let find = |text: &str| own_socket(&Document::parse(text.as_bytes()));
        let text = "global\n  stats socket /run/user.sock level user\n  stats socket /run/a.sock mode 600 level admin\n";
        assert_eq!(find(text), Some("/run/a.sock".into()));
        assert_eq!(find("global\n  stats socket ipv4@127.0.0.1:99 level admin\n"), None);
        assert_eq!(find("backend b\n  stats socket /run/a.sock level admin\n"), None);
    }

    #[test]
    fn the_size_of_a_buffer_is_found_in_the_configuration() {
        let find = |text: &str| buffer(&Document::parse(text.as_bytes()));
        assert_eq!(find("global\n  tune.bufsize 32768\nglobal\n  tune.bufsize 8192\n"), 8_192);
        assert_eq!(find("global\n  tune.bufsize 8k\n"), 8_192);
        assert_eq!(find("global\n  tune.bufsize 1M\n"), 1 << 20);
        assert_eq!(find("global\n  tune.bufsize many\n"), BUFFER);
        assert_eq!(find("backend b\n  tune.bufsize 32768\n"), BUFFER);
    }

    #[tokio::test]
    async fn one_that_ends_without_an_answer_has_done_nothing() {
        use tokio::io::AsyncReadExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        });
        let worker = Worker::at(path);
        for reply in [
            worker.tell(&Request::new("set server a/b weight 1")).await,
            worker.ask(&Request::new("show info")).await,
        ] {
            assert!(matches!(reply, Err(SocketError::Broken { .. })), "{reply:?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_message_of_haproxy_is_no_consent() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut asked = String::new();
                let _ = stream.read_to_string(&mut asked).await;
                let answer = if asked.contains("commit ssl") { "\nSuccess!\n" } else { "\ngarbage\n\n" };
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        let worker = Worker::at(path);
        for command in ["set server a/b weight 1", "add server a/b 127.0.0.1:1", "del server a/b"] {
            let reply = worker.tell(&Request::new(command)).await.unwrap();
            assert_eq!(reply, Reply::Refused("garbage".to_owned()), "{command}");
        }
        let both = Request::new("show info").and(Request::new("set maxconn server a/b 3"));
        assert_eq!(worker.tell(&both).await.unwrap(), Reply::Refused("garbage".to_owned()));
        // What takes a while tells how far it is, without a severity.
        let commit = worker.tell(&Request::new("commit ssl cert a.pem")).await.unwrap();
        assert_eq!(commit, Reply::Done("Success!".to_owned()));
    }

    #[test]
    fn severities_are_read() {
        assert_eq!(graded("[3]: No such server."), Some((3, " No such server.")));
        assert_eq!(graded("1\n# be_id"), None);
    }
}
