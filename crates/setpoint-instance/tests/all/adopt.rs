//! A HAProxy that something else started is known by its master's socket.

use setpoint_instance::cli::Socket;
use setpoint_instance::process::Identity;
use setpoint_instance::reload::{ReloadError, processes};
use setpoint_testutils::{Haproxy, Version, need};

#[tokio::test]
async fn how_it_was_started_is_read_from_its_process() {
    for version in Version::ALL {
        let haproxy = need!(Haproxy::start(version).await);
        let found = processes(&Socket::new(haproxy.master_socket())).await.unwrap();
        let line = Identity::of(found.master.pid).unwrap().command_line().unwrap();
        let base = haproxy.folder().join("base.cfg");
        assert_eq!(line.files().unwrap(), [base, haproxy.configuration_file()], "{version:?}");
        let folder = std::fs::canonicalize(haproxy.folder()).unwrap();
        assert_eq!(std::fs::canonicalize(&line.working_directory).unwrap(), folder);
        assert!(line.environment.iter().any(|(name, _)| name == "PATH"));
    }
}

#[tokio::test]
async fn what_is_no_master_is_not_taken_for_one() {
    let haproxy = need!(Haproxy::start(Version::V3_4).await);
    let error = processes(&Socket::new(haproxy.runtime_socket())).await.unwrap_err();
    assert!(matches!(error, ReloadError::NoMaster { .. }), "{error}");
}
