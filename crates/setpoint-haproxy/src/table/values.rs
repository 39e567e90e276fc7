//! From a token of a row to what it stands for: a word, a value, or several values in one word.

use super::Zero;
use super::compile::Compiler;
use super::forms::form;
use super::grammar::{Item, Piece, Type};
use super::limits::Limit;

impl Compiler {
    /// Reads one token that stands for at most one word.
    pub(super) fn item(&mut self, token: &'static str, prefix: &str, line: &str) -> Item {
        if let Some(inner) = token.strip_prefix('<').and_then(|inner| inner.strip_suffix('>'))
            && !inner.contains('<')
        {
            return self.value(inner, prefix, line);
        }
        let (constant, pattern) = match token.split_once('=') {
            Some((path, word)) if !path.contains('<') && !path.is_empty() => {
                (Some(self.field(&format!("{prefix}{path}"), Zero::Dropped)), word)
            }
            _ => (None, token),
        };
        if !pattern.contains('<') {
            return match constant {
                Some(field) => {
                    let (value, word) = pattern.split_once('~').unwrap_or((pattern, pattern));
                    Item::Constant { field, value, word }
                }
                None => Item::Literal(pattern),
            };
        }
        let mut pieces = Vec::new();
        let mut rest = pattern;
        while let Some((literal, after)) = rest.split_once('<') {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal));
            }
            let Some((inner, after)) = after.split_once('>') else {
                self.error(line, "a value is not closed");
                break;
            };
            let Typed { path, ty, zero, limit } = self.typed(inner, line);
            pieces.push(Piece::Value { field: self.field(&format!("{prefix}{path}"), zero), ty, limit });
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest));
        }
        let constant = constant.map(|field| {
            let word = pattern.split('<').next().unwrap_or(pattern).trim_end_matches(['(', '.', ',']);
            (field, word)
        });
        Item::Pattern { constant, pieces }
    }

    /// Reads what stands between angle brackets as an item of its own.
    fn value(&mut self, inner: &'static str, prefix: &str, line: &str) -> Item {
        let (inner, ported) = inner.strip_suffix('!').map_or((inner, false), |inner| (inner, true));
        let brackets = inner.ends_with(":address6");
        if let Some(paths) = inner.strip_suffix(":address6").or_else(|| inner.strip_suffix(":address")) {
            let mut paths = paths.split(',').map(|path| format!("{prefix}{path}"));
            let address = self.field(&paths.next().unwrap_or_default(), Zero::Dropped);
            let port = paths.next().map(|path| self.field(&path, Zero::Dropped));
            let range_end = paths.next().map(|path| self.field(&path, Zero::Dropped));
            return Item::Address { address, port, range_end, brackets, ported };
        }
        let Typed { path, ty, zero, limit } = self.typed(inner, line);
        let path = if path == "." { path.to_owned() } else { format!("{prefix}{path}") };
        Item::Value { field: self.field(&path, zero), ty, stops: Vec::new(), limit }
    }

    /// Reads `path:type`. A `0` at the end of a type says that a zero is kept in JSON, `0@3.0` that it is up to a version;
    /// what follows in brackets limits the value.
    fn typed(&mut self, inner: &'static str, line: &str) -> Typed {
        let (inner, mut limit) = match inner.strip_suffix(']').and_then(|inner| inner.split_once('[')) {
            Some((inner, text)) => {
                let limit = Limit::read(text, &self.out.words);
                if limit.is_none() {
                    self.error(line, "what limits a value is not understood");
                }
                (inner, limit)
            }
            None => (inner, None),
        };
        let (path, name) = inner.split_once(':').unwrap_or((inner, "word"));
        let (name, zero) = match (name.split_once("0@"), name.strip_suffix('0')) {
            (Some((name, until)), _) => (name, until.parse().map_or(Zero::Kept, Zero::KeptUntil)),
            (None, Some(name)) => (name, Zero::Kept),
            (None, None) => (name, Zero::Dropped),
        };
        let ty = match name {
            "word" => Type::Word,
            "name" => Type::Name,
            "int" => Type::Int,
            "count" => Type::Count,
            "ms" => Type::Time(1),
            "s" => Type::Time(1000),
            "seconds" => Type::Seconds,
            "size" => Type::Size,
            "bytes" => Type::Bytes,
            "kb" => Type::Kilobytes,
            "rest" => Type::Rest,
            "args" => Type::Expr,
            "expr" => {
                limit = limit.or_else(|| form("sample").map(Limit::Form));
                Type::Expr
            }
            "words" => Type::Words,
            "ints" => Type::Ints,
            "commas" => Type::Commas,
            "pairs" => Type::Pairs,
            "onoff" => Type::OnOff,
            "switch" => Type::Switch,
            "flag" => Type::Flag,
            "set" => Type::Set,
            "unset" => Type::Unset,
            "toggle" => Type::Toggle,
            "on" => Type::On,
            name if name.starts_with('=') => Type::Always(name.trim_start_matches('=')),
            name if name.starts_with('~') => Type::Otherwise(name.trim_start_matches('~')),
            name if name.contains('|') => Type::OneOf(name.split('|').collect()),
            // A list or a form on its own is that of a word.
            name => {
                limit = limit.or_else(|| Limit::named(name, &self.out.words));
                if limit.is_none() {
                    self.error(line, "a type is not known");
                }
                Type::Word
            }
        };
        Typed { path, ty, zero, limit }
    }
}

/// What stands between angle brackets.
struct Typed {
    path: &'static str,
    ty: Type,
    zero: Zero,
    limit: Option<Limit>,
}
