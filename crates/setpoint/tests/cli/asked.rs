//! Commands that ask a person before they go on, on a terminal.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::sandbox::Sandbox;

/// A command with a terminal to ask on.
struct Asked {
    child: Child,
    /// The end of the terminal where the person is.
    person: File,
    /// What the command printed so far.
    printed: String,
}

impl Asked {
    fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let name = ptsname(&person, Vec::new()).unwrap();
        let terminal: OwnedFd =
            rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, rustix::fs::Mode::empty()).unwrap();
        let mut command = sandbox.command(args);
        command.stdin(Stdio::from(terminal)).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { child: command.spawn().unwrap(), person: File::from(person), printed: String::new() }
    }

    /// Waits for the question.
    fn until_asked(&mut self) {
        let out = self.child.stdout.as_mut().unwrap();
        let mut byte = [0];
        while !self.printed.ends_with("Only `yes` goes on: ") {
            assert_eq!(out.read(&mut byte).unwrap(), 1, "it ended: {}", self.printed);
            self.printed.push(char::from(byte[0]));
        }
    }

    fn answer(mut self, answer: &str) -> (i32, String, String) {
        writeln!(self.person, "{answer}").unwrap();
        let ended = self.child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (ended.status.code().unwrap(), self.printed + &text(ended.stdout), text(ended.stderr))
    }
}

#[test]
fn what_is_agreed_to_is_done_and_what_is_not_is_left() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n");
    for (answer, code, there) in [("no", 1, false), ("yes", 0, true)] {
        let mut asked = Asked::start(&sandbox, &["apply"]);
        asked.until_asked();
        let (ended, out, err) = asked.answer(answer);
        assert_eq!((ended, sandbox.path("a").exists()), (code, there), "{out}{err}");
    }
}

#[test]
fn what_somebody_writes_while_a_person_is_asked_is_not_replaced() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n  b: {content: one}\n  c: {content: one}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.declare("files:\n  a: {content: two}\n  c: {content: one}\n");
    let mut asked = Asked::start(&sandbox, &["apply"]);
    asked.until_asked();
    sandbox.write("a", "somebody's");
    sandbox.write("b", "somebody's");
    let (code, out, err) = asked.answer("yes");
    assert_eq!(code, 1, "{out}{err}");
    let said = "error: the host has changed since this was shown, and nothing was done: file/a is changed; file/b is changed\n\
                hint: start it again, and look at what it shows then\n";
    assert_eq!(err, said);
    assert_eq!((sandbox.read("a"), sandbox.read("b")), ("somebody's".to_owned(), "somebody's".to_owned()));
    // It is drift, and shown as such, when it is started again.
    let mut asked = Asked::start(&sandbox, &["destroy"]);
    asked.until_asked();
    assert!(asked.printed.contains("~ file/a is changed"), "{}", asked.printed);
    sandbox.write("c", "somebody's");
    let (code, out, err) = asked.answer("yes");
    assert_eq!((code, sandbox.read("c").as_str()), (1, "somebody's"), "{out}{err}");
}
