//! What a line needs that other lines have to give: Lua that was loaded, a stick table, a filter, a certificate, a group of
//! users, or the word that lets HAProxy accept what is experimental.

use rustc_hash::FxHashSet;

use super::configuration::{CheckedLine, Configuration, Part};
use crate::keywords::{self, Arguments, Place};
use crate::model::Version;
use crate::text::{Diagnostic, Problem, SectionKind, Severity, Word};

/// What HAProxy accepts only after `expose-experimental-directives`: the words that a line begins with, or one of its
/// options, and the versions in which it is so.
const EXPERIMENTAL: &[(&str, Kind, Version, Version)] = &[
    ("normalize-uri", Kind::Action, Version::V2_6, Version::LATEST),
    ("attach-srv", Kind::Action, Version::V2_9, Version::LATEST),
    ("acme", Kind::Section, Version::V3_2, Version::LATEST),
    ("ktls", Kind::Option, Version::V3_3, Version::LATEST),
    ("nbconn", Kind::Option, Version::V2_9, Version::LATEST),
    ("tune.fd.edge-triggered", Kind::Line, Version::V2_6, Version::LATEST),
    ("force-cfg-parser-pause", Kind::Line, Version::V3_0, Version::LATEST),
    ("tune.disable-fast-forward", Kind::Line, Version::V2_8, Version::V3_2),
];

/// Where a word stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It opens a section.
    Section,
    /// It begins a line.
    Line,
    /// It is what a rule does.
    Action,
    /// It is an option of a `server` or a `bind`.
    Option,
}

/// How many counters there are where nobody says so.
const COUNTERS: u32 = 3;

/// What the whole configuration gives.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Given {
    has_lua: bool,
    is_experimental: bool,
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
        self.is_experimental |= first.variable || first.is("expose-experimental-directives");
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
pub(super) fn check(
    configuration: &Configuration<'_>,
    version: Option<Version>,
    found: &mut [Vec<Diagnostic>],
) {
    let given = Given::of(configuration);
    for part in &configuration.parts {
        let Some(found) = found.get_mut(part.file) else { continue };
        let errors = found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        let refused: FxHashSet<u32> = errors.map(|diagnostic| diagnostic.line).collect();
        let own = Own::of(part);
        let checker = Checker { given: &given, own, part, version };
        let mut own_found = Vec::new();
        if let Some(header) = &part.header {
            checker.experimental(header, 0, Kind::Section, &mut own_found);
        }
        for line in part.lines.iter().filter(|line| !line.is_open() && !refused.contains(&line.number)) {
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
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Own {
    has_table: bool,
    /// Whether a line that can't be read may give anything.
    is_open: bool,
    bandwidth_limits: FxHashSet<String>,
    engines: FxHashSet<String>,
    groups: FxHashSet<String>,
    verifies_by_default: bool,
    has_certificates: bool,
}

impl Own {
    fn of(part: &Part<'_>) -> Self {
        let mut own = Self::default();
        for line in &part.lines {
            let Some(first) = line.words.first() else { continue };
            own.is_open |= line.is_open();
            own.has_table |= first.is("stick-table");
            own.has_certificates |= first.is("ssl-f-use");
            own.verifies_by_default |= is_verifying_default(line);
            let word = |at: usize| line.words.get(at).map(|word| word.to_str_lossy().into_owned());
            if first.is("group") {
                own.groups.extend(word(1));
            }
            if first.is("filter") && line.words.get(1).is_some_and(|kind| kind.text.starts_with(b"bwlim-")) {
                own.bandwidth_limits.extend(word(2));
            }
            if first.is("filter") && line.words.get(1).is_some_and(|kind| kind.is("spoe")) {
                let at = line.words.iter().position(|word| word.is("engine"));
                own.engines.extend(at.and_then(|at| word(at + 1)));
            }
        }
        own
    }
}

struct Checker<'c> {
    given: &'c Given,
    own: Own,
    part: &'c Part<'c>,
    version: Option<Version>,
}

impl Checker<'_> {
    fn line(&self, line: &CheckedLine<'_>, found: &mut Vec<Diagnostic>) {
        let Some(first) = line.words.first() else { return };
        self.experimental(line, 0, Kind::Line, found);
        let text = first.to_str_lossy();
        match &*text {
            "http-request" | "http-response" | "http-after-response" => self.rule(line, 1, found),
            "tcp-request" | "tcp-response" => self.rule(line, 2, found),
            "stick" => self.stick(line, found),
            "server" | "server-template" => self.server(line, found),
            "default-server" | "default-bind" => self.experimental(line, 1, Kind::Option, found),
            "bind" => self.bind(line, found),
            "ssl-f-use" => Self::must_have(line, "crt", found),
            "load" if self.part.kind == SectionKind::CrtStore => Self::must_have(line, "crt", found),
            "stick-table" | "table" => Self::must_have(line, "size", found),
            "filter" if line.words.get(1).is_some_and(|kind| kind.is("spoe") || kind.is("opentracing")) => {
                Self::must_have(line, "config", found);
            }
            "user" if self.part.kind == SectionKind::Userlist => self.user(line, found),
            _ => {}
        }
    }

    /// Looks for an option that such lines can't be without.
    fn must_have(line: &CheckedLine<'_>, option: &str, found: &mut Vec<Diagnostic>) {
        if let Some(first) = line.words.first().filter(|_| !has_any(line, &[option])) {
            found.push(say(line, first, format!("`{}` can't be without `{option}`", first.to_str_lossy())));
        }
    }

    /// Whether HAProxy looks at what the rules of this section name.
    fn is_looked_at(&self) -> bool {
        self.part.kind != SectionKind::Defaults
            || self.version.is_some_and(|version| version >= super::references::LOOKS_AT_DEFAULTS)
    }

    /// Looks at what is experimental among the words of a kind; `at` is the first of them.
    fn experimental(&self, line: &CheckedLine<'_>, at: usize, kind: Kind, found: &mut Vec<Diagnostic>) {
        if self.given.is_experimental {
            return;
        }
        let words = line.words.iter().skip(at).take(if kind == Kind::Option { usize::MAX } else { 1 });
        for word in words {
            let row = EXPERIMENTAL.iter().find(|row| row.1 == kind && word.is(row.0));
            let Some((name, _, first, last)) = row else { continue };
            if self.version.is_some_and(|version| (*first..=*last).contains(&version)) {
                let message = format!("`{name}` is experimental");
                let hint = "a line `expose-experimental-directives` in `global` allows it";
                found.push(say(line, word, message).with_hint(hint));
            }
        }
    }

    /// Looks at a rule, whose action is the word at `at`.
    fn rule(&self, line: &CheckedLine<'_>, at: usize, found: &mut Vec<Diagnostic>) {
        self.experimental(line, at, Kind::Action, found);
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
            } else if !line.words.iter().any(|word| word.is("table")) && self.is_looked_at() {
                self.needs_table(line, action, found);
            }
        }
        let missing = |known: &FxHashSet<String>, name: &Word<'_>| {
            !self.own.is_open && self.is_looked_at() && !known.contains(&*name.to_str_lossy())
        };
        if let Some(name) =
            next.filter(|name| action.is("set-bandwidth-limit") && missing(&self.own.bandwidth_limits, name))
        {
            let message = format!("no bandwidth limit of this section is called `{}`", name.to_str_lossy());
            found.push(
                say(line, name, message)
                    .with_hint("a line `filter bwlim-in NAME …` or `filter bwlim-out NAME …` makes one"),
            );
        }
        if let Some(name) =
            next.filter(|name| action.is("send-spoe-group") && missing(&self.own.engines, name))
        {
            let message = format!("no SPOE engine of this section is called `{}`", name.to_str_lossy());
            found.push(
                say(line, name, message).with_hint("a line `filter spoe engine NAME config FILE` makes one"),
            );
        }
    }

    fn stick(&self, line: &CheckedLine<'_>, found: &mut Vec<Diagnostic>) {
        let rule = line.words.get(1).filter(|_| !line.words.iter().any(|word| word.is("table")));
        if let Some(rule) = rule.filter(|_| self.part.kind != SectionKind::Frontend) {
            self.needs_table(line, rule, found);
        }
    }

    fn needs_table(&self, line: &CheckedLine<'_>, word: &Word<'_>, found: &mut Vec<Diagnostic>) {
        if !self.own.has_table && !self.own.is_open {
            let message = format!("`{}` needs a stick table, and this section has none", word.to_str_lossy());
            found.push(
                say(line, word, message)
                    .with_hint("a line `stick-table …` makes one, `table NAME` names another's"),
            );
        }
    }

    fn server(&self, line: &CheckedLine<'_>, found: &mut Vec<Diagnostic>) {
        self.experimental(line, 3, Kind::Option, found);
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
        self.experimental(line, 2, Kind::Option, found);
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

    fn user(&self, line: &CheckedLine<'_>, found: &mut Vec<Diagnostic>) {
        let Some(at) = line.words.iter().position(|word| word.is("groups")) else { return };
        let Some(word) = line.words.get(at + 1) else { return };
        let text = word.to_str_lossy();
        let missing = text.split(',').find(|group| !group.is_empty() && !self.own.groups.contains(*group));
        if let Some(group) = missing.filter(|_| !self.own.is_open) {
            found.push(say(line, word, format!("no group of this userlist is called `{group}`")));
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
