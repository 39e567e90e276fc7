//! Asks whether a process that was started is ready.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use setpoint_engine::OpError;
use tokio_util::sync::CancellationToken;

use super::run::{Ended, Job, run};
use crate::host::Host;
use crate::item::{Address, Readiness, Ready, quoted};
use crate::kinds::Process;

/// The pause between two attempts.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// The longest time that a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// The part of a log that is searched where nobody knows where the process began to write.
const LAST_PART: u64 = 1024 * 1024;
/// The longest line of a log that is searched in one piece.
const LONGEST_LINE: usize = 64 * 1024;

/// Asks for the readiness of one process.
pub(crate) struct Probe<'a> {
    host: &'a Host,
    item: &'a Process,
    ready: &'a Ready,
    log: LogSearch,
}

impl<'a> Probe<'a> {
    /// The probe of a process; none if it counts as ready once it runs. `log_from` is the length that its log had when
    /// it was started; where that is not known, the last part of the log is searched.
    pub(crate) fn new(host: &'a Host, item: &'a Process, log_from: Option<u64>) -> Option<Self> {
        let ready = item.ready.as_ref()?;
        let path = host.log_of(item);
        let length = || path.metadata().map_or(0, |metadata| metadata.len());
        let at = log_from.unwrap_or_else(|| length().saturating_sub(LAST_PART));
        Some(Self { host, item, ready, log: LogSearch { path, at, unfinished: Vec::new() } })
    }

    /// Returns whether it looks for a line of the log.
    pub(crate) fn searches_log(&self) -> bool {
        matches!(self.ready.condition, Readiness::Log(_))
    }

    /// Returns whether it asks for a port.
    pub(crate) fn asks_port(&self) -> bool {
        matches!(self.ready.condition, Readiness::Port(_))
    }

    /// Waits until the process is ready. Returns whether it was in time.
    pub(crate) async fn wait(&mut self, cancel: &CancellationToken) -> Result<bool, OpError> {
        let limit = self.ready.timeout.duration();
        let waiting = async {
            while !self.ask(cancel).await? {
                tokio::time::sleep(ASK_EVERY).await;
            }
            Ok(())
        };
        match tokio::time::timeout(limit, waiting).await {
            Ok(outcome) => outcome.map(|()| true),
            Err(_) => Ok(false),
        }
    }

    /// Asks once.
    pub(crate) async fn ask(&mut self, cancel: &CancellationToken) -> Result<bool, OpError> {
        match &self.ready.condition {
            Readiness::Port(address) => {
                let address = address.clone();
                Ok(tokio::task::spawn_blocking(move || accepts(&address)).await.unwrap_or(false))
            }
            // What can't be looked at yet, such as for a directory that is missing, may come.
            Readiness::File(path) => Ok(self.host.0.root.stat(path).is_ok_and(|found| found.is_some())),
            Readiness::Log(text) => Ok(self.log.find(text.as_bytes())),
            Readiness::Command(command) => {
                let cwd = self.host.directory_of(self.item.cwd.as_ref());
                let job = Job {
                    argv: command.argv().into_iter().map(ToOwned::to_owned).collect(),
                    env: self.item.env.clone(),
                    // The process was started before.
                    cwd: cwd.map_err(|error| OpError::new(error.to_string()))?,
                    timeout: self.ready.timeout.duration(),
                    lines: None,
                    open_files: self.host.open_files(),
                    started: None,
                };
                let ended = run(job, Arc::default(), cancel).await;
                let ended = ended.map_err(|error| OpError::new(format!("can't run {command}: {error}")))?;
                Ok(matches!(ended, Ended::Exited(status, _) if status.success()))
            }
        }
    }

    /// What the process did not show in time.
    pub(crate) fn missing(&self) -> String {
        let what = match &self.ready.condition {
            Readiness::Port(address) => nobody_accepts(address),
            Readiness::File(path) => format!("{path} is not there"),
            Readiness::Command(command) => format!("`{command}` does not succeed"),
            Readiness::Log(text) => format!("no line of its log contains {}", quoted(text)),
        };
        format!("it was not ready within {}: {what}", self.ready.timeout)
    }
}

/// Returns whether something accepts connections.
fn accepts(address: &Address) -> bool {
    // Not by the C library, which needs modules for it that a static program can't load.
    let addresses = setpoint_names::known_here(address.host(), address.port()).unwrap_or_default();
    addresses.iter().any(|at| {
        TcpStream::connect_timeout(at, CONNECT_WITHIN)
            // Where nothing listens, a connection may come to be with itself.
            .is_ok_and(|stream| stream.local_addr().ok() != stream.peer_addr().ok())
    })
}

/// Says that nothing accepts connections, and why it was not even tried where it was not.
fn nobody_accepts(address: &Address) -> String {
    let host = address.host();
    match setpoint_names::known_here(host, address.port()) {
        Ok(addresses) if addresses.is_empty() => format!(
            "/etc/hosts does not list {}, and no name server is asked where a process of this host listens: \
             write an address, or list it there",
            quoted(host)
        ),
        Ok(_) => format!("nothing accepts connections on {address}"),
        Err(error) => format!("can't tell where {} is: {error}", quoted(host)),
    }
}

/// Searches the lines that are added to a log.
#[derive(Debug)]
struct LogSearch {
    path: PathBuf,
    /// What comes before this was searched.
    at: u64,
    /// The end of what was searched: a line that may go on.
    unfinished: Vec<u8>,
}

impl LogSearch {
    /// Returns whether a line contains the text, of those that were added since the last call.
    fn find(&mut self, text: &[u8]) -> bool {
        let Ok(mut file) = open_at(&self.path, &mut self.at) else { return false };
        let mut buffer = [0; 8192];
        loop {
            let read = file.read(&mut buffer).unwrap_or(0);
            if read == 0 {
                return false;
            }
            self.at += read as u64;
            self.unfinished.extend_from_slice(buffer.get(..read).unwrap_or_default());
            let mut lines = self.unfinished.split(|&byte| byte == b'\n');
            if lines.any(|line| line.windows(text.len().max(1)).any(|part| part == text)) {
                return true;
            }
            let line = self.unfinished.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            let kept = self.unfinished.len() - line;
            self.unfinished.drain(..line + kept.saturating_sub(LONGEST_LINE));
        }
    }
}

/// Opens a log where it was left. One that became shorter was emptied, and is read from its beginning.
fn open_at(path: &Path, at: &mut u64) -> std::io::Result<File> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() < *at {
        *at = 0;
    }
    file.seek(SeekFrom::Start(*at))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use setpoint_testutils::Port;

    use super::*;

    #[test]
    fn a_text_is_found_in_a_line_that_is_written_in_pieces_and_not_over_two_lines() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut search = LogSearch { path: path.clone(), at: 6, unfinished: Vec::new() };
        assert!(!search.find(b"ready"), "there is no log yet");
        std::fs::write(&path, "ready\nrea").unwrap();
        assert!(!search.find(b"ready"), "the first line is older");
        std::fs::write(&path, "ready\nrea\ndy\nnow re").unwrap();
        assert!(!search.find(b"ready"));
        std::fs::write(&path, "ready\nrea\ndy\nnow ready").unwrap();
        assert!(search.find(b"ready"));
    }

    #[test]
    fn a_log_that_was_emptied_is_searched_from_its_beginning() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        std::fs::write(&path, "ready\n").unwrap();
        let mut search = LogSearch { path, at: 100, unfinished: Vec::new() };
        assert!(search.find(b"ready"));
    }

    #[test]
    fn a_port_is_ready_while_something_listens() {
        let port = Port::lease();
        let listener = TcpListener::bind(port.address()).unwrap();
        let address: Address = port.address().to_string().parse().unwrap();
        assert!(accepts(&address));
        let by_name: Address = format!("localhost:{}", port.number()).parse().unwrap();
        assert!(accepts(&by_name));
        drop(listener);
        assert!(!accepts(&address));
        assert_eq!(nobody_accepts(&by_name), format!("nothing accepts connections on {by_name}"));
    }

    #[test]
    fn a_name_that_only_a_name_server_may_know_is_refused_with_what_to_do() {
        let address: Address = "db.setpoint.invalid:5432".parse().unwrap();
        assert!(!accepts(&address));
        let said = nobody_accepts(&address);
        assert!(
            said.starts_with("/etc/hosts does not list \"db.setpoint.invalid\", and no name server"),
            "{said}"
        );
        assert!(said.ends_with("write an address, or list it there"), "{said}");
    }
}
