//! A folder with a configuration, and a HAProxy that is started on it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use setpoint_instance::cli::Socket;
use setpoint_instance::process::Launch;
use setpoint_testutils::{Missing, Port, Version, Workdir};

/// How long HAProxy may take on a machine that is busy.
pub(crate) const WITHIN: Duration = Duration::from_mins(2);

pub(crate) struct World {
    pub(crate) folder: Workdir,
    pub(crate) port: Port,
    pub(crate) program: PathBuf,
}

impl World {
    pub(crate) fn new(version: Version) -> Result<Self, Missing> {
        let program = version.program()?;
        let world = Self { folder: Workdir::new("instance"), port: Port::lease(), program };
        world.write("one");
        Ok(world)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("haproxy.cfg")
    }

    /// A configuration that answers every request with a word.
    pub(crate) fn text(&self, word: &str) -> String {
        format!(
            "global\n  hard-stop-after 5s\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
             frontend main\n  bind {}\n  http-request return status 200 content-type text/plain string {word}\n",
            self.port.address()
        )
    }

    pub(crate) fn write(&self, word: &str) {
        fs::write(self.file(), self.text(word)).unwrap();
    }

    pub(crate) fn launch(&self) -> Launch {
        Launch {
            program: self.program.clone(),
            configuration: vec![self.file()],
            working_directory: self.folder.path().to_owned(),
            environment: Vec::new(),
            master_socket: self.folder.path().join("master.sock"),
            log: self.folder.path().join("haproxy.log"),
            within: WITHIN,
        }
    }

    pub(crate) fn master(&self) -> Socket {
        Socket::new(self.folder.path().join("master.sock"))
    }
}
