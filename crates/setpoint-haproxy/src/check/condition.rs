//! The conditions of `.if` and `.elif`, by HAProxy's rules, as far as their operands are known.
//!
//! ```text
//!  expression = and { || and }    and = term { && term }    term = { ! } ( number | ( expression ) | predicate(arguments) )
//! ```

use std::collections::BTreeMap;

use crate::model::Version;
use crate::text::Word;

/// Whether something holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Truth {
    True,
    False,
    /// It depends on what is not known here.
    Unknown,
}

impl Truth {
    fn of(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }

    pub(super) fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::False, _) | (_, Self::False) => Self::False,
            (Self::True, Self::True) => Self::True,
            _ => Self::Unknown,
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

/// The predicates, how many arguments each has, and the first version that knows it. They are a language of their own, which
/// no line of a section knows.
const PREDICATES: [(&str, usize, Version); 13] = [
    ("defined", 1, Version::V2_6),
    ("feature", 1, Version::V2_6),
    ("streq", 2, Version::V2_6),
    ("strneq", 2, Version::V2_6),
    ("strstr", 2, Version::V2_7),
    ("version_atleast", 1, Version::V2_6),
    ("version_before", 1, Version::V2_6),
    ("openssl_version_atleast", 1, Version::V2_6),
    ("openssl_version_before", 1, Version::V2_6),
    ("ssllib_name_startswith", 1, Version::V2_6),
    ("awslc_api_atleast", 1, Version::V3_3),
    ("awslc_api_before", 1, Version::V3_3),
    ("enabled", 1, Version::V2_7),
];

/// How deep parentheses may be.
const DEPTH: usize = 64;

/// Evaluates the words after `.if`; says what HAProxy would refuse of them.
pub(super) fn evaluate(
    words: &[Word<'_>],
    version: Option<Version>,
    env: &BTreeMap<String, String>,
) -> Result<Truth, String> {
    let texts: Vec<_> = words.iter().map(Word::to_str_lossy).collect();
    let text = texts.join(" ");
    // No condition is a false one.
    if text.trim().is_empty() {
        return Ok(Truth::False);
    }
    let mut reader = Reader { rest: text.as_str(), version, env };
    let truth = reader.expression(DEPTH)?;
    match reader.rest.trim_start() {
        "" => Ok(truth),
        rest => Err(format!("`{rest}` follows the condition")),
    }
}

struct Reader<'t> {
    rest: &'t str,
    version: Option<Version>,
    env: &'t BTreeMap<String, String>,
}

impl Reader<'_> {
    fn take(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expression(&mut self, depth: usize) -> Result<Truth, String> {
        let mut truth = self.conjunction(depth)?;
        while self.take("||") {
            truth = truth.or(self.conjunction(depth)?);
        }
        Ok(truth)
    }

    fn conjunction(&mut self, depth: usize) -> Result<Truth, String> {
        let mut truth = self.term(depth)?;
        while self.take("&&") {
            truth = truth.and(self.term(depth)?);
        }
        Ok(truth)
    }

    fn term(&mut self, depth: usize) -> Result<Truth, String> {
        let mut negated = false;
        while self.take("!") {
            negated = !negated;
        }
        let truth = if self.take("(") {
            let inner = depth.checked_sub(1).ok_or_else(|| "too many parentheses".to_owned())?;
            let truth = self.expression(inner)?;
            if !self.take(")") {
                return Err("a parenthesis is not closed".to_owned());
            }
            truth
        } else if let Some(number) = self.number() {
            Truth::of(number)
        } else {
            self.predicate()?
        };
        Ok(if negated { truth.not() } else { truth })
    }

    /// Reads a number as C does; says whether it is another than zero.
    fn number(&mut self) -> Option<bool> {
        let text = self.rest.trim_start();
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = unsigned.split_at_checked(digits)?;
        if number.is_empty() {
            return None;
        }
        self.rest = rest;
        Some(number.bytes().any(|byte| byte != b'0'))
    }

    fn predicate(&mut self) -> Result<Truth, String> {
        let text = self.rest.trim_start();
        let end = text.find([' ', '(', ')', '&', '|']).unwrap_or(text.len());
        let (name, rest) = text.split_at_checked(end).unwrap_or((text, ""));
        if name.is_empty() {
            return Err("a condition is missing".to_owned());
        }
        if name.contains('$') {
            // What a variable stands for may be a condition itself: all that follows belongs to it.
            self.rest = "";
            return Ok(Truth::Unknown);
        }
        let Some((name, count, since)) = PREDICATES.into_iter().find(|(known, ..)| *known == name) else {
            return Err(format!("`{name}` is no condition"));
        };
        if let Some(version) = self.version.filter(|version| *version < since) {
            return Err(format!("HAProxy {version} knows no condition `{name}`; {since} does"));
        }
        let inside = rest.strip_prefix('(').and_then(|inside| inside.split_once(')'));
        let Some((arguments, rest)) = inside else {
            return Err(format!("`{name}` needs its arguments in parentheses"));
        };
        self.rest = rest;
        let arguments: Vec<&str> =
            arguments.split(',').map(|argument| argument.trim().trim_matches(['"', '\''])).collect();
        if arguments.len() != count {
            return Err(format!(
                "`{name}` needs {count} {}",
                if count == 1 { "argument" } else { "arguments" }
            ));
        }
        Ok(self.holds(name, &arguments))
    }

    fn holds(&self, name: &str, arguments: &[&str]) -> Truth {
        if arguments.iter().any(|argument| argument.contains('$')) {
            return Truth::Unknown;
        }
        match (name, arguments) {
            ("defined", [name]) if self.env.contains_key(*name) => Truth::True,
            ("streq", [one, other]) => Truth::of(one == other),
            ("strneq", [one, other]) => Truth::of(one != other),
            ("strstr", [text, part]) => Truth::of(text.contains(part)),
            ("version_atleast", [version]) => self.is_at_least(version),
            ("version_before", [version]) => self.is_at_least(version).not(),
            _ => Truth::Unknown,
        }
    }

    /// Returns whether the version at hand, of which the last number is not known, is at least another.
    fn is_at_least(&self, other: &str) -> Truth {
        let Some(version) = self.version else { return Truth::Unknown };
        let numbers = |text: &str| -> Vec<u32> {
            let text = text.split('-').next().unwrap_or_default();
            text.split('.').map_while(|number| number.parse().ok()).collect()
        };
        let (own, wanted) = (numbers(version.as_str()), numbers(other));
        let minor = |numbers: &[u32]| (numbers.first().copied(), numbers.get(1).copied().unwrap_or_default());
        match minor(&own).cmp(&minor(&wanted)) {
            std::cmp::Ordering::Less => Truth::False,
            std::cmp::Ordering::Greater => Truth::True,
            std::cmp::Ordering::Equal if wanted.get(2).is_none_or(|last| *last == 0) => Truth::True,
            std::cmp::Ordering::Equal => Truth::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Document;

    fn truth(text: &str, version: Option<Version>) -> Result<Truth, String> {
        let document = Document::parse(format!("global\n{text}\n").as_bytes());
        let section = &document.sections()[0];
        let line = section.lines().next().unwrap();
        let words: Vec<Word<'_>> = line.words().skip(1).collect();
        let env = BTreeMap::from([("SET".to_owned(), "yes".to_owned())]);
        evaluate(&words, version, &env)
    }

    #[test]
    fn what_is_known_is_evaluated_and_the_rest_is_unknown() {
        let v3_2 = Some(Version::V3_2);
        for (text, expected) in [
            ("0", Truth::False),
            ("1", Truth::True),
            ("", Truth::False),
            ("!0 && 2", Truth::True),
            ("0 || (1 && !0)", Truth::True),
            ("version_atleast(3.2)", Truth::True),
            ("version_atleast(3.2-dev4)", Truth::True),
            ("version_atleast(3.2.7)", Truth::Unknown),
            ("version_before(3.2)", Truth::False),
            ("version_before(3.4)", Truth::True),
            ("defined(SET)", Truth::True),
            ("defined(OTHER)", Truth::Unknown),
            ("streq(a,b)", Truth::False),
            ("strneq(a,b) && strstr(abc,b)", Truth::True),
            ("feature(OPENSSL)", Truth::Unknown),
            ("feature(OPENSSL) && 0", Truth::False),
            ("feature(OPENSSL) || 1", Truth::True),
            ("streq(\"$OTHER\",a)", Truth::Unknown),
        ] {
            assert_eq!(truth(&format!(".if {text}"), v3_2), Ok(expected), "{text}");
        }
        assert_eq!(truth(".if version_atleast(3.2)", None), Ok(Truth::Unknown));
    }

    #[test]
    fn what_haproxy_can_not_read_is_named() {
        assert!(truth(".if strstr(abc,b)", Some(Version::V2_6)).is_err());
        for text in ["bogus(x)", "streq(a)", "(1", "1 2", "version_atleast"] {
            assert!(truth(&format!(".if {text}"), None).is_err(), "{text}");
        }
    }
}
