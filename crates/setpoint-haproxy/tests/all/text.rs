//! Parsing, printing and editing of text.

use proptest::prelude::*;
use setpoint_haproxy::text::{Document, LineEdit, Section, SectionKind};

use crate::configurations::{MIXED, any};

fn kinds(text: &str) -> Vec<(SectionKind, Option<String>)> {
    let document = Document::parse(text.as_bytes());
    let describe = |name: std::borrow::Cow<'_, [u8]>| String::from_utf8_lossy(&name).into_owned();
    document.sections().iter().map(|section| (section.kind(), section.name().map(describe))).collect()
}

proptest! {
    #[test]
    fn any_bytes_are_printed_as_they_were_read(text in any::text()) {
        let document = Document::parse(&text);
        prop_assert_eq!(document.print(), text.clone());
        let lines: usize = document.sections().iter().map(|section| section.all_lines().count()).sum();
        let feeds = text.split_inclusive(|&byte| byte == b'\n').count();
        prop_assert_eq!(lines, feeds);
        let counted: u32 = document.sections().iter().map(|section| section.line_count()).sum();
        prop_assert_eq!(usize::try_from(counted).unwrap(), feeds);
        // Whatever is asked of it is answered.
        let _ = document.diagnostics();
        for section in document.sections() {
            for line in section.all_lines() {
                let _ = (line.comment(), line.directive(), line.expanded(&|_| Some(b"a b".to_vec())));
                let end = line.words().map(|word| word.column as usize - 1 + word.raw.len()).max();
                prop_assert!(end.unwrap_or_default() <= line.raw().len() + 1);
            }
        }
    }

    #[test]
    fn a_section_written_again_as_it_is_changes_nothing(text in any::text()) {
        let document = Document::parse(&text);
        for (index, section) in document.sections().iter().enumerate() {
            let again = document.with_section(index, &section.bytes());
            prop_assert_eq!(again.print(), text.clone());
            prop_assert_eq!(shape(&again), shape(&document));
        }
    }

    #[test]
    fn an_edit_of_a_line_leaves_all_other_lines_as_they_are(text in any::text(), section: usize, line: usize) {
        let document = Document::parse(&text);
        if document.sections().is_empty() {
            return Ok(());
        }
        let index = section % document.sections().len();
        let section = &document.sections()[index];
        let number = u32::try_from(line).unwrap_or_default() % section.line_count().max(1);
        let deleted = document.with_lines(index, &[LineEdit::Delete { line: number }]).print();
        let place = document.first_line(index) + number - 1;
        let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        lines.remove(usize::try_from(place).unwrap());
        prop_assert_eq!(deleted, lines.concat());
    }
}

fn shape(document: &Document) -> Vec<(SectionKind, Vec<u8>, bool)> {
    let describe = |section: &std::sync::Arc<setpoint_haproxy::text::Section>| {
        (section.kind(), section.bytes().to_vec(), section.is_conditional())
    };
    document.sections().iter().map(describe).collect()
}

#[test]
fn every_section_is_found_with_its_name() {
    let found = kinds(MIXED);
    assert_eq!(found[0], (SectionKind::Preamble, None));
    assert_eq!(found[1], (SectionKind::Global, None));
    assert_eq!(found[3], (SectionKind::Defaults, Some("strict".to_owned())));
    assert_eq!(found.len(), 20);
    assert!(found.iter().all(|(kind, _)| *kind != SectionKind::Unknown));
    assert!(Document::parse(MIXED.as_bytes()).diagnostics().is_empty());
}

#[test]
fn quoted_and_indented_keywords_open_sections() {
    let expected = [(SectionKind::Backend, Some("b".to_owned()))];
    for text in
        ["\"backend\" b\n", "   backend b\n", "b'ack'end \"b\" # c\n", "backend b#c\n", "\x0bbackend\tb\r\n"]
    {
        assert_eq!(kinds(text), expected, "{text:?}");
    }
}

#[test]
fn enterprise_sections_are_sections_of_their_own() {
    let text = "backend b\n  mode http\nwaf-profile w\n  rules-file x\nbackend c\nudp-lb u\n  bind x\n";
    let names: Vec<_> =
        kinds(text).into_iter().map(|(kind, name)| (kind.to_string(), name.unwrap())).collect();
    let expected = [("backend", "b"), ("waf-profile", "w"), ("backend", "c"), ("udp-lb", "u")];
    assert_eq!(names, expected.map(|(kind, name)| (kind.to_owned(), name.to_owned())));
}

#[test]
fn an_unknown_word_that_stands_out_opens_a_section_and_any_other_is_a_keyword() {
    let unknown = "backend b\n  mode http\nnovelty n\n  mode tcp\n";
    assert_eq!(kinds(unknown)[1], (SectionKind::Unknown, Some("n".to_owned())));
    for keyword in [
        "backend b\nmode http\nnovelty n\n  mode tcp\n",
        "backend b\n  mode http\n  novelty n\n",
        "backend b\n  mode http\nbalance roundrobin\n",
        "backend b\n  mode http\ntune.bufsize 1\n",
        "backend b\n  mode http\n\"novelty\" n\n",
    ] {
        assert_eq!(kinds(keyword).len(), 1, "{keyword:?}");
    }
}

#[test]
fn a_directive_says_nothing_of_how_lines_are_indented() {
    let document = Document::parse(b" .else\n backend\nfrom\n");
    assert_eq!(shape(&document.with_section(1, &document.sections()[1].bytes())), shape(&document));
}

#[test]
fn an_unknown_section_is_never_taken_for_a_part_of_its_neighbour() {
    let text = "backend b\n  mode http\nnovelty echo\n  mode tcp\nbackend c\n";
    let document = Document::parse(text.as_bytes());
    assert_eq!(*document.sections()[0].bytes(), *b"backend b\n  mode http\n");
    let found = document.diagnostics();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].line, found[0].column, &*found[0].text), (3, 1, "novelty"));
    let typo = Document::parse(b"backend b\n  mode http\nfronted f\n").diagnostics();
    assert_eq!(typo[0].hint.as_deref(), Some("did you mean `frontend`?"));
}

#[test]
fn a_broken_file_yields_all_its_errors() {
    let text = "stray\nbackend\n  acl a \"b\n  x \\xZ\n.endif\n.wrong\nbackend b\n  no server s\nbackend c\n  .if 1\nend";
    let found = Document::parse(text.as_bytes()).diagnostics();
    let lines: Vec<_> = found.iter().map(|found| (found.line, found.column)).collect();
    let expected = [(1, 1), (2, 1), (3, 9), (4, 5), (5, 1), (6, 1), (8, 3), (10, 3), (11, 1), (11, 4)];
    assert_eq!(lines, expected, "{found:#?}");
}

#[test]
fn comments_right_above_a_header_belong_to_it_and_those_of_the_file_do_not() {
    let text = "# of the file\nglobal\n  daemon\n  # inside\n\n# of b\n# as well\nbackend b\n";
    let document = Document::parse(text.as_bytes());
    let bytes: Vec<_> = document.sections().iter().map(|section| section.bytes()).collect();
    let expected = ["# of the file\n", "global\n  daemon\n  # inside\n\n", "# of b\n# as well\nbackend b\n"];
    assert_eq!(bytes, expected.map(str::as_bytes));
    let header = document.sections()[2].header().unwrap();
    assert_eq!((header.number(), document.first_line(2)), (2, 6));
    assert_eq!(document.without_section(2).print(), &text.as_bytes()[..text.find("# of b").unwrap()]);
}

#[test]
fn conditionals_touch_what_they_are_in_or_around_and_nothing_else() {
    let text = "frontend f\n  bind :1\n.if 1\nbackend a\n  mode http\n.else\nbackend b\n.endif\n\nbackend c\n  .if 1\n  .endif\nbackend d\n";
    let document = Document::parse(text.as_bytes());
    let touched: Vec<_> = document.sections().iter().map(|section| section.is_conditional()).collect();
    assert_eq!(touched, [false, true, true, true, false]);
}

#[test]
fn what_is_written_into_a_section_has_its_style() {
    let document = Document::parse(b"backend a\r\n\tmode http\r\n\r\nbackend b\n  mode http\n\n# end\n");
    let line = LineEdit::Insert { before: u32::MAX, text: b"retries 3".to_vec() };
    let edited = document.with_lines(0, std::slice::from_ref(&line)).with_lines(1, &[line]);
    let expected =
        "backend a\r\n\tmode http\r\n\tretries 3\r\n\r\nbackend b\n  mode http\n  retries 3\n\n# end\n";
    assert_eq!(String::from_utf8(edited.print()).unwrap(), expected);
}

#[test]
fn a_replaced_line_keeps_its_indentation_and_its_comment() {
    let document = Document::parse(b"backend a\n \tmode http  # why\n  retries 3\n");
    let edits = [LineEdit::Replace { line: 1, text: b"mode tcp".to_vec() }, LineEdit::Delete { line: 2 }];
    assert_eq!(document.with_lines(0, &edits).print(), b"backend a\n \tmode tcp  # why\n");
}

#[test]
fn variables_are_expanded_where_they_are_known() {
    let document = Document::parse(b"backend b\n  server s \"${ADDR}:${PORT-80}\" \"${FLAGS[*]}\" '${NO}'\n");
    let line = document.sections()[0].lines().next().unwrap();
    assert!(line.words().any(|word| word.variable));
    let environment = |name: &[u8]| match name {
        b"ADDR" => Some(b"10.0.0.1".to_vec()),
        b"FLAGS" => Some(b"check  backup".to_vec()),
        _ => None,
    };
    let words: Vec<_> =
        line.expanded(&environment).iter().map(|word| word.to_str_lossy().into_owned()).collect();
    assert_eq!(words, ["server", "s", "10.0.0.1:80", "check", "backup", "${NO}"]);
}

/// All words of a text, line by line, without lines that have none.
fn words(document: &Document) -> Vec<Vec<Vec<u8>>> {
    let lines = document.sections().iter().flat_map(|section| {
        section
            .all_lines()
            .map(|line| line.words().map(|word| word.raw.to_vec()).collect())
            .collect::<Vec<Vec<_>>>()
    });
    lines.filter(|words| !words.is_empty()).collect()
}

/// All comments of a text.
fn comments(document: &Document) -> Vec<Vec<u8>> {
    let lines = document.sections().iter().flat_map(|section| {
        section
            .all_lines()
            .filter_map(|line| line.comment().map(|text| text.trim_ascii_end().to_vec()))
            .collect::<Vec<_>>()
    });
    lines.collect()
}

proptest! {
    #[test]
    fn formatting_keeps_words_comments_and_sections_and_is_done_once(text in any::text()) {
        let document = Document::parse(&text);
        let formatted = document.formatted();
        let broken = document.sections().iter().any(|section| section.all_lines().any(|line| line.error().is_some()));
        if !broken && !text.contains(&b'\r') {
            prop_assert_eq!(words(&formatted), words(&document));
            prop_assert_eq!(comments(&formatted), comments(&document));
            let kinds = |document: &Document| {
                let all = document.sections().iter().filter(|section| !section.all_lines().all(|line| line.is_blank()));
                all.map(|section| (section.kind(), section.is_conditional())).collect::<Vec<_>>()
            };
            prop_assert_eq!(kinds(&formatted), kinds(&document));
            prop_assert_eq!(formatted.formatted().print(), formatted.print());
        }
    }
}

#[test]
fn a_backslash_never_gets_a_blank_to_escape() {
    let text = b"backend b\n  acl a path \\\t/x\nmode http\n";
    let formatted = b"backend b\n    acl a path \\\t/x\n    mode http\n";
    assert_eq!(Document::parse(text).formatted().print(), formatted);
}

#[test]
fn what_a_file_begins_with_stays_apart_from_its_first_section_also_after_blank_lines() {
    let document = Document::parse(b"\n# of the file\nbackend b\n");
    assert_eq!(document.sections().len(), 2);
    let formatted = document.formatted();
    assert_eq!(formatted.print(), b"# of the file\n\nbackend b\n");
    assert_eq!(formatted.formatted(), formatted);
}

#[test]
fn comments_of_a_section_that_follows_the_beginning_of_a_file_belong_to_the_file() {
    let text = "# of the file\nglobal\n\n# of b\nbackend b\n";
    let document = Document::parse(text.as_bytes());
    let sections = |document: &Document| -> Vec<String> {
        let bytes =
            |section: &std::sync::Arc<_>| String::from_utf8(Section::bytes(section).into_owned()).unwrap();
        document.sections().iter().map(bytes).collect()
    };
    assert_eq!(sections(&document), ["# of the file\n", "global\n\n", "# of b\nbackend b\n"]);
    let without = document.without_section(1);
    assert_eq!(sections(&without), ["# of the file\n# of b\n", "backend b\n"]);
    for edited in [
        without,
        document.with_section(1, b"# more\nglobal\n\n"),
        document.with_section(1, b"global\n  daemon\n\n"),
        document.with_inserted(1, b"# more\n"),
        document.with_inserted(1, b"defaults\n\n"),
    ] {
        assert_eq!(sections(&edited), sections(&Document::parse(&edited.print())));
    }
}
