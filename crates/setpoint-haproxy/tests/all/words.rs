//! HAProxy's rules for words, held against HAProxy itself.
//!
//! A line that begins with an unknown keyword is refused, and the message names the keyword as HAProxy decoded it; a
//! line that can't be split is refused with the position. Both must be what the parser says.

use std::collections::BTreeMap;

use setpoint_haproxy::text::{Document, Problem, Severity};
use setpoint_testutils::{Haproxy, Version, need};

/// After this many errors HAProxy gives up.
const ERRORS: usize = 45;

/// Lines whose first word shows one rule each.
const LINES: &[&str] = &[
    "plain words here",
    "\tindented by a tab",
    "mid#word",
    "\\#hash x",
    "\"double quoted\" x",
    "'single quoted' x",
    "glued\"to\"gether' too' x",
    "\"it's\" x",
    "'say \"hi\"' x",
    "esc\\ aped x",
    "hex\\x41\\x2f x",
    "tab\\tulator x",
    "other\\q x",
    "back\\\\slash x",
    "quote\\\"s\\' x",
    "'no\\tescape' x",
    "$HOME x",
    "a$ x",
    "'$HOME' x",
    "dollar\\$ x",
    "\"dollar\\$HOME\" x",
    "carriage\rreturn x",
    "vertical\x0btab x",
    "form\x0cfeed x",
    "trailing\\",
    "füü x",
    "\"${SETPOINT_NOT_SET-by default}\" x",
    "a\"${SETPOINT_NOT_SET-}\"b x",
];

/// Lines that can't be split, and what is wrong with them.
const BROKEN: &[(&str, Problem)] = &[
    ("a \"b c", Problem::UnmatchedQuote),
    ("a 'b c", Problem::UnmatchedQuote),
    ("a \"b\rc\" d", Problem::UnmatchedQuote),
    ("  a \\\"b \"c # d", Problem::UnmatchedQuote),
    ("a\\xZZ b", Problem::BadHex),
    ("a\\x4", Problem::BadHex),
    ("a \"$1\" b", Problem::BadVariable),
    ("a \"$\" b", Problem::BadVariable),
    ("a \"${.NO}\" b", Problem::BadVariable),
    ("a \"${HOME\" b", Problem::UnmatchedBrace),
    ("a \"${HOME-b\" c", Problem::UnmatchedBrace),
];

#[test]
fn first_words_are_decoded_as_haproxy_decodes_them() {
    for version in Version::ALL {
        for lines in LINES.chunks(ERRORS) {
            let refused = need!(unknown_keywords(version, lines));
            for (number, line) in (2..).zip(lines) {
                assert_eq!(refused.get(&number), Some(&first_word(line)), "{version:?}: {line:?}");
            }
        }
    }
}

#[test]
fn any_first_word_is_decoded_as_haproxy_decodes_it() {
    let mut random = fastrand_like(7);
    let alphabet =
        ["a", "b", "-", " ", "\t", "#", "\"", "'", "\\", "\\x41", "\\t", "$", "{", "}", "é", "\r", "/"];
    let mut lines: Vec<String> = Vec::new();
    while lines.len() < 4 * ERRORS {
        let word: String = (0..2 + random(8)).map(|_| alphabet[random(alphabet.len())]).collect();
        let line = format!("x{word} end");
        let document = Document::parse(format!("backend b\n{line}\n").as_bytes());
        let readable = document.diagnostics().is_empty();
        let decoded = first_word(&line);
        // What is printed over several lines can't be told apart.
        if readable && !decoded.contains(['\r', '\n']) {
            lines.push(line);
        }
    }
    for version in Version::ALL {
        for lines in lines.chunks(ERRORS) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let refused = need!(unknown_keywords(version, &lines));
            for (number, line) in (2..).zip(&lines) {
                assert_eq!(refused.get(&number), Some(&first_word(line)), "{version:?}: {line:?}");
            }
        }
    }
}

#[test]
fn lines_that_can_not_be_split_are_refused_where_haproxy_refuses_them() {
    let lines: Vec<&str> = BROKEN.iter().map(|(line, _)| *line).collect();
    let text = configuration(&lines);
    let found = Document::parse(text.as_bytes()).diagnostics();
    assert_eq!(found.len(), BROKEN.len(), "{found:#?}");
    for version in Version::ALL {
        let output = need!(Haproxy::check(version, &text)).output;
        for (diagnostic, (line, problem)) in found.iter().zip(BROKEN) {
            assert_eq!(diagnostic.problem, *problem, "{line:?}");
            let said = format!("haproxy.cfg:{}]: ", diagnostic.line);
            let said = output.lines().find_map(|text| text.split_once(&said)).map(|(_, said)| said);
            let said = said.unwrap_or_else(|| panic!("{version:?} says nothing of {line:?}:\n{output}"));
            let position = format!("at position {}:", diagnostic.column);
            assert!(said.contains(&position), "{version:?}: {line:?}: {said} is not {diagnostic}");
        }
    }
}

#[test]
fn what_the_text_alone_shows_to_be_wrong_is_refused_by_haproxy() {
    let wrong = [
        ("backend b\n  mode http", Problem::MissingLineFeed),
        ("backend b\n  # \0\n", Problem::Nul),
        ("stray line\nbackend b\n", Problem::OutOfSection),
        ("backend\n", Problem::MissingName),
        ("backend b\n.endif\n", Problem::LoneConditional),
        ("backend b\n.else\n", Problem::LoneConditional),
        ("backend b\n.if 1\n.else\n.else\n.endif\n", Problem::LoneConditional),
        ("backend b\n.if 1\n.else\n.elif 1\n.endif\n", Problem::LoneConditional),
        ("backend b\n.if 1\n", Problem::UnterminatedConditional),
        ("backend b\n.nonsense\n", Problem::UnknownDirective),
        ("backend b\nno server s 127.0.0.1:1\n", Problem::BadPrefix),
        ("backend b\n  mode http\nnonsense n\n  mode tcp\n", Problem::UnknownSection),
    ];
    let long = format!("backend b\n  acl a src{}\n", " 127.0.0.1".repeat(62));
    let wrong = wrong.into_iter().chain([(&*long, Problem::TooManyWords)]);
    for (text, problem) in wrong {
        let found: Vec<_> = Document::parse(text.as_bytes()).diagnostics();
        assert_eq!(found.iter().map(|found| found.problem).collect::<Vec<_>>(), [problem], "{text:?}");
        for version in Version::ALL {
            let check = need!(Haproxy::check(version, text));
            assert!(!check.accepted, "{version:?} accepts {text:?}");
        }
    }
}

#[test]
fn what_the_text_alone_shows_to_be_fine_is_accepted_by_haproxy() {
    let fine = [
        "\"backend\" b\n",
        "defaults\n  mode http\n    backend b\n  http-request deny\n",
        "backend b\r\n  mode http\r\n",
        "\n# only comments\n\n",
        "backend b\n  \"\" nothing at all\n",
        "backend b\n  no option httpclose\n  no log\n",
        "backend b\n.if 0\n  nonsense\nnonsense n\n.else\n  mode http\n.endif\n",
        "backend b\n  \".if\" 0\n  nonsense\n  \".endif\"\n",
        "backend b#comment\n  mode http#comment\n",
        "defaults d\ndefaults e from d\nbackend b from e\n",
        ".notice \"read\"\nbackend b\n",
        &format!("backend b\n  acl a src{}\n", " 127.0.0.1".repeat(61)),
        &format!("backend b\n  acl a path /{}\n", "x".repeat(200_000)),
    ];
    for text in fine {
        let found: Vec<_> = Document::parse(text.as_bytes()).diagnostics();
        let found: Vec<_> = found.iter().filter(|found| found.severity == Severity::Error).collect();
        assert!(found.is_empty(), "{text:.80?}: {found:?}");
        for version in Version::ALL {
            let check = need!(Haproxy::check(version, text));
            assert!(check.accepted, "{version:?} refuses {text:.80?}:\n{:.500}", check.output);
        }
    }
}

#[test]
fn an_empty_word_is_warned_of_because_newer_versions_refuse_it() {
    for text in ["backend b\n  mode http \"\"\n", "backend b\n  http-request deny '' if TRUE\n"] {
        let found = Document::parse(text.as_bytes()).diagnostics();
        let found: Vec<_> = found.iter().map(|found| (found.severity, found.problem)).collect();
        assert_eq!(found, [(Severity::Warning, Problem::EmptyWord)]);
        for version in Version::ALL {
            let check = need!(Haproxy::check(version, text));
            assert_eq!(check.accepted, version < Version::V3_4, "{version:?}: {text:?}: {}", check.output);
        }
    }
}

/// What HAProxy takes the first words of lines for, by the number of the line.
fn unknown_keywords(
    version: Version,
    lines: &[&str],
) -> Result<BTreeMap<u32, String>, setpoint_testutils::Missing> {
    let check = Haproxy::check(version, &configuration(lines))?;
    let mut found = BTreeMap::new();
    for line in check.output.lines() {
        let Some((_, rest)) = line.split_once("haproxy.cfg:") else { continue };
        let Some((number, rest)) = rest.split_once("] : unknown keyword '") else { continue };
        let Some((word, _)) = rest.rsplit_once("' in 'backend' section") else { continue };
        found.insert(number.parse().unwrap(), word.to_owned());
    }
    Ok(found)
}

fn configuration(lines: &[&str]) -> String {
    format!("backend b\n{}\n", lines.join("\n"))
}

/// What the parser takes the first word of a line for.
fn first_word(line: &str) -> String {
    let document = Document::parse(format!("backend b\n{line}\n").as_bytes());
    let section = &document.sections()[0];
    let words = section.lines().next().unwrap().expanded(&|_| None);
    words[0].to_str_lossy().into_owned()
}

/// A small generator of numbers below a bound: the same on every run.
fn fastrand_like(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |bound| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or_default() % bound.max(1)
    }
}
