//! YAML as a tree whose nodes know where they were written.

use std::borrow::Cow;
use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span as YamlSpan, StrInput, Tag};

use super::diagnostic::Span;

/// A node of a YAML document.
#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) span: Span,
    pub(crate) data: Data<'a>,
}

/// What a node is.
#[derive(Clone, Debug)]
pub(crate) enum Data<'a> {
    Scalar { text: Cow<'a, str>, style: Style },
    List(Vec<Node<'a>>),
    Map(Vec<(Node<'a>, Node<'a>)>),
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes: it may mean a number, a boolean or nothing.
    Plain,
    /// In quotes.
    Quoted,
    /// As a block; its span begins with its first line.
    Block,
    /// Tagged `!!binary`: base64.
    Binary,
}

/// What is wrong with the syntax.
#[derive(Debug)]
pub(crate) struct WrongYaml {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) hint: Option<&'static str>,
}

/// Limits on nesting depth and on alias expansion.
const DEEPEST: usize = 64;
const MOST_ALIASED: usize = 100_000;

impl Node<'_> {
    /// What the node is, in words.
    pub(crate) fn words(&self) -> &'static str {
        match &self.data {
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
            Data::Scalar { .. } if self.is_null() => "nothing",
            Data::Scalar { .. } if self.boolean().is_some() => "a boolean",
            Data::Scalar { text, style: Style::Plain } if text.parse::<f64>().is_ok() => "a number",
            Data::Scalar { .. } => "text",
        }
    }

    /// Returns whether it is nothing, as YAML 1.2 has it in its core schema.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.data, Data::Scalar { text, style: Style::Plain }
            if matches!(&**text, "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The boolean that it is, as YAML 1.2 has them in its core schema.
    pub(crate) fn boolean(&self) -> Option<bool> {
        let Data::Scalar { text, style: Style::Plain } = &self.data else { return None };
        match &**text {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            _ => None,
        }
    }

    /// The scalar's text, whatever it means.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match &self.data {
            Data::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    fn count(&self) -> usize {
        match &self.data {
            Data::Scalar { .. } => 1,
            Data::List(nodes) => 1 + nodes.iter().map(Node::count).sum::<usize>(),
            Data::Map(pairs) => 1 + pairs.iter().map(|(k, v)| k.count() + v.count()).sum::<usize>(),
        }
    }
}

/// Parses all documents of a text.
pub(crate) fn parse(text: &str) -> Result<Vec<Node<'_>>, WrongYaml> {
    if let Some((line, column)) = find_control(text) {
        let span = Span { line, column, length: 1 };
        let message = "a control character that YAML does not allow".to_owned();
        return Err(WrongYaml { span, message, hint: Some("is this a text file?") });
    }
    let mut loader =
        Loader { parser: Parser::new_from_str(text), anchors: BTreeMap::new(), aliased: 0, depth: 0 };
    let mut documents = Vec::new();
    while let Some((event, span)) = loader.next()? {
        match event {
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            Event::StreamEnd => break,
            event => documents.push(loader.node(event, span)?),
        }
    }
    Ok(documents)
}

/// The first character that can't be in YAML: the parser would stop at it without a word.
fn find_control(text: &str) -> Option<(u32, u32)> {
    // Plain text, as almost all of it is, can be told byte by byte.
    if text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\r' | b'\t')) {
        return None;
    }
    let bad = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{85}');
    let lines = (1..).zip(text.lines());
    lines.into_iter().find_map(|(line, text)| {
        let at = text.chars().position(bad)?;
        Some((line, u32::try_from(at + 1).unwrap_or(u32::MAX)))
    })
}

struct Loader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: BTreeMap<usize, Node<'a>>,
    aliased: usize,
    depth: usize,
}

impl<'a> Loader<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, YamlSpan)>, WrongYaml> {
        self.parser.next_event().transpose().map_err(|error| syntax(&error))
    }

    fn node(&mut self, event: Event<'a>, at: YamlSpan) -> Result<Node<'a>, WrongYaml> {
        let span = convert(at);
        self.depth += 1;
        if self.depth > DEEPEST {
            let message = format!("nested deeper than {DEEPEST} levels");
            return Err(WrongYaml { span, message, hint: None });
        }
        let (anchor, data) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let style = match style {
                    _ if tag.as_deref().is_some_and(is_binary) => Style::Binary,
                    _ if tag.as_deref().is_some_and(is_text) => Style::Quoted,
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                };
                (anchor, Data::Scalar { text, style })
            }
            Event::SequenceStart(anchor, _) => {
                let mut nodes = Vec::new();
                while let Some((event, span)) = self.next()? {
                    match event {
                        Event::SequenceEnd => break,
                        event => nodes.push(self.node(event, span)?),
                    }
                }
                (anchor, Data::List(nodes))
            }
            Event::MappingStart(anchor, _) => {
                let mut pairs = Vec::new();
                while let Some((event, span)) = self.next()? {
                    if matches!(event, Event::MappingEnd) {
                        break;
                    }
                    let key = self.node(event, span)?;
                    let Some((event, span)) = self.next()? else { break };
                    pairs.push((key, self.node(event, span)?));
                }
                (anchor, Data::Map(pairs))
            }
            Event::Alias(anchor) => {
                let Some(known) = self.anchors.get(&anchor) else {
                    let message = "an alias of something that is not whole yet".to_owned();
                    return Err(WrongYaml { span, message, hint: None });
                };
                self.aliased += known.count();
                if self.aliased > MOST_ALIASED {
                    let message = "aliases unfold to too much".to_owned();
                    return Err(WrongYaml { span, message, hint: None });
                }
                (0, known.data.clone())
            }
            _ => {
                let message = "the YAML ends in the middle of something".to_owned();
                return Err(WrongYaml { span, message, hint: None });
            }
        };
        self.depth -= 1;
        let node = Node { span, data };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }
}

fn is_binary(tag: &Tag) -> bool {
    tag.suffix == "binary" || tag.suffix.ends_with(":binary")
}

fn is_text(tag: &Tag) -> bool {
    tag.suffix == "str" || tag.suffix.ends_with(":str")
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn convert(span: YamlSpan) -> Span {
    let (start, end) = (span.start, span.end);
    let length = if start.line() == end.line() { end.col().saturating_sub(start.col()) } else { 1 };
    Span { line: narrow(start.line()), column: narrow(start.col() + 1), length: narrow(length) }
}

fn syntax(error: &ScanError) -> WrongYaml {
    let at = error.marker();
    let span = Span { line: narrow(at.line()), column: narrow(at.col() + 1), length: 1 };
    let info = error.info();
    let hint = if info.contains("tab") {
        Some("YAML is indented with spaces")
    } else if info.contains("mapping values are not allowed") {
        Some("check the indentation, and quote a value that holds a colon")
    } else if info.contains("unexpected end of") || info.contains("quoted scalar") {
        Some("is a quote or a bracket left open?")
    } else {
        Some("check the indentation and the quotes here and in the line before")
    };
    WrongYaml { span, message: format!("this is no YAML: {info}"), hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(node: &'a Node<'a>, key: &str) -> &'a Node<'a> {
        let Data::Map(pairs) = &node.data else { panic!("a map") };
        &pairs.iter().find(|(name, _)| name.scalar() == Some(key)).expect("the key").1
    }

    #[test]
    fn nodes_know_where_they_were_written() {
        let documents = parse("a: 1\nb:\n  - x\n  - \"y z\"\nc: |\n  one\n  two\n").unwrap();
        let a = value(&documents[0], "a");
        assert_eq!(a.span, Span { line: 1, column: 4, length: 1 });
        let Data::List(list) = &value(&documents[0], "b").data else { panic!("a list") };
        assert_eq!(list[1].span, Span { line: 4, column: 5, length: 5 });
        let block = value(&documents[0], "c");
        assert_eq!((block.span.line, block.scalar()), (6, Some("one\ntwo\n")));
    }

    #[test]
    fn aliases_repeat_what_was_anchored_but_never_endlessly() {
        let documents = parse("a: &x {p: 1}\nb: *x\n").unwrap();
        assert_eq!(value(value(&documents[0], "b"), "p").scalar(), Some("1"));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..9 {
            let last = format!("*a{}, ", i - 1).repeat(10);
            bomb = format!("{bomb}a{i}: &a{i} [{last}]\n");
        }
        assert!(parse(&bomb).unwrap_err().message.contains("too much"));
        assert!(parse(&("[".repeat(70) + &"]".repeat(70))).unwrap_err().message.contains("nested deeper"));
    }

    #[test]
    fn documents_follow_each_other() {
        assert_eq!(parse("a: 1\n---\nb: 2\n").unwrap().len(), 2);
        assert_eq!(parse("# nothing\n").unwrap().len(), 0);
    }
}
