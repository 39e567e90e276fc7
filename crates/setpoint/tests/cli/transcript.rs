//! What people read, whole: commands one after the other with all they print, as in a terminal.

use std::fmt::Write;
use std::fs;

use nix::sys::signal::Signal;

use crate::sandbox::{Ran, Sandbox, timeless};

/// A session in a sandbox.
struct Transcript<'a> {
    sandbox: &'a Sandbox,
    text: String,
}

impl<'a> Transcript<'a> {
    fn of(sandbox: &'a Sandbox) -> Self {
        Self { sandbox, text: String::new() }
    }

    /// Says what somebody else does meanwhile.
    fn note(&mut self, what: &str) -> &mut Self {
        let _ = writeln!(self.text, "# {what}\n");
        self
    }

    fn run(&mut self, command: &str) -> &mut Self {
        let args: Vec<&str> = command.split(' ').collect();
        let ran = self.sandbox.run(&args);
        let _ = writeln!(self.text, "$ setpoint {command}\n{}", self.printed(&ran));
        self
    }

    fn printed(&self, ran: &Ran) -> String {
        let mut text = self.plain(&(ran.out() + &ran.err()));
        if ran.code() != 0 {
            let _ = writeln!(text, "[exit code {}]", ran.code());
        }
        text
    }

    /// Without what differs from run to run.
    fn plain(&self, text: &str) -> String {
        let root = self.sandbox.root().canonicalize().unwrap();
        let text = timeless(text).replace(root.to_str().unwrap(), "/site");
        text.split_inclusive(' ').flat_map(|word| word.split_inclusive('\n')).map(without_time).collect()
    }
}

/// A word, with a time of day replaced.
fn without_time(word: &str) -> String {
    let end = word.trim_end_matches([' ', '\n', ':']);
    let time = end.ends_with('Z') && end.contains('T') && end.starts_with("20");
    if time { word.replace(end, "TIME") } else { word.to_owned() }
}

const SITE: &str = "\
directories:
  conf: {mode: \"0750\"}
files:
  motd: {content: \"hello\\n\"}
  app: {path: conf/app.conf, content: \"port = 80\\n\"}
  key: {path: conf/key, content: secret, sensitive: true, mode: \"0600\"}
symlinks:
  current: {target: conf}
";

#[test]
fn the_state_and_its_history() {
    let sandbox = Sandbox::new(SITE);
    let mut transcript = Transcript::of(&sandbox);
    transcript.run("state list").run("history").run("show");
    transcript.run("apply --yes").run("state list").run("state show file.app").run("state show file.key");
    transcript.run("state mv file.motd file.greeting").run("state mv file.greeting file.motd");
    transcript.run("state mv file.motd directory.motd").run("state rm file.motd").run("state rm file.motd");
    transcript.run("state import file.motd").run("state import file.nowhere").run("state show file.nowhere");
    transcript.run("destroy --yes").run("history").run("show 1").run("show").run("show 9");
    insta::assert_snapshot!(transcript.text);
}

#[test]
fn why_an_item_is_as_it_is() {
    let sandbox = Sandbox::new(SITE);
    let mut transcript = Transcript::of(&sandbox);
    transcript.run("explain file.app").run("apply --yes").run("explain file.app");
    sandbox.write("conf/app.conf", "port = 81\n");
    transcript.note("someone changes conf/app.conf").run("explain file.app");
    fs::remove_file(sandbox.path("conf/app.conf")).unwrap();
    fs::create_dir(sandbox.path("conf/app.conf")).unwrap();
    transcript
        .note("someone puts a directory in its place")
        .run("explain file.app")
        .run("plan")
        .run("apply --yes");
    transcript.run("explain file.app").run("explain file.nowhere");
    insta::assert_snapshot!(transcript.text);
}

#[test]
fn plans_of_all_kinds() {
    let sandbox = Sandbox::new(SITE);
    let mut transcript = Transcript::of(&sandbox);
    transcript.run("validate").run("plan --target file.app").run("plan --out first.plan").run("apply");
    transcript.run("apply first.plan").run("apply first.plan").run("plan --detailed-exitcode");
    let changed = SITE.replace("port = 80", "port = 8080").replace("0750", "0755");
    let changed = changed.replace("path: conf/app.conf", "path: conf/main.conf").replace("secret", "other");
    sandbox.declare(&changed.replace("symlinks:\n  current: {target: conf}\n", "files-gone: x\n"));
    transcript.note("a mistake in the manifest").run("validate").run("plan");
    sandbox.declare(&changed.replace("symlinks:\n  current: {target: conf}\n", ""));
    sandbox.write("motd", "bye\n");
    transcript
        .note("another manifest, and someone changes motd")
        .run("plan --detailed-exitcode")
        .run("plan --refresh=false");
    transcript
        .run("apply --yes --refresh-only")
        .run("apply --yes --replace directory.conf")
        .run("apply --yes");
    insta::assert_snapshot!(transcript.text);
}

#[test]
fn what_is_refused_and_what_to_do_about_it() {
    let sandbox =
        Sandbox::new("files:\n  motd: {content: hello}\n  kept: {content: x, prevent_destroy: true}\n");
    sandbox.write("motd", "of someone else");
    let mut transcript = Transcript::of(&sandbox);
    transcript.run("plan").run("apply --yes").run("destroy").run("destroy --yes");
    sandbox.declare("files:\n  motd: {content: hello, adopt: true}\n");
    transcript.note("adopt: true, and no file kept any more").run("apply --yes");
    transcript.run("state unprotect file.kept").run("apply --yes");
    sandbox.write("site.yaml", "name: other\nfiles:\n  a: {content: b}\n");
    transcript.note("another set beside the same state").run("plan").run("apply --yes").run("state list");
    sandbox.write("site.yaml", "name: site\nfiles:\n  a: {path: ../a, content: b}\n  b: {source: nowhere}\n");
    transcript.note("a path that leads out, and a source that is not there").run("plan");
    sandbox.write(
        "site.yaml",
        "name: site\nfiles:\n  a: {content: x, after: [file.b]}\n  b: {content: y, after: [file.a]}\n",
    );
    transcript
        .note("two files that wait for each other")
        .run("plan")
        .run("plan --target file.c")
        .run("plan -f nowhere");
    transcript.run("apply nowhere.plan").run("no-such-command").run("graph --format png");
    insta::assert_snapshot!(transcript.text);
}

#[test]
fn the_help_of_every_command() {
    let sandbox = Sandbox::new("");
    let mut transcript = Transcript::of(&sandbox);
    for command in [
        "plan",
        "apply",
        "watch",
        "destroy",
        "validate",
        "explain",
        "graph",
        "state",
        "state list",
        "state show",
        "state rm",
        "state mv",
        "state import",
        "history",
        "show",
        "schema",
        "completions",
        "man",
    ] {
        transcript.run(&format!("{command} --help"));
    }
    insta::assert_snapshot!(transcript.text);
}

#[test]
fn what_watch_says() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\n  b: {content: two}\n");
    let mut watch = sandbox.start(&["watch", "--interval", "1h"]);
    watch.until("+ file/b created");
    sandbox.write("a", "changed");
    watch.until("~ file/a modified");
    sandbox.declare("files:\n  a: {contents: one}\n");
    watch.until("the last good manifests stand");
    sandbox.declare("files:\n  a: {content: one}\n");
    watch.until("- file/b deleted");
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.wait(), 0);
    insta::assert_snapshot!(Transcript::of(&sandbox).plain(&watch.log()));
}
