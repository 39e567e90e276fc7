//! One sample of a case, taken in a process of its own.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use setpoint_haproxy::check::{Checks, check};
use setpoint_haproxy::compare::compare;
use setpoint_haproxy::edit::{ChildKey, Editor, SectionKey};
use setpoint_haproxy::model::{Context, Object, ObjectKind, SectionModel, Version, model};
use setpoint_haproxy::text::{Document, SectionKind};

use super::HaproxyCase;
use crate::measure::peak_rss_bytes;

/// How often a process repeats what it measures, at least; the best counts.
const REPEATS: usize = 5;
/// For how long it repeats what is short: whatever else the machine does takes turns that are longer than that.
const REPEATED_FOR: Duration = Duration::from_millis(400);

/// What one process measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) floor_seconds: f64,
    pub(super) peak_rss_bytes: u64,
}

/// Measures a case in this process.
pub(crate) fn sample(case: HaproxyCase, n: u32) -> Result<Sample> {
    let text = case.text(n).into_bytes();
    let cx = Context::default();
    // The table of directives is read once, whoever comes first.
    black_box(model(&Document::parse(b"global\n"), &cx));
    let (seconds, bytes, copies) = match case {
        HaproxyCase::Lossless5k | HaproxyCase::Lossless50k | HaproxyCase::LosslessMixed => {
            (repeated(|| Document::parse(black_box(&text))), text.len(), 1)
        }
        HaproxyCase::Typed5k | HaproxyCase::Typed20k | HaproxyCase::Typed50k | HaproxyCase::TypedMixed => {
            (repeated(|| model(&Document::parse(black_box(&text)), &cx)), text.len(), 1)
        }
        HaproxyCase::Compare5k | HaproxyCase::Compare50k | HaproxyCase::CompareMixed => {
            let other = changed(&text)?;
            let both =
                || compare(&Document::parse(black_box(&text)), &Document::parse(black_box(&other)), &cx);
            ensure!(both()?.operations().len() == 1, "one change is one operation");
            (repeated(both), text.len() + other.len(), 2)
        }
        HaproxyCase::CompareEdit5k => {
            let document = Document::parse(&text);
            let index = document.sections().len() / 2;
            let section = document.sections().get(index).context("there are sections")?;
            let bytes = changed(&section.bytes())?;
            let edit = || compare(&document, &document.with_section(index, black_box(&bytes)), &cx);
            ensure!(edit()?.operations().len() == 1, "one change is one operation");
            (repeated(edit), text.len(), 1)
        }
        HaproxyCase::Check5k | HaproxyCase::Check50k | HaproxyCase::CheckMixed => {
            let checks = Checks { version: Some(Version::LATEST), ..Checks::default() };
            let whole = || check(&Document::parse(black_box(&text)), &checks);
            let found = whole();
            ensure!(found.is_empty(), "what is measured is fine: {found:?}");
            (repeated(whole), text.len(), 1)
        }
        HaproxyCase::CheckRules | HaproxyCase::CheckErrors => {
            let checks = Checks { version: Some(Version::LATEST), ..Checks::default() };
            let whole = || check(&Document::parse(black_box(&text)), &checks);
            let expected = if case == HaproxyCase::CheckErrors { usize::try_from(n)? } else { 0 };
            let found = whole().len();
            ensure!(found == expected, "{found} errors, {expected} expected");
            (repeated(whole), text.len(), 1)
        }
        HaproxyCase::EditRules
        | HaproxyCase::EditUnindented
        | HaproxyCase::EditDelete
        | HaproxyCase::EditServers
        | HaproxyCase::EditBackends
        | HaproxyCase::EditReplace
        | HaproxyCase::EditRename
        | HaproxyCase::EditSettings
        | HaproxyCase::EditSections => (one_change(case, &text, n, &cx)?, text.len(), 1),
        HaproxyCase::Edits50k => {
            let document = Document::parse(&text);
            let mut failed = None;
            let seconds = repeated(|| {
                let mut editor = Editor::new(document.clone(), &cx);
                for backend in 0..n {
                    let key = SectionKey::named(SectionKind::Backend, format!("backend_{backend:05}"));
                    failed = weighted(&mut editor, &key, "s1", 7, &cx).err().or(failed.take());
                }
                editor.finish()
            });
            ensure!(failed.is_none(), "a change failed: {failed:?}");
            (seconds, text.len(), 1)
        }
    };
    let peak_rss_bytes = peak_rss_bytes()?;
    let floor_seconds = repeated(|| (0..copies).map(|_| words(black_box(&text))).sum::<usize>());
    Ok(Sample { bytes: u64::try_from(bytes)?, seconds, floor_seconds, peak_rss_bytes })
}

/// How long one change takes, of a document that stays in use: each begins with what the one before left.
fn one_change(case: HaproxyCase, text: &[u8], n: u32, cx: &Context) -> Result<f64> {
    let mut editor = Editor::new(Document::parse(text), cx);
    let frontend = SectionKey::named(SectionKind::Frontend, "f");
    let json = serde_json::json!({ "type": "set-header", "hdr_name": "X-New", "hdr_format": "yes" });
    let (rule, _) = Object::from_json(ObjectKind::HttpRequestRule, &json, cx)?;
    let mut round = 0_i64;
    let mut failed = None;
    let mut change = |editor: &mut Editor<'_>| -> Result<()> {
        round += 1;
        let middle = format!("backend_{:05}", n / 2);
        match case {
            HaproxyCase::EditRules | HaproxyCase::EditUnindented => {
                editor.create(&frontend, &rule, Some(n / 2))?;
            }
            HaproxyCase::EditDelete => {
                editor.delete(&frontend, ObjectKind::HttpRequestRule, &ChildKey::Index(n / 2))?;
                editor.create(&frontend, &rule, Some(n / 2))?;
            }
            HaproxyCase::EditReplace => {
                let json = serde_json::json!({ "name": middle, "retries": 1 + round % 100 });
                let (section, _) = SectionModel::from_json(ObjectKind::Backend, &json, cx)?;
                editor.replace_section(&SectionKey::named(SectionKind::Backend, middle), &section)?;
            }
            HaproxyCase::EditRename => {
                let (old, new) = (format!("renamed_{}", round - 1), format!("renamed_{round}"));
                let key = if round == 1 { middle } else { old };
                let json = serde_json::json!({ "name": new });
                let (object, _) = Object::from_json(ObjectKind::Backend, &json, cx)?;
                editor.replace_settings(&SectionKey::named(SectionKind::Backend, key), &object)?;
            }
            HaproxyCase::EditServers => {
                let backend = SectionKey::named(SectionKind::Backend, "b");
                weighted(editor, &backend, &format!("s{:05}", n / 2), 1 + round % 100, cx)?;
            }
            HaproxyCase::EditBackends => {
                let backend = SectionKey::named(SectionKind::Backend, middle);
                weighted(editor, &backend, "s1", 1 + round % 100, cx)?;
            }
            HaproxyCase::EditSettings => {
                let json = serde_json::json!({ "name": "f", "maxconn": 100 + round });
                editor.replace_settings(&frontend, &Object::from_json(ObjectKind::Frontend, &json, cx)?.0)?;
            }
            _ => {
                let json = serde_json::json!({ "name": format!("new_{round}") });
                editor.create_section(&SectionModel::from_json(ObjectKind::Backend, &json, cx)?.0)?;
            }
        }
        Ok(())
    };
    // What was never read is read once.
    change(&mut editor)?;
    let seconds = repeated(|| failed = change(&mut editor).err().or(failed.take()));
    ensure!(failed.is_none(), "a change failed: {failed:?}");
    Ok(seconds)
}

/// Gives a server another weight.
fn weighted(
    editor: &mut Editor<'_>,
    backend: &SectionKey,
    name: &str,
    weight: i64,
    cx: &Context,
) -> Result<()> {
    let json = serde_json::json!({ "name": name, "address": "10.0.0.1", "port": 8080, "weight": weight });
    let (server, _) = Object::from_json(ObjectKind::Server, &json, cx)?;
    editor.replace(backend, &ChildKey::Name(name.into()), &server)?;
    Ok(())
}

fn repeated<T>(mut what: impl FnMut() -> T) -> f64 {
    let (mut best, began) = (Duration::MAX, Instant::now());
    for round in 0.. {
        if round >= REPEATS && began.elapsed() >= REPEATED_FOR {
            break;
        }
        let start = Instant::now();
        let made = what();
        best = best.min(start.elapsed());
        drop(black_box(made));
    }
    best.as_secs_f64()
}

/// The floor: lines and words, and nothing else.
fn words(text: &[u8]) -> usize {
    let lines = text.split(|&byte| byte == b'\n');
    lines.map(|line| line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count()).sum()
}

/// The same text with another weight of one server in its middle.
fn changed(text: &[u8]) -> Result<Vec<u8>> {
    let middle = text.len() / 2;
    let at = |from: usize| {
        text.get(from..).and_then(|rest| rest.windows(8).position(|window| window == b"weight 1"))
    };
    let (from, place) = match at(middle) {
        Some(place) => (middle, place),
        None => (0, at(0).context("the text has a weight")?),
    };
    let mut other = text.to_vec();
    if let Some(byte) = other.get_mut(from + place + 7) {
        *byte = b'2';
    }
    Ok(other)
}
