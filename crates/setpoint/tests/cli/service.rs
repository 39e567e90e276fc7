//! `watch` as a service of systemd.

use std::io::{PipeWriter, Write as _};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::fs::OFlags;

use setpoint_testutils::Port;

use crate::sandbox::{Ended, Sandbox, eventually};

/// The messages to systemd, up to one that contains a text.
fn messages_until(socket: &UnixDatagram, wanted: &str) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    let end = Instant::now() + setpoint_testutils::wait::LIMIT;
    let mut buffer = [0; 4096];
    while !messages.iter().any(|message| message.contains(wanted)) {
        assert!(Instant::now() < end, "no message has {wanted:?}: {messages:?}");
        if let Ok(length) = socket.recv(&mut buffer) {
            messages.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
        }
    }
    messages
}

fn serve(sandbox: &Sandbox, socket: &UnixDatagram, name: &str) {
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut command = sandbox.command(&["watch", "--interval", "1h"]);
    command.env("NOTIFY_SOCKET", name).env("WATCHDOG_USEC", "200000").stdout(Stdio::null());
    let mut watch = Ended(command.spawn().unwrap());
    let messages = messages_until(socket, "READY=1");
    let ready = messages.iter().position(|message| message.contains("READY=1")).unwrap();
    assert_eq!(messages[ready], "READY=1\nSTATUS=watching site: 2 items declared");
    assert!(messages[..ready].iter().all(|message| message == "WATCHDOG=1"), "{messages:?}");
    assert!(sandbox.path("a").exists(), "it is ready when the host is as declared");
    for _ in 0..3 {
        messages_until(socket, "WATCHDOG=1");
    }
    sandbox.declare("files:\n  a: {content: x}\n");
    messages_until(socket, "STATUS=watching site: 1 item declared");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(i32::try_from(watch.0.id()).unwrap()), Signal::SIGTERM)
        .unwrap();
    messages_until(socket, "STOPPING=1\nSTATUS=stopping");
    assert!(watch.0.wait().unwrap().success());
}

const SITE: &str = "files:\n  a: {content: x}\ncommands:\n  variables: {apply: env > env}\n";

#[test]
fn systemd_is_told_when_the_host_is_as_declared_that_all_is_well_and_when_it_ends() {
    let sandbox = Sandbox::new(SITE);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    serve(&sandbox, &UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap());
    let variables = sandbox.read("env");
    assert!(!variables.contains("NOTIFY_SOCKET") && !variables.contains("WATCHDOG"), "{variables}");
}

#[test]
fn a_socket_in_the_abstract_namespace_is_one_as_well() {
    let name = format!("setpoint-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let sandbox = Sandbox::new(SITE);
    serve(&sandbox, &UnixDatagram::bind_addr(&address).unwrap(), &format!("@{name}"));
}

#[test]
fn a_watchdog_of_another_process_is_not_answered_and_nobody_has_to_listen() {
    let sandbox = Sandbox::new(SITE);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut command = sandbox.command(&["watch", "--interval", "1h"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "1000").env("WATCHDOG_PID", "1");
    let watch = Ended(command.stdout(Stdio::null()).spawn().unwrap());
    assert_eq!(messages_until(&socket, "READY=1").len(), 1);
    drop((socket, directory));
    sandbox.write("a", "changed");
    crate::sandbox::eventually("it goes on", || sandbox.read("a") == "x");
    drop(watch);
}

/// The answer to a request to a path; empty where nobody answers.
fn get(port: &Port, path: &str) -> String {
    let mut answer = String::new();
    if let Ok(mut stream) = std::net::TcpStream::connect(port.address()) {
        let _ = write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        let _ = std::io::Read::read_to_string(&mut stream, &mut answer);
    }
    answer
}

#[test]
fn whether_a_watch_works_or_fails_is_seen_at_its_endpoints() {
    let sandbox = Sandbox::new("files:\n  a: {content: x}\n");
    let port = Port::lease();
    let arguments = ["watch", "--interval", "1h", "--observe", &port.address().to_string()];
    let watch = Ended(sandbox.command(&arguments).stdout(Stdio::null()).spawn().unwrap());
    eventually("it works", || get(&port, "/readyz").ends_with("\r\n\r\nworking\n"));
    assert!(get(&port, "/healthz").starts_with("HTTP/1.1 200"));
    // What it wrote itself may have made it look once more.
    let metrics = get(&port, "/metrics");
    assert!(metrics.contains("setpoint_ready{command=\"watch\"} 1\n"), "{metrics}");
    assert!(metrics.contains("setpoint_passes_total{command=\"watch\",result=\"error\"} 0\n"), "{metrics}");
    sandbox.declare("files:\n  a: {content: x}\n  b: [nonsense\n");
    eventually("it can't", || get(&port, "/readyz").starts_with("HTTP/1.1 503"));
    let state = get(&port, "/debug/state");
    assert!(state.contains("\"role\":\"failing\"") && state.contains("\"reason\":"), "{state}");
    assert!(get(&port, "/healthz").starts_with("HTTP/1.1 200"), "starting it anew would not help");
    sandbox.declare("files:\n  a: {content: x}\n  b: {content: x}\n");
    eventually("it works again", || get(&port, "/readyz").ends_with("working\n"));
    drop(watch);
}

/// Fills a pipe, so that whoever writes to it waits.
fn fill(mut pipe: &PipeWriter) {
    let flags = rustix::fs::fcntl_getfl(pipe).unwrap();
    rustix::fs::fcntl_setfl(pipe, flags | OFlags::NONBLOCK).unwrap();
    for size in [4096, 1] {
        while pipe.write(&vec![0; size]).is_ok() {}
    }
    rustix::fs::fcntl_setfl(pipe, flags).unwrap();
}

/// A socket of systemd, and the command with it.
fn supervised(
    sandbox: &Sandbox,
    arguments: &[&str],
) -> (tempfile::TempDir, UnixDatagram, std::process::Command) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let mut command = sandbox.command(arguments);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000");
    (directory, socket, command)
}

#[test]
fn the_watchdog_is_answered_while_a_large_file_is_read() {
    let sandbox = Sandbox::new("files:\n  a: {content: x}\n");
    let (_directory, socket, mut command) = supervised(&sandbox, &["watch", "--interval", "1h"]);
    let watch = Ended(command.stdout(Stdio::null()).spawn().unwrap());
    messages_until(&socket, "READY=1");
    // As many bytes as take seconds to read: it is ended before it gets to write them.
    std::fs::File::create(sandbox.path("source")).unwrap().set_len(64 << 30).unwrap();
    sandbox.declare("files:\n  a: {content: x}\n  large: {source: source}\n");
    let busy = format!("/proc/{}/fd", watch.0.id());
    crate::sandbox::eventually("the source is open", || {
        let open = std::fs::read_dir(&busy).unwrap().filter_map(Result::ok);
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|path| path.ends_with("source"))
    });
    for _ in 0..5 {
        messages_until(&socket, "WATCHDOG=1");
    }
    assert!(!sandbox.path("large").exists());
    drop(watch);
}

#[test]
fn the_watchdog_of_a_command_that_hangs_is_not_answered() {
    let sandbox = Sandbox::new(SITE);
    let (_directory, socket, mut command) = supervised(&sandbox, &["watch", "--interval", "1h"]);
    let (reader, writer) = std::io::pipe().unwrap();
    fill(&writer);
    let watch = Ended(command.stdout(writer).spawn().unwrap());
    // It waits for somebody to read what it says: it is still to be heard of what it could do until then, and no more.
    let mut buffer = [0; 4096];
    crate::sandbox::eventually("it is silent", || {
        let second = Instant::now() + Duration::from_secs(1);
        let mut heard = false;
        while Instant::now() < second {
            heard |= socket.recv(&mut buffer).is_ok();
        }
        !heard
    });
    assert!(!sandbox.path("a").exists());
    drop(reader);
    drop(watch);
}

#[test]
fn systemd_is_told_of_a_command_that_only_reports() {
    let sandbox = Sandbox::new(SITE);
    let (_directory, socket, mut command) =
        supervised(&sandbox, &["watch", "--report-only", "--interval", "1h"]);
    let mut watch = Ended(command.stdout(Stdio::null()).spawn().unwrap());
    let messages = messages_until(&socket, "READY=1");
    assert_eq!(messages.last().unwrap(), "READY=1\nSTATUS=reporting what differs from site");
    assert!(!sandbox.path("a").exists(), "it changes nothing");
    messages_until(&socket, "WATCHDOG=1");
    let process = nix::unistd::Pid::from_raw(i32::try_from(watch.0.id()).unwrap());
    nix::sys::signal::kill(process, Signal::SIGTERM).unwrap();
    messages_until(&socket, "STOPPING=1\nSTATUS=stopping");
    assert!(watch.0.wait().unwrap().success());
}

#[test]
fn watch_may_open_as_many_files_as_the_system_allows() {
    let sandbox = Sandbox::new(SITE);
    let mut command = std::process::Command::new("sh");
    command.current_dir(sandbox.root()).args(["-c", "ulimit -Sn 256 && exec \"$0\" watch"]);
    command.arg(env!("CARGO_BIN_EXE_setpoint")).stdin(Stdio::null()).stdout(Stdio::null());
    let watch = Ended(command.spawn().unwrap());
    crate::sandbox::eventually("it works", || sandbox.path("a").exists());
    // But for the instant in which it starts something.
    crate::sandbox::eventually("the limit is raised", || {
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", watch.0.id())).unwrap();
        let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        let [soft, hard] = [3, 4].map(|field| files.split_ascii_whitespace().nth(field).unwrap());
        soft == hard
    });
}

#[test]
fn what_watch_starts_may_open_as_many_files_as_what_apply_starts() {
    let command = |i| format!("  c{i}: {{apply: 'ulimit -Sn >> limits'}}\n");
    let process = |i| format!("  p{i}: {{command: 'ulimit -Sn >> limits; exec sleep 600'}}\n");
    let commands = (0..20).map(command).collect::<Vec<_>>().concat();
    let processes = (0..20).map(process).collect::<Vec<_>>().concat();
    let sandbox = crate::processes::Processes::new(&format!("processes:\n{processes}commands:\n{commands}"));
    let mut command = std::process::Command::new("sh");
    command.current_dir(sandbox.root()).args(["-c", "ulimit -Sn 256 && exec \"$0\" watch"]);
    command.arg(env!("CARGO_BIN_EXE_setpoint")).stdin(Stdio::null()).stdout(Stdio::null());
    let _watch = Ended(command.spawn().unwrap());
    // Each looks at its limit in its first instant.
    let limits = || std::fs::read_to_string(sandbox.path("limits")).unwrap_or_default();
    crate::sandbox::eventually("all have run", || limits().lines().count() == 40);
    assert_eq!(limits().lines().filter(|limit| *limit == "256").count(), 40, "{}", limits());
}
