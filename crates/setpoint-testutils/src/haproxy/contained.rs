//! A HAProxy in a namespace of process ids of its own, as in a container, whose master has the process id that a stranger has
//! here.

use std::path::Path;
use std::process::Command;

use crate::part::{self, Missing};
use crate::process::Process;
use crate::wait;
use crate::workdir::Workdir;

/// A HAProxy in a namespace of its own, and the stranger whose process id its master has there.
///
/// Its files and sockets are those of this machine.
#[derive(Debug)]
pub struct Contained {
    container: Process,
    stranger: Process,
    folder: Workdir,
}

impl Contained {
    /// Starts a program of HAProxy on a configuration, with a socket for its master.
    pub fn start(program: &Path, configuration: &Path, master_socket: &Path) -> Result<Self, Missing> {
        part::root("a namespace of process ids")?;
        let folder = Workdir::new("contained");
        let at = |name: &str| folder.path().join(name);
        let stranger = Process::start("stranger", Command::new("sleep").arg("3600"), &at("stranger.log"));
        let container = container(program, configuration, master_socket, stranger.id(), &at("haproxy.log"));
        Ok(Self { container, stranger, folder })
    }

    /// Ends it with all that runs in its namespace, and starts it again: its processes have the ids that they had there.
    pub fn restart(&mut self, program: &Path, configuration: &Path, master_socket: &Path) {
        self.container.kill();
        let log = self.folder.path().join("haproxy.log");
        self.container = container(program, configuration, master_socket, self.stranger.id(), &log);
    }

    /// The process id of its master in its namespace, which is that of the stranger here.
    pub fn master(&self) -> u32 {
        self.stranger.id()
    }

    /// Waits until it says what `ask` wants to hear.
    pub async fn until<T>(&self, what: &str, ask: impl AsyncFnMut() -> Option<T>) -> T {
        self.container.until_within(wait::LIMIT, what, ask).await
    }

    /// Returns whether the stranger goes on: a signal that is meant for the master would have ended it.
    pub fn stranger_lives(&self) -> bool {
        // Of the signals that it has got, this is the last that it deals with.
        self.stranger.pause();
        let lives = self.stranger.is_paused();
        self.stranger.resume();
        lives
    }
}

/// Starts HAProxy in a namespace in which the next process gets an id.
fn container(program: &Path, configuration: &Path, master_socket: &Path, id: u32, log: &Path) -> Process {
    // It is not the first process there, whose end would be that of the namespace, and which no signal ends.
    const SCRIPT: &str =
        "echo $(($1 - 1)) > /proc/sys/kernel/ns_last_pid\n\"$2\" -W -S \"$3\" -f \"$4\" &\nwait";
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", SCRIPT, "sh"]);
    command.arg(id.to_string()).arg(program).arg(master_socket).arg(configuration);
    Process::start("contained haproxy", &mut command, log)
}
