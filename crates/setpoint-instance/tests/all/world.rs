//! A folder with a configuration, and a HAProxy that is started on it.

use std::fs;
use std::path::PathBuf;

use setpoint_instance::cli::Socket;
use setpoint_instance::process::Launch;
use setpoint_testutils::{Missing, Port, Version, Workdir};

pub(crate) use setpoint_testutils::wait::LIMIT as WITHIN;

pub(crate) struct World {
    pub(crate) folder: Workdir,
    /// Where the configuration stands: the folder, or one in it.
    pub(crate) place: PathBuf,
    pub(crate) port: Port,
    pub(crate) program: PathBuf,
}

impl World {
    pub(crate) fn new(version: Version) -> Result<Self, Missing> {
        let program = version.program()?;
        let folder = Workdir::new("instance");
        let world = Self { place: folder.path().to_owned(), folder, port: Port::lease(), program };
        world.write("one");
        Ok(world)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.place.join("haproxy.cfg")
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
