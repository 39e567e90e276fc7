//! What an instance is told about itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use setpoint_haproxy::model::{Context, Version};

use super::lock::folder_of;
use crate::reload::Method;

/// What an instance is told about itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program that checks configurations.
    pub program: PathBuf,
    /// The files of the configuration, in the order in which HAProxy reads them.
    pub files: Vec<PathBuf>,
    /// A folder of its own: lock, journal, and what is known of the running HAProxy.
    pub folder: PathBuf,
    /// Where HAProxy runs, and where it is asked to check.
    pub working_directory: PathBuf,
    /// The whole environment of the running HAProxy; that of this process if there is none.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// The socket of its master.
    pub master_socket: PathBuf,
    /// Whether the master has no socket: it is found among the processes of this machine, by its files.
    pub by_process: bool,
    /// The socket of its worker; found in the configuration if there is none.
    pub worker_socket: Option<PathBuf>,
    /// How a reload is asked for.
    pub reload: Method,
    /// How long a reload waits for further commits.
    pub reload_delay: Duration,
    /// How long a server that is removed goes on serving those who are bound to it.
    pub drain: Duration,
    /// How long a reload may take.
    pub reload_within: Duration,
    /// Whether HAProxy is asked before something is written.
    pub checks: bool,
    /// How long such a check may take.
    pub check_within: Duration,
    /// How many transactions may be open at once.
    pub open_transactions: usize,
    /// How many former versions of the configuration are kept.
    pub backups: usize,
    /// Where they are kept.
    pub backups_folder: PathBuf,
    /// The version of the schema, and of HAProxy.
    pub context: Context,
}

impl Settings {
    /// The settings of one file beside which, links followed, all else stands.
    pub fn new(program: impl Into<PathBuf>, file: impl Into<PathBuf>, version: Version) -> Self {
        let file = file.into();
        let folder = file.parent().map(PathBuf::from).unwrap_or_default();
        let own = folder_of(&file);
        Self {
            program: program.into(),
            files: vec![file],
            master_socket: own.join("master.sock"),
            backups: 0,
            backups_folder: own.join("backups"),
            folder: own,
            working_directory: folder,
            environment: None,
            by_process: false,
            worker_socket: None,
            reload: Method::Socket,
            reload_delay: Duration::from_secs(5),
            drain: Duration::ZERO,
            reload_within: Duration::from_mins(1),
            checks: true,
            check_within: Duration::from_mins(1),
            open_transactions: 20,
            context: Context::new(version),
        }
    }
}
