//! What a version does not know, no longer knows, or warns of.

use std::borrow::Cow;

use super::configuration::{CheckedLine, Configuration, Part};
use super::hints::Hints;
use crate::keywords::{self, Arguments, Knowledge, Place, Rules};
use crate::model::Version;
use crate::table::facts::facts;
use crate::text::{Diagnostic, Problem, SectionKind, Word};

/// Looks up every section and every keyword.
pub(super) fn check(
    configuration: &Configuration<'_>,
    version: Option<Version>,
    hints: &mut Hints,
    found: &mut [Vec<Diagnostic>],
) {
    for part in &configuration.parts {
        let Some(found) = found.get_mut(part.file) else { continue };
        let mut checker = Checker { part, version, hints, found };
        checker.header();
        for line in &part.lines {
            checker.line(line);
        }
    }
}

struct Checker<'a> {
    part: &'a Part<'a>,
    version: Option<Version>,
    hints: &'a mut Hints,
    found: &'a mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn header(&mut self) {
        let (part, kind) = (self.part, self.part.kind);
        let Some(header) = &part.header else { return };
        self.header_words(header, kind);
        let (Some(version), Some(keyword)) = (self.version, header.words.first()) else { return };
        let (first, last) = keywords::versions_of(kind);
        if version < first {
            let message = format!("`{kind}` sections exist from HAProxy {first} on");
            self.say(Problem::TooNew, header, keyword, message, None);
        } else if version > last {
            let message =
                format!("HAProxy {version} knows no `{kind}` sections; {last} was the last that did");
            self.say(Problem::Removed, header, keyword, message, None);
        } else if let Some((versions, advice)) = facts().section(kind).deprecated
            && versions.contains(version)
        {
            let message = format!("`{kind}` sections are deprecated in HAProxy {version}");
            self.say(Problem::Deprecated, header, keyword, message, Some(advice.into()));
        }
    }

    /// Looks at the words of a header: the name, and what may follow it.
    fn header_words(&mut self, header: &CheckedLine<'_>, kind: SectionKind) {
        if header.is_open() || matches!(kind, SectionKind::Unknown | SectionKind::Preamble) {
            return;
        }
        let is_named = kind.takes_name();
        let is_derived = kind.is_proxy() || kind == SectionKind::Defaults;
        let name = header
            .words
            .get(1)
            .filter(|word| is_named && !(kind == SectionKind::Defaults && word.is("from")));
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
        if let Some(name) = name.filter(|name| is_derived && !name.text.iter().all(allowed)) {
            let message = format!("`{}` can't be the name of a section", name.to_str_lossy());
            let diagnostic = header.diagnostic(Problem::Refused, (name.column, name.raw), message);
            let diagnostic = diagnostic.with_hint("letters, digits, `_`, `-`, `.` and `:` can be in one");
            // The newest says so, and goes on.
            let is_refused = self.version.is_some_and(Version::refuses_characters_of_names);
            self.found.push(if is_refused { diagnostic } else { diagnostic.warning() });
        }
        let after = 1 + usize::from(name.is_some());
        let rest = header.words.get(after..).unwrap_or_default();
        let extra = match rest {
            [from, _, rest @ ..] if from.is("from") && is_derived => rest.first(),
            rest => rest.first(),
        };
        let is_refused = match kind {
            SectionKind::Defaults => rest.len() == 1 && extra.is_some_and(|word| word.is("from")),
            // The older ones complain, and refuse the lines of the section.
            kind if kind.is_proxy() => {
                !self.part.lines.is_empty() || self.version.is_some_and(Version::refuses_words_after_names)
            }
            kind => !facts().section(kind).ignores_rest,
        };
        if let Some(extra) = extra.filter(|_| is_refused) {
            let message =
                format!("HAProxy does not accept `{}` in the header of a section", extra.to_str_lossy());
            let hint = (kind.is_proxy() && extra.text.contains(&b':'))
                .then(|| "a line `bind` says where to listen".into());
            self.say(Problem::Refused, header, extra, message, hint);
        }
    }

    fn line(&mut self, line: &CheckedLine<'_>) {
        let mut words = line.words.iter().skip_while(|word| word.is("no") || word.is("default"));
        let Some(word) = words.next().filter(|word| !word.variable) else { return };
        let text = word.to_str_lossy();
        let kind = self.part.kind;
        let (first, last) = keywords::versions_of(kind);
        if self.version.is_some_and(|version| version < first || version > last) {
            // The section as a whole has been named.
            return;
        }
        let known = self.known(|version| keywords::knowledge(kind, &text, version));
        if known != Knowledge::Known {
            let there = format!("in a `{kind}` section");
            self.judge(known, &(Place::Line(kind), there), line, word);
        }
        self.options(line, &text);
        self.second(line, word, &text);
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

    /// Reports what is wrong with a word in its place.
    fn judge(&mut self, known: Knowledge, place: &(Place, String), line: &CheckedLine<'_>, word: &Word<'_>) {
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
                let message = match place {
                    Place::Action(_) => format!("unknown action `{text}`"),
                    Place::ProxyOption => format!("unknown option `{text}`"),
                    _ => format!("unknown keyword `{text}` {there}"),
                };
                let hint = self.hints.nearest(&text, keywords::in_place(*place, newest)).map(Into::into);
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

    /// Looks up what a rule does, and what follows `option`.
    fn second(&mut self, line: &CheckedLine<'_>, first: &Word<'_>, text: &str) {
        let is_proxy = self.part.kind.is_proxy() || self.part.kind == SectionKind::Defaults;
        let Some(at) = line.words.iter().position(|word| std::ptr::eq(word, first)).filter(|_| is_proxy)
        else {
            return;
        };
        let second = line.words.get(at + 1).map(Word::to_str_lossy).unwrap_or_default();
        let (place, offset, there) = match Rules::of(text, &second) {
            Some((rules, offset)) => (Place::Action(rules), offset, "as an action here"),
            None if text == "option" => (Place::ProxyOption, 1, "as an option"),
            None => return,
        };
        let Some(word) = line.words.get(at + offset).filter(|word| !word.variable) else { return };
        let name = word.to_str_lossy();
        // What is in parentheses, and the number of a counter, are the action's own.
        let name = name.split('(').next().unwrap_or_default();
        let name = name.strip_prefix("track-sc").map_or(name, |_| "track-sc");
        if name.starts_with("lua.") {
            return;
        }
        let known = self.known(|version| keywords::knowledge_of(place, name, version));
        if !matches!(known, Knowledge::Known) {
            self.judge(known, &(place, there.to_owned()), line, word);
        }
    }

    /// Looks up the options of a line that has some.
    fn options(&mut self, line: &CheckedLine<'_>, keyword: &str) {
        let Some((before, place)) = facts().section(self.part.kind).options(keyword) else { return };
        let mut words = line.words.iter().skip(before);
        while let Some(word) = words.next().filter(|word| !word.variable) {
            let text = word.to_str_lossy();
            let known = self.known(|version| keywords::option(place, &text, version).0);
            if known != Knowledge::Known {
                self.judge(known, &(place, format!("in a `{keyword}` line")), line, word);
            }
            match keywords::option(place, &text, Version::LATEST).1 {
                // What follows an unknown word may belong to it.
                Arguments::Any => return,
                Arguments::Count(0) => {}
                Arguments::Count(count) => {
                    let _ = words.nth(count - 1);
                }
            }
        }
    }

    fn say(
        &mut self,
        problem: Problem,
        line: &CheckedLine<'_>,
        word: &Word<'_>,
        message: String,
        hint: Option<Cow<'static, str>>,
    ) {
        let diagnostic = line.diagnostic(problem, (word.column, word.raw), message);
        let warns = matches!(problem, Problem::Deprecated | Problem::NoEffect);
        let diagnostic = if warns { diagnostic.warning() } else { diagnostic };
        self.found.push(Diagnostic { hint, ..diagnostic });
    }
}
