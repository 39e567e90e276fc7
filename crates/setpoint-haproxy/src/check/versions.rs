//! What a version does not know, no longer knows, or warns of.

use std::collections::HashMap;

use crate::model::Version;
use crate::text::{Diagnostic, Document, Problem, SectionKind};

/// Sections that not every version knows: since when, until when, and from when on it is warned of.
const SECTIONS: &[(SectionKind, Version, Version, Option<Version>)] = &[
    (SectionKind::CrtStore, Version::V3_0, Version::LATEST, None),
    (SectionKind::Traces, Version::V3_1, Version::LATEST, None),
    (SectionKind::LogProfile, Version::V3_1, Version::LATEST, None),
    (SectionKind::Acme, Version::V3_2, Version::LATEST, None),
    (SectionKind::Healthcheck, Version::V3_4, Version::LATEST, None),
    (SectionKind::Program, Version::V2_6, Version::V3_2, Some(Version::V3_1)),
];

/// Looks up every section and every keyword.
pub(super) fn check(document: &Document, version: Option<Version>, found: &mut Vec<Diagnostic>) {
    if version.is_some_and(|version| version >= Version::V3_3) {
        shared_names(document, found);
    }
    let mut first_line = 1_u32;
    for section in document.sections() {
        let row = SECTIONS.iter().find(|row| row.0 == section.kind());
        if let (Some(version), Some(row), Some(header)) = (version, row, section.header())
            && let Some(keyword) = header.words().next()
        {
            let place = (keyword.column, keyword.raw);
            let kind = section.kind();
            let say = |problem, message| Diagnostic::new(problem, first_line, &header, place, message);
            if version < row.1 {
                found
                    .push(say(Problem::TooNew, format!("`{kind}` sections exist from HAProxy {} on", row.1)));
            } else if version > row.2 {
                let message =
                    format!("HAProxy {version} knows no `{kind}` sections; {} was the last that did", row.2);
                found.push(say(Problem::Removed, message));
            } else if row.3.is_some_and(|since| version >= since) {
                let message = format!("`{kind}` sections are deprecated in HAProxy {version}");
                found.push(say(Problem::Deprecated, message).warning());
            }
        }
        first_line = first_line.saturating_add(section.line_count());
    }
}

/// Proxies that share a name, which from 3.3 on not even a frontend and a backend may.
fn shared_names(document: &Document, found: &mut Vec<Diagnostic>) {
    let mut seen: HashMap<Vec<u8>, SectionKind> = HashMap::new();
    let mut first_line = 1_u32;
    for section in document.sections() {
        let kind = section.kind();
        if let (Some(name), Some(header)) = (section.name(), section.header())
            && kind.is_proxy()
            && !section.is_conditional()
            && let Some(other) = seen.insert(name.to_vec(), kind)
            // What is refused by every version has been said already.
            && (kind == SectionKind::Frontend) != (other == SectionKind::Frontend)
            && let Some(keyword) = header.words().next()
        {
            let message = format!("a {other} is called `{}` as well", String::from_utf8_lossy(&name));
            let place = (keyword.column, keyword.raw);
            let diagnostic = Diagnostic::new(Problem::DuplicateSection, first_line, &header, place, message);
            found.push(diagnostic.with_hint("from 3.3 on all proxies have names of their own"));
        }
        first_line = first_line.saturating_add(section.line_count());
    }
}
