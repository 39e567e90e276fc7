//! One exchange with a socket: a command goes in, the whole answer comes out, within limits.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::Request;

/// What one exchange may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long connecting, asking and answering may take altogether.
    pub time: Duration,
    /// How many bytes an answer may have.
    pub size: usize,
}

impl Default for Limits {
    /// Ten seconds, and 256 MiB: the statistics of a hundred thousand servers are 60.
    fn default() -> Self {
        Self { time: Duration::from_secs(10), size: 256 << 20 }
    }
}

/// A socket of HAProxy: of its master or of a worker.
#[derive(Clone, Debug)]
pub struct Socket {
    path: PathBuf,
    /// What stands before each command, such as `@1 ` for a worker behind its master's socket.
    prefix: &'static str,
    /// What is said before the first command.
    before: &'static str,
    limits: Limits,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Nobody listens.
    #[error("{}: {source}", unreachable(path, source))]
    Unreachable {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection broke before the answer was whole.
    #[error("HAProxy's socket {} broke during `{command}`: {source}", path.display())]
    Broken {
        /// The socket.
        path: PathBuf,
        /// What was asked.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// There was no whole answer in time.
    #[error("HAProxy's socket {} did not answer `{command}` within {} s", path.display(), after.as_secs_f32())]
    TimedOut {
        /// The socket.
        path: PathBuf,
        /// What was asked.
        command: String,
        /// The time that it had.
        after: Duration,
    },
    /// The answer was longer than any that HAProxy gives.
    #[error("HAProxy's socket {} answered `{command}` with more than {limit} bytes", path.display())]
    TooLong {
        /// The socket.
        path: PathBuf,
        /// What was asked.
        command: String,
        /// How many bytes there may be.
        limit: usize,
    },
}

/// Says what it means that nobody can be reached at a socket.
fn unreachable(path: &Path, source: &io::Error) -> String {
    let path = path.display();
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            format!("HAProxy does not run, or does not listen on its socket {path}")
        }
        _ => format!("can't connect to HAProxy's socket {path}"),
    }
}

impl Socket {
    /// A socket at a path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), prefix: "", before: "", limits: Limits::default() }
    }

    /// The present worker behind a master's socket.
    ///
    /// A command with a payload goes to the worker's own socket: a master of 2.6 passes payloads on in pieces.
    pub fn of_worker_behind(master: &Self) -> Self {
        Self { prefix: "@1 ", ..master.clone() }
    }

    /// The same, and each message of HAProxy says how grave it is: `[3]: No such server.`. A master of 2.6 can't be told.
    #[must_use]
    pub fn with_severity(mut self) -> Self {
        self.before = "set severity-output number;";
        self
    }

    /// The same with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks, and returns the whole answer. Bytes that are no UTF-8 are replaced: names in a configuration may hold any.
    pub async fn ask(&self, command: &Request) -> Result<String, SocketError> {
        self.ask_listener(command).await.map(|(answer, _)| answer)
    }

    /// The same, with the process that listens, if this program sees it.
    pub(crate) async fn ask_listener(&self, command: &Request) -> Result<(String, Option<u32>), SocketError> {
        let (path, name) = (|| self.path.clone(), || command.to_string());
        let answer = timeout(self.limits.time, self.exchange(command)).await;
        let after = self.limits.time;
        let answer = answer.map_err(|_| SocketError::TimedOut { path: path(), command: name(), after })?;
        let (bytes, listener) = answer?;
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok((text, listener))
    }

    async fn exchange(&self, command: &Request) -> Result<(Vec<u8>, Option<u32>), SocketError> {
        let unreachable = |source| SocketError::Unreachable { path: self.path.clone(), source };
        let broken =
            |source| SocketError::Broken { path: self.path.clone(), command: command.to_string(), source };
        let mut stream = UnixStream::connect(&self.path).await.map_err(unreachable)?;
        // The system notes it when somebody listens, and tells it as it is called here: not at all, of another container.
        let listener = stream.peer_cred().ok().and_then(|peer| u32::try_from(peer.pid()?).ok());
        let listener = listener.filter(|pid| *pid != 0);
        let bytes = [self.before.as_bytes(), &command.bytes(self.prefix)].concat();
        stream.write_all(&bytes).await.map_err(broken)?;
        // A master keeps the connection for more commands until it is told that there are none.
        stream.shutdown().await.map_err(broken)?;
        let mut answer = Vec::new();
        let most = u64::try_from(self.limits.size).unwrap_or(u64::MAX).saturating_add(1);
        stream.take(most).read_to_end(&mut answer).await.map_err(broken)?;
        if answer.len() > self.limits.size {
            let (path, limit) = (self.path.clone(), self.limits.size);
            return Err(SocketError::TooLong { path, command: command.to_string(), limit });
        }
        Ok((answer, listener))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixListener;

    /// A socket whose other side is a lie, told once to each that connects.
    fn lying(answer: &'static [u8], ends: bool) -> (tempfile::TempDir, Socket) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut asked = [0; 64];
                let _ = stream.read(&mut asked).await;
                let _ = stream.write_all(answer).await;
                if !ends {
                    open.push(stream);
                }
            }
        });
        let limits = Limits { time: Duration::from_millis(200), size: 10 };
        (folder, Socket::new(path).with_limits(limits))
    }

    #[tokio::test]
    async fn a_socket_that_nobody_listens_on_is_unreachable() {
        let error = Socket::new("/nonexistent/s").ask(&Request::new("show info")).await.unwrap_err();
        assert!(matches!(error, SocketError::Unreachable { .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains("HAProxy does not run") && error.contains("/nonexistent/s"), "{error}");
    }

    #[tokio::test]
    async fn one_that_never_ends_its_answer_is_not_waited_for() {
        let (_folder, socket) = lying(b"Name:", false);
        let error = socket.ask(&Request::new("show info")).await.unwrap_err();
        assert!(matches!(error, SocketError::TimedOut { .. }), "{error}");
    }

    #[tokio::test]
    async fn one_that_answers_too_much_is_not_read_to_its_end() {
        let (_folder, socket) = lying(&[b'a'; 11], false);
        let error = socket.ask(&Request::new("show info")).await.unwrap_err();
        assert!(matches!(error, SocketError::TooLong { limit: 10, .. }), "{error}");
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_are_replaced() {
        let (_folder, socket) = lying(b"a\xffb", true);
        assert_eq!(socket.ask(&Request::new("show info")).await.unwrap(), "a\u{fffd}b");
    }
}
