//! What a line needs that other lines have to give: Lua that was loaded, enough counters, a certificate.

use super::configuration::{CheckedLine, Configuration, Part};
use crate::keywords::{self, Arguments, Place};
use crate::model::Version;
use crate::text::{Diagnostic, Problem, SectionKind, Word};

/// How many counters there are where nobody says so.
const COUNTERS: u32 = 3;

/// What the whole configuration gives.
#[derive(Debug, Default)]
struct Given {
    has_lua: bool,
    counters: Option<u32>,
    /// Whether no server has to show a certificate.
    verifies_none: bool,
    /// Whether some `default-server` of a `defaults` section says how servers are verified.
    verifies_by_default: bool,
}

impl Given {
    fn of(configuration: &Configuration<'_>) -> Self {
        let mut given = Self::default();
        for part in &configuration.parts {
            match part.kind {
                SectionKind::Global => {
                    for line in &part.lines {
                        given.global(line);
                    }
                }
                SectionKind::Defaults => {
                    given.verifies_by_default |= part.lines.iter().any(is_verifying_default);
                }
                _ => {}
            }
        }
        given
    }

    fn global(&mut self, line: &CheckedLine<'_>) {
        let Some(first) = line.words.first() else { return };
        let second = line.words.get(1);
        // What a variable stands for may be any of these.
        self.has_lua |= first.variable || first.is("lua-load") || first.is("lua-load-per-thread");
        self.verifies_none |=
            first.is("ssl-server-verify") && second.is_some_and(|word| word.variable || word.is("none"));
        if first.is("tune.stick-counters") {
            self.counters = second.and_then(|word| word.to_str_lossy().parse().ok()).or(Some(u32::MAX));
        }
    }
}

/// Whether a line is a `default-server` that says how servers are verified.
fn is_verifying_default(line: &CheckedLine<'_>) -> bool {
    line.words.first().is_some_and(|word| word.is("default-server")) && has_any(line, &["verify", "ca-file"])
}

fn has_any(line: &CheckedLine<'_>, options: &[&str]) -> bool {
    line.words.iter().skip(1).any(|word| word.variable || options.iter().any(|option| word.is(option)))
}

/// Looks for lines that lack what they need. Lines in which an error was found already are left out.
pub(super) fn check(configuration: &Configuration<'_>, found: &mut [Vec<Diagnostic>]) {
    let given = Given::of(configuration);
    let wrong = super::lines::lines_with_errors(found);
    for part in &configuration.parts {
        let (Some(found), Some(wrong)) = (found.get_mut(part.file), wrong.get(part.file)) else { continue };
        let own = Own::of(part);
        let checker = Checker { given: &given, own, part };
        let mut own_found = Vec::new();
        for line in part.lines.iter().filter(|line| !line.is_open() && !wrong.contains(&line.number)) {
            checker.line(line, &mut own_found);
        }
        for keyword in ["tcp-check", "http-check"] {
            checker.steps(keyword, &mut own_found);
        }
        found.append(&mut own_found);
    }
}

/// What a section gives to its own lines.
#[derive(Debug, Default)]
struct Own {
    /// Whether a line that can't be read may give anything.
    is_open: bool,
    verifies_by_default: bool,
    has_certificates: bool,
}

impl Own {
    fn of(part: &Part<'_>) -> Self {
        let mut own = Self::default();
        for line in &part.lines {
            let Some(first) = line.words.first() else { continue };
            own.is_open |= first.variable;
            own.has_certificates |= first.is("ssl-f-use");
            own.verifies_by_default |= is_verifying_default(line);
        }
        own
    }
}

struct Checker<'c> {
    given: &'c Given,
    own: Own,
    part: &'c Part<'c>,
}

impl Checker<'_> {
    fn line(&self, line: &CheckedLine<'_>, found: &mut Vec<Diagnostic>) {
        let Some(first) = line.words.first() else { return };
        let text = first.to_str_lossy();
        match &*text {
            "http-request" | "http-response" | "http-after-response" => self.rule(line, 1, found),
            "tcp-request" | "tcp-response" => self.rule(line, 2, found),
            "server" | "server-template" => self.server(line, found),
            "bind" => self.bind(line, found),
            _ => {}
        }
    }

    /// Looks at a rule, whose action is the word at `at`.
    fn rule(&self, line: &CheckedLine<'_>, at: usize, found: &mut Vec<Diagnostic>) {
        let Some(action) = line.words.get(at) else { return };
        let name = action.to_str_lossy();
        let next = line.words.get(at + 1);
        if let Some(lua) = [Some(action), next.filter(|_| name == "use-service")]
            .into_iter()
            .flatten()
            .find(|word| word.text.starts_with(b"lua.") && !self.given.has_lua)
        {
            let message = format!("nothing loads the Lua that registers `{}`", lua.to_str_lossy());
            found.push(say(line, lua, message).with_hint("`lua-load FILE` in `global` does"));
        }
        if let Some(number) = name.strip_prefix("track-sc").and_then(|number| number.parse::<u32>().ok()) {
            let counters = self.given.counters.unwrap_or(COUNTERS);
            if number >= counters {
                let message = format!("there are {counters} counters, the first of which is `track-sc0`");
                found.push(
                    say(line, action, message).with_hint("`tune.stick-counters` in `global` makes more"),
                );
            }
        }
    }

    fn server(&self, line: &CheckedLine<'_>, found: &mut Vec<Diagnostic>) {
        let verified =
            self.given.verifies_none || self.given.verifies_by_default || self.own.verifies_by_default;
        let is_proxy = self.part.kind.is_proxy();
        let before = if line.words.first().is_some_and(|word| word.is("server")) { 3 } else { 4 };
        let options = options(line, before);
        let last = |on: &str, off: &str| {
            let mut found = options.iter().copied().filter(|word| word.is(on) || word.is(off));
            found.next_back().filter(|word| word.is(on))
        };
        let Some(word) = last("ssl", "no-ssl").or_else(|| last("check-ssl", "no-check-ssl")) else { return };
        if is_proxy && !verified && !has_any(line, &["verify", "ca-file"]) {
            let message = "the server's certificate is to be verified, and no `ca-file` says by which";
            let hint = "write `ca-file FILE`, `ca-file @system-ca`, or `verify none` to trust every server";
            found.push(say(line, word, message.to_owned()).with_hint(hint));
        }
    }

    fn bind(&self, line: &CheckedLine<'_>, found: &mut Vec<Diagnostic>) {
        let Some(ssl) = line.words.iter().skip(2).find(|word| word.is("ssl")) else { return };
        let has_certificate =
            has_any(line, &["crt", "crt-list", "default-crt", "generate-certificates", "strict-sni"]);
        if self.part.kind.is_proxy() && !has_certificate && !self.own.has_certificates && !self.own.is_open {
            found.push(say(line, ssl, "no certificate is given".to_owned()).with_hint("write `crt FILE`"));
        }
    }

    /// Looks at the steps of a health check: where one of them connects, the first has to.
    fn steps(&self, keyword: &str, found: &mut Vec<Diagnostic>) {
        let step = |line: &&CheckedLine<'_>| {
            let is_step = |word: &Word<'_>| {
                ["connect", "send", "expect"].iter().any(|step| word.text.starts_with(step.as_bytes()))
                    && !word.is("send-state")
            };
            line.certain
                && line.words.first().is_some_and(|word| word.is(keyword))
                && line.words.get(1).is_some_and(is_step)
        };
        let connects = |line: &&CheckedLine<'_>| line.words.get(1).is_some_and(|word| word.is("connect"));
        let mut steps = self.part.lines.iter().filter(step);
        if steps.next().as_ref().is_none_or(connects) {
            return;
        }
        if let Some((line, word)) = steps.find(connects).and_then(|line| Some((line, line.words.get(1)?))) {
            let message = "where a step connects, the first one has to".to_owned();
            found.push(say(line, word, message).with_hint("put it before all that sends or expects"));
        }
    }
}

/// The options of a server, without what belongs to them; the first is the word at `before`.
fn options<'l>(line: &'l CheckedLine<'_>, before: usize) -> Vec<&'l Word<'l>> {
    let mut options = Vec::new();
    let mut at = before;
    while let Some(word) = line.words.get(at) {
        options.push(word);
        match keywords::option(Place::ServerOption, &word.to_str_lossy(), Version::LATEST).1 {
            Arguments::Count(count) => at += 1 + count,
            Arguments::Any => break,
        }
    }
    options
}

/// Says what a word needs.
fn say(line: &CheckedLine<'_>, word: &Word<'_>, message: String) -> Diagnostic {
    line.diagnostic(Problem::Needs, (word.column, word.raw), message)
}
