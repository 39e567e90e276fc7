//! Mutated configurations: whatever the bytes are, nothing panics, hangs or gets lost.
//!
//! The corpus is in `tests/all/corpus`, and with `--corpus DIR` in a folder of real configurations. Each case takes a file
//! of it, changes it by bytes or by lines, and does everything that can be done with the result. HAProxy itself is asked
//! what it reads before and after formatting. `cargo xtask fuzz` goes on for as long as asked; a failure prints the
//! seed that repeats it and keeps the input, which then belongs into the corpus.

use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use setpoint_haproxy::check::{Checks, check};
use setpoint_haproxy::compare::compare;
use setpoint_haproxy::model::{Context, Object, Version, model, section_model};
use setpoint_haproxy::table::directives;
use setpoint_haproxy::text::{Document, Line, LineEdit};
use setpoint_testutils::{Missing, need};

/// How long one input may take on a busy machine: no input here is larger than some kilobytes.
const PATIENCE: Duration = Duration::from_mins(1);
/// Larger files of a folder are passed over.
const LARGEST: usize = 16 << 10;

/// The committed files, and those of the folder in `SETPOINT_FUZZ_CORPUS`.
static CORPUS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut corpus: Vec<Vec<u8>> = COMMITTED.iter().map(|bytes| bytes.to_vec()).collect();
    let mut folders: Vec<std::path::PathBuf> =
        std::env::var_os("SETPOINT_FUZZ_CORPUS").map(Into::into).into_iter().collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let read = files.iter().map(|file| std::fs::read(file).unwrap());
    corpus.extend(read.filter(|bytes| bytes.len() <= LARGEST));
    corpus
});

const COMMITTED: &[&[u8]] = &[
    include_bytes!("data/mixed.cfg"),
    include_bytes!("corpus/words.cfg"),
    include_bytes!("corpus/conditionals.cfg"),
    include_bytes!("corpus/proxies.cfg"),
    include_bytes!("corpus/broken.cfg"),
    include_bytes!("corpus/global.cfg"),
];

/// What mutations put in.
const TOKENS: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b"\0",
    b"\"",
    b"'",
    b"\\",
    b"\\x",
    b"${",
    b"}",
    b"${A[*]}",
    b"#",
    b" ",
    b"\t",
    b".if 1\n",
    b".endif\n",
    b"backend b\n",
    b"\nbackend",
    b"defaults\n",
    b"from",
    b"no ",
    b"option ",
    b"server s1 10.0.0.1:80 ",
    b"acl a ",
    b"http-request ",
    b"if ",
    b"{ }",
    b"99999999999999999999",
    b"-1",
    b"1s",
    b"\xff\xfe",
    b"default-server ",
    b"listen l\n",
    b"timeout ",
    b"bind :80 ",
    b"log ",
    b"tcp-check ",
    b"stick-table ",
    b"%[",
    b"(",
    b")",
    b",",
];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 1).unwrap_or_default() % bound.max(1)
    }
}

fn input(seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let bytes = CORPUS[random.below(CORPUS.len())].clone();
    changed(bytes, &mut random)
}

/// Every other time by lines: what comes of that mostly is a configuration still.
fn changed(bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    if random.below(2) == 0 { mutated(bytes, random) } else { rearranged(&bytes, random) }
}

/// Lines that are left out, repeated, moved, or that get a word of another line.
fn rearranged(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    for _ in 0..=random.below(8) {
        let (from, to) = (random.below(lines.len()), random.below(lines.len() + 1));
        let Some(line) = lines.get(from).cloned() else { break };
        match random.below(5) {
            0 => drop(lines.remove(from)),
            1 => lines.insert(to, line),
            2 => {
                lines.remove(from);
                lines.insert(to.min(lines.len()), line);
            }
            3 => {
                let other = CORPUS[random.below(CORPUS.len())].split_inclusive(|&byte| byte == b'\n');
                let others: Vec<&[u8]> = other.collect();
                if let Some(other) = others.get(random.below(others.len())) {
                    lines.insert(to, other.to_vec());
                }
            }
            _ => {
                let word = |line: &[u8], at: usize| {
                    let words: Vec<Vec<u8>> = line
                        .split(u8::is_ascii_whitespace)
                        .filter(|word| !word.is_empty())
                        .map(<[u8]>::to_vec)
                        .collect();
                    words.get(at % words.len().max(1)).cloned().unwrap_or_default()
                };
                let (old, other) = (word(&line, random.below(8)), random.below(lines.len()));
                let new = word(&lines[other], random.below(8));
                let text = String::from_utf8_lossy(&line).replacen(
                    &*String::from_utf8_lossy(&old),
                    &String::from_utf8_lossy(&new),
                    1,
                );
                lines[from] = text.into_bytes();
            }
        }
    }
    lines.concat()
}

fn mutated(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    for _ in 0..=random.below(12) {
        let (a, b) = (random.below(bytes.len() + 1), random.below(bytes.len() + 1));
        let (from, to) = (a.min(b), a.max(b).min(a.min(b) + 400));
        match random.below(8) {
            0 => drop(bytes.drain(from..to)),
            1 => {
                let part = bytes[from..to].to_vec();
                bytes.splice(b..b, part);
            }
            2 if !bytes.is_empty() => {
                let at = random.below(bytes.len());
                bytes[at] = u8::try_from(random.below(256)).unwrap();
            }
            3 => {
                let other = &CORPUS[random.below(CORPUS.len())];
                let start = random.below(other.len());
                let part = &other[start..(start + random.below(300)).min(other.len())];
                bytes.splice(a..a, part.iter().copied());
            }
            4 => {
                let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
                let (x, y) = (random.below(lines.len()), random.below(lines.len()));
                let mut lines: Vec<Vec<u8>> = lines.into_iter().map(<[u8]>::to_vec).collect();
                if !lines.is_empty() {
                    lines.swap(x, y);
                }
                bytes = lines.concat();
            }
            _ => {
                let token = TOKENS[random.below(TOKENS.len())];
                bytes.splice(a..a, token.iter().copied());
            }
        }
        bytes.truncate(LARGEST);
    }
    bytes
}

/// Everything that can be done with a text.
fn exercise(bytes: &[u8], seed: u64) {
    let mut random = Random(!seed);
    let document = Document::parse(bytes);
    assert_eq!(document.print(), bytes, "parse and print");
    for diagnostic in document.diagnostics() {
        assert!(diagnostic.line > 0 && diagnostic.column > 0, "{diagnostic:?}");
    }
    for section in document.sections() {
        for line in section.all_lines() {
            let _ = (
                line.comment(),
                line.error(),
                line.words().count(),
                line.expanded(&|name| Some(name.to_vec())),
            );
        }
    }
    if !document.sections().is_empty() {
        let index = random.below(document.sections().len());
        let line = u32::try_from(random.below(40)).unwrap();
        let text = TOKENS[random.below(TOKENS.len())].to_vec();
        let edited = document.with_lines(
            index,
            &[LineEdit::Insert { before: line, text: text.clone() }, LineEdit::Delete { line }],
        );
        same_as_parsed(&edited, "lines");
        same_as_parsed(&document.without_section(index), "without a section");
        same_as_parsed(&document.with_inserted(index, &text), "with something inserted");
        let other = document.sections()[random.below(document.sections().len())].bytes().into_owned();
        same_as_parsed(&document.with_section(index, &other), "with another section");
        same_as_parsed(&document.with_inserted(index, &other), "with a section inserted");
    }
}

/// Whatever was edited is what parsing the result gives.
fn same_as_parsed(document: &Document, what: &str) {
    let describe = |document: &Document| -> Vec<_> {
        let sections = document.sections().iter();
        sections
            .map(|section| {
                (section.kind(), section.bytes().into_owned(), section.is_conditional(), section.line_count())
            })
            .collect()
    };
    assert_eq!(describe(document), describe(&Document::parse(&document.print())), "{what}");
}

/// Everything that can be done with two texts.
fn exercise_both(bytes: &[u8], seed: u64) {
    let cx = Context::new(Version::ALL[Random(seed ^ 7).below(Version::ALL.len())]);
    let document = Document::parse(bytes);
    let _ = check(&document, &Checks { version: Some(cx.haproxy), ..Checks::default() });
    let formatted = document.formatted();
    assert_eq!(Document::parse(&formatted.print()).print(), formatted.print());
    for section in &model(&document, &cx).sections {
        let mut text = Vec::new();
        if section.write(&cx, &mut text).is_ok() {
            let _ = section.object.as_ref().map(Object::to_json);
        }
    }
    // Another mutation of the same file, so that they have something in common.
    let other = Document::parse(&changed(bytes.to_vec(), &mut Random(seed ^ 0x5555)));
    let Ok(diff) = compare(&document, &other, &cx) else { return };
    let _ = diff.plan("fuzz").to_string();
    let result = document
        .apply_all(&diff, &cx)
        .unwrap_or_else(|error| panic!("apply: {error}\n{}", String::from_utf8_lossy(&other.print())));
    same_as_parsed(&result, "applied");
    let left = compare(&result, &other, &cx).unwrap();
    assert!(
        left.is_empty(),
        "it did not converge: {:?}\n--- from\n{}\n--- to\n{}\n--- result\n{}",
        left.operations().iter().map(ToString::to_string).collect::<Vec<_>>(),
        String::from_utf8_lossy(bytes),
        String::from_utf8_lossy(&other.print()),
        String::from_utf8_lossy(&result.print()),
    );
    // What stands below a line such as `.if` says something else wherever that holds.
    let decides = |document: &Document| document.sections().iter().any(|section| section.is_conditional());
    if decides(&document) || decides(&other) {
        return;
    }
    let (made, wanted) = (meaning(&result, &cx), meaning(&other, &cx));
    let only = |these: &[String], those: &[String]| -> Vec<String> {
        these.iter().filter(|this| !those.contains(this)).cloned().collect()
    };
    assert!(
        made == wanted,
        "it says something else: {:#?}\n--- and not\n{:#?}\n--- from\n{}\n--- to\n{}\n--- result\n{}",
        only(&made, &wanted),
        only(&wanted, &made),
        String::from_utf8_lossy(bytes),
        String::from_utf8_lossy(&other.print()),
        String::from_utf8_lossy(&result.print()),
    );
}

/// What the sections of a document say, without what the comparator makes of it: the models of those that have one with all that
/// stands in them, the words of all other lines.
fn meaning(document: &Document, cx: &Context) -> Vec<String> {
    let words = |line: &Line<'_>| {
        let words: Vec<_> = line.words().map(|word| word.to_str_lossy().into_owned()).collect();
        words.join(" ")
    };
    // Stated or not, a default is the same.
    let stated = |object: &Object| {
        let mut object = object.clone();
        for (field, value) in &object.clone().fields {
            if directives().default(object.kind, *field, cx.haproxy).as_ref() == Some(value) {
                object.fields.remove(*field);
            }
        }
        // A comment is nothing that a section says, and no difference where its section is text.
        let mut json = object.to_json();
        without_comments(&mut json);
        format!("{} {json}", object.kind)
    };
    let mut all: Vec<String> = Vec::new();
    for section in document.sections() {
        let model = section_model(section, cx);
        let lines = section.lines().filter(|line| line.keyword().is_some());
        let mut text: Vec<String> = match &model.object {
            Some(_) => {
                lines.filter(|line| model.unmodelled.contains(&line.number())).map(|l| words(&l)).collect()
            }
            None => lines.map(|line| words(&line)).collect(),
        };
        text.sort();
        let own = model.object.as_ref().map(stated);
        let (ordered, mut named): (Vec<&Object>, Vec<&Object>) =
            model.children.iter().partition(|child| child.kind.is_ordered());
        named.sort_by_key(|child| (child.kind, child.name().map(ToOwned::to_owned)));
        let mut ordered = ordered;
        ordered.sort_by_key(|child| child.kind);
        let children: Vec<String> = named.into_iter().chain(ordered).map(stated).collect();
        let content = (own, children, text);
        if content != (None, Vec::new(), Vec::new()) {
            all.push(format!("{} {:?} {content:?}", model.kind, model.name));
        }
    }
    all.sort();
    all
}

fn without_comments(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::Object(map) => {
            map.remove("metadata");
            map.values_mut().for_each(without_comments);
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(without_comments),
        _ => {}
    }
}

fn seconds() -> Option<Duration> {
    std::env::var("SETPOINT_FUZZ_SECONDS").ok()?.parse().ok().map(Duration::from_secs)
}

/// Runs as many cases as a run of all tests affords, or as many as the time allows that is asked for, and tells how many; a
/// case that panics is kept.
fn run(most: u64, case: impl Fn(&[u8], u64) + std::panic::RefUnwindSafe) -> String {
    let first: u64 = std::env::var("SETPOINT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    // A short run belongs to all tests, the same on every machine; a long one is asked for.
    let (most, limit) = seconds().map_or((most, Duration::MAX), |limit| (u64::MAX, limit));
    let start = Instant::now();
    let mut ran = 0;
    for seed in (first..).take_while(|seed| seed - first < most) {
        if start.elapsed() >= limit {
            break;
        }
        let bytes = input(seed);
        let begun = Instant::now();
        let outcome = std::panic::catch_unwind(|| case(&bytes, seed));
        let took = begun.elapsed();
        if outcome.is_err() || took > PATIENCE {
            let kept = std::env::temp_dir().join(format!("setpoint-fuzz-{seed}.cfg"));
            std::fs::write(&kept, &bytes).unwrap();
            panic!("SETPOINT_SEED={seed} fails after {took:?}; the input is kept in {}", kept.display());
        }
        ran += 1;
    }
    assert!(ran > 0);
    format!("{ran} inputs from seed {first} on")
}

#[test]
fn mutated_configurations_are_read_without_panic_hang_or_loss() {
    let ran = run(1_000, |bytes, seed| {
        exercise(bytes, seed);
        exercise_both(bytes, seed);
    });
    println!("{ran}");
}

/// What HAProxy reads in a configuration, line by line, as `-dC` shows it.
fn read_by_haproxy(version: setpoint_testutils::Version, text: &[u8]) -> Result<String, Missing> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("haproxy.cfg");
    // HAProxy does not show the first line of a file where that has a variable.
    std::fs::write(&file, [b"\n", text].concat()).unwrap();
    let mut command = Command::new(version.program()?);
    let output = command.args(["-dC", "-c", "-f"]).arg(&file).current_dir(folder.path()).output().unwrap();
    // Inside of an `.if` it also prints blank lines, which say nothing.
    let lines = String::from_utf8_lossy(&output.stdout);
    let lines = lines.lines().filter(|line| !line.trim().is_empty());
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn haproxy_reads_the_same_before_and_after_formatting() {
    let versions = [setpoint_testutils::Version::V3_0, setpoint_testutils::Version::V3_4];
    for version in versions {
        need!(version.program());
    }
    let ran = run(60, |bytes, seed| {
        let formatted = Document::parse(bytes).formatted().print();
        let version = versions[Random(seed).below(versions.len())];
        let read = |text: &[u8]| read_by_haproxy(version, text).unwrap();
        // A line feed that is missing at the end is added; HAProxy reads a file without one once, and any other twice.
        let mut whole = bytes.to_vec();
        whole.extend(b"\n".iter().filter(|_| !bytes.ends_with(b"\n")));
        assert_eq!(read(&whole), read(&formatted), "{version:?}\n{}", String::from_utf8_lossy(&formatted));
    });
    println!("{ran}");
}

#[test]
fn haproxy_accepts_what_is_applied_where_it_accepts_what_is_desired() {
    let version = setpoint_testutils::Version::V3_4;
    need!(version.program());
    let cx = Context::new(Version::V3_4);
    let accepts = |text: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("haproxy.cfg");
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(version.program().unwrap());
        let output = command.args(["-c", "-f"]).arg(&file).current_dir(folder.path()).output().unwrap();
        // Without a listener it would not start, and says so in its status.
        (matches!(output.status.code(), Some(0 | 2)), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let ran = run(60, |bytes, seed| {
        let mut random = Random(seed ^ 0xaaaa);
        let whole = &CORPUS[random.below(CORPUS.len())];
        let desired = rearranged(whole, &mut random);
        // Every other time it comes from a text that has nothing else in common.
        let current = if random.below(2) == 0 { bytes.to_vec() } else { rearranged(whole, &mut random) };
        let is_wanted = accepts(&desired).0;
        let (current, desired) = (Document::parse(&current), Document::parse(&desired));
        if is_wanted && let Ok(diff) = compare(&current, &desired, &cx) {
            let result = current.apply_all(&diff, &cx).unwrap().print();
            let (is_accepted, said) = accepts(&result);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(
                is_accepted,
                "{said}\n--- from\n{}\n--- to\n{}\n--- result\n{}",
                text(&current.print()),
                text(&desired.print()),
                text(&result)
            );
        }
    });
    println!("{ran}");
}
