//! What a version does not know, no longer knows, or warns of.

use std::borrow::Cow;

use crate::keywords::{self, Arguments, Knowledge, Place};
use crate::model::Version;
use crate::text::{Diagnostic, Document, Line, Problem, Section, SectionKind, Word, nearest};

/// Lines that HAProxy warns of: their first words, since when, and what to write instead.
const DEPRECATED: &[(&str, Version, &str)] = &[
    ("dispatch", Version::V3_3, "a `server` with the same address does the same"),
    ("transparent", Version::V3_3, "a `server` with the address 0.0.0.0 does the same"),
    ("option transparent", Version::V3_3, "a `server` with the address 0.0.0.0 does the same"),
    (
        "option accept-invalid-http-request",
        Version::V3_0,
        "write `option accept-unsafe-violations-in-http-request`",
    ),
    (
        "option accept-invalid-http-response",
        Version::V3_0,
        "write `option accept-unsafe-violations-in-http-response`",
    ),
    ("master-worker", Version::V3_3, "start HAProxy with `-W` or `-Ws`"),
    ("tune.quic.cc.cubic.min-losses", Version::V3_3, "write `tune.quic.fe.cc.cubic-min-losses`"),
    ("tune.quic.cc-hystart", Version::V3_3, "write `tune.quic.fe.cc.hystart`"),
    ("tune.quic.max-frame-loss", Version::V3_3, "write `tune.quic.fe.cc.max-frame-loss`"),
    ("tune.quic.frontend.default-max-window-size", Version::V3_3, "write `tune.quic.fe.cc.max-win-size`"),
    ("tune.quic.reorder-ratio", Version::V3_3, "write `tune.quic.fe.cc.reorder-ratio`"),
    ("tune.quic.frontend.max-idle-timeout", Version::V3_3, "write `tune.quic.fe.max-idle-timeout`"),
    ("tune.quic.frontend.glitches-threshold", Version::V3_3, "write `tune.quic.fe.sec.glitches-threshold`"),
    ("tune.quic.retry-threshold", Version::V3_3, "write `tune.quic.fe.sec.retry-threshold`"),
    ("tune.quic.socket-owner", Version::V3_3, "write `tune.quic.fe.sock-per-conn`"),
    ("tune.quic.frontend.stream-data-ratio", Version::V3_3, "write `tune.quic.fe.stream.data-ratio`"),
    ("tune.quic.frontend.max-streams-bidi", Version::V3_3, "write `tune.quic.fe.stream.max-concurrent`"),
    ("tune.quic.frontend.max-data-size", Version::V3_3, "write `tune.quic.fe.stream.rxbuf`"),
    ("tune.quic.disable-tx-pacing", Version::V3_3, "write `tune.quic.fe.tx.pacing`"),
    ("tune.quic.disable-udp-gso", Version::V3_3, "write `tune.quic.fe.tx.udp-gso`"),
    ("tune.quic.frontend.max-tx-mem", Version::V3_3, "write `tune.quic.mem.tx-max`"),
];

/// The lines that have options: their keyword, the words before the first one, the kind of options, and where.
const WITH_OPTIONS: &[(&str, usize, Place, &[SectionKind])] = {
    use SectionKind::{Backend, Defaults, Frontend, Listen, LogForward, Ring};
    &[
        ("server", 3, Place::ServerOption, &[Backend, Listen, Ring]),
        ("default-server", 1, Place::ServerOption, &[Defaults, Backend, Listen]),
        ("server-template", 4, Place::ServerOption, &[Backend, Listen]),
        ("bind", 2, Place::BindOption, &[Frontend, Listen, LogForward]),
    ]
};

/// Looks up every section and every keyword.
pub(super) fn check(document: &Document, version: Option<Version>, found: &mut Vec<Diagnostic>) {
    let mut first_line = 1_u32;
    for section in document.sections() {
        let mut checker = Checker { section, version, first_line, found };
        checker.header();
        for line in section.lines().filter(|line| line.directive().is_none() && line.error().is_none()) {
            checker.line(&line);
        }
        first_line = first_line.saturating_add(section.line_count());
    }
}

struct Checker<'a> {
    section: &'a Section,
    version: Option<Version>,
    first_line: u32,
    found: &'a mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn header(&mut self) {
        let kind = self.section.kind();
        let (Some(version), Some(header)) = (self.version, self.section.header()) else { return };
        let Some(keyword) = header.words().next() else { return };
        let (first, last) = keywords::versions_of(kind);
        if version < first {
            let message = format!("`{kind}` sections exist from HAProxy {first} on");
            self.say(Problem::TooNew, &header, &keyword, message, None);
        } else if version > last {
            let message =
                format!("HAProxy {version} knows no `{kind}` sections; {last} was the last that did");
            self.say(Problem::Removed, &header, &keyword, message, None);
        } else if kind == SectionKind::Program && version >= Version::V3_1 {
            let message = format!("`{kind}` sections are deprecated in HAProxy {version}");
            self.say(
                Problem::Deprecated,
                &header,
                &keyword,
                message,
                Some("let a service manager run it".into()),
            );
        }
    }

    fn line(&mut self, line: &Line<'_>) {
        let mut words = line.words().skip_while(|word| word.is("no") || word.is("default"));
        let Some(word) = words.next().filter(|word| !word.variable && word.raw.first() != Some(&b'[')) else {
            return;
        };
        let text = word.to_str_lossy().into_owned();
        let kind = self.section.kind();
        let (first, last) = keywords::versions_of(kind);
        if self.version.is_some_and(|version| version < first || version > last) {
            // The section as a whole has been named.
            return;
        }
        let known = self.known(|version| keywords::knowledge(kind, &text, version));
        let place = (Place::Line(kind), format!("in a `{kind}` section"));
        self.judge(known, &place, line, &word);
        self.options(line, &text);
        let two = words.next().map(|second| format!("{text} {}", second.to_str_lossy())).unwrap_or_default();
        let deprecated = DEPRECATED.iter().find(|row| row.0 == text || row.0 == two);
        if let (Some(version), Some(row)) = (self.version, deprecated)
            && version >= row.1
        {
            let message = format!("`{}` is deprecated in HAProxy {version}", row.0);
            self.say(Problem::Deprecated, line, &word, message, Some(row.2.into()));
        }
    }

    /// What is known of a word; any version will do where none was asked for.
    fn known(&self, of: impl Fn(Version) -> Knowledge) -> Knowledge {
        if let Some(version) = self.version {
            return of(version);
        }
        let mut all = Version::ALL.into_iter().map(of);
        let known = all.find(|known| matches!(known, Knowledge::Known | Knowledge::Ignored));
        known.unwrap_or(Knowledge::Unknown)
    }

    /// Says what is wrong with a word in its place.
    fn judge(&mut self, known: Knowledge, place: &(Place, String), line: &Line<'_>, word: &Word<'_>) {
        let text = word.to_str_lossy().into_owned();
        let newest = self.version.unwrap_or(Version::LATEST);
        let (place, there) = place;
        match known {
            Knowledge::Known => {}
            Knowledge::Ignored => {
                let message = format!("`{text}` has no effect {there}");
                self.say(Problem::NoEffect, line, word, message, None);
            }
            Knowledge::Unknown => {
                let message = format!("unknown keyword `{text}` {there}");
                let hint = nearest(&text, keywords::in_place(*place, newest))
                    .map(|best| format!("did you mean `{best}`?").into());
                self.say(Problem::UnknownKeyword, line, word, message, hint);
            }
            Knowledge::NotYet(since) => {
                let message = format!("HAProxy {newest} does not know `{text}` {there} yet; {since} does");
                self.say(Problem::TooNew, line, word, message, None);
            }
            Knowledge::NoLonger(last) => {
                let message = format!("HAProxy {newest} has removed `{text}` {there}; {last} still knew it");
                self.say(Problem::Removed, line, word, message, None);
            }
        }
    }

    /// Looks up the options of a line that has some.
    fn options(&mut self, line: &Line<'_>, keyword: &str) {
        let here = self.section.kind();
        let row = WITH_OPTIONS.iter().find(|row| row.0 == keyword && row.3.contains(&here));
        let Some(&(_, before, place, _)) = row else { return };
        let there = format!("in a `{keyword}` line");
        let mut words = line.words().skip(before);
        while let Some(word) = words.next().filter(|word| !word.variable) {
            let text = word.to_str_lossy();
            let known = self.known(|version| keywords::option(place, &text, version).0);
            self.judge(known, &(place, there.clone()), line, &word);
            match keywords::option(place, &text, Version::LATEST).1 {
                // What follows an unknown word may belong to it.
                Arguments::Any => return,
                Arguments::Count(count) => (0..count).for_each(|_| drop(words.next())),
            }
        }
    }

    fn say(
        &mut self,
        problem: Problem,
        line: &Line<'_>,
        word: &Word<'_>,
        message: String,
        hint: Option<Cow<'static, str>>,
    ) {
        let diagnostic = Diagnostic::new(problem, self.first_line, line, (word.column, word.raw), message);
        // Whether HAProxy reads it is for the condition to say.
        let warns =
            matches!(problem, Problem::Deprecated | Problem::NoEffect) || self.section.is_conditional();
        let diagnostic = if warns { diagnostic.warning() } else { diagnostic };
        self.found.push(Diagnostic { hint, ..diagnostic });
    }
}
