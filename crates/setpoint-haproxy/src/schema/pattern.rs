//! The patterns of the API's schema: a small part of regular expressions, matched by backtracking.
//!
//! Alternatives, groups, classes, `\d`, `\s`, `\S`, the anchors, and `*`, `+`, `?`, `{4}` are all that the specifications use.

/// A pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    alternatives: Vec<Vec<Step>>,
    is_anchored: bool,
}

/// A part of a pattern, and how often it may stand there.
#[derive(Debug)]
struct Step {
    atom: Atom,
    least: usize,
    most: usize,
}

#[derive(Debug)]
enum Atom {
    Char(char),
    Any,
    End,
    /// Ranges of characters, and whether all others are meant.
    Class(Vec<(char, char)>, bool),
    Group(Vec<Vec<Step>>),
}

impl Pattern {
    /// Reads a pattern; `None` if it has something that no specification uses.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut chars: Vec<char> = text.chars().collect();
        let is_anchored = chars.first() == Some(&'^');
        if is_anchored {
            chars.remove(0);
        }
        let mut reader = Reader { chars: &chars, at: 0 };
        let alternatives = reader.alternatives()?;
        (reader.at == chars.len()).then_some(Self { alternatives, is_anchored })
    }

    /// Returns whether a text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        let chars: Vec<char> = text.chars().collect();
        let last = if self.is_anchored { 0 } else { chars.len() };
        (0..=last).any(|start| self.alternatives.iter().any(|steps| follow(steps, &chars, start, &|_| true)))
    }
}

/// Returns whether steps match from a place on, and what comes after them as well.
fn follow(steps: &[Step], text: &[char], at: usize, then: &dyn Fn(usize) -> bool) -> bool {
    let Some((step, rest)) = steps.split_first() else { return then(at) };
    repeat(step, 0, text, at, &|at| follow(rest, text, at, then))
}

/// Returns whether a step matches some more times, and what comes after it as well.
fn repeat(step: &Step, count: usize, text: &[char], at: usize, then: &dyn Fn(usize) -> bool) -> bool {
    let more = count < step.most && {
        let again = |next: usize| {
            // What takes nothing can't be repeated for ever.
            if next == at && count >= step.least { false } else { repeat(step, count + 1, text, next, then) }
        };
        match &step.atom {
            Atom::End => at == text.len() && again(at),
            Atom::Group(alternatives) => alternatives.iter().any(|steps| follow(steps, text, at, &again)),
            atom => text.get(at).is_some_and(|c| atom.has(*c)) && again(at + 1),
        }
    };
    more || (count >= step.least && then(at))
}

impl Atom {
    fn has(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::Any => true,
            Self::Class(ranges, others) => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&c)) != *others
            }
            Self::End | Self::Group(_) => false,
        }
    }
}

struct Reader<'p> {
    chars: &'p [char],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        Some(c)
    }

    fn skip(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        self.at += usize::from(found);
        found
    }

    fn alternatives(&mut self) -> Option<Vec<Vec<Step>>> {
        let mut all = vec![Vec::new()];
        while let Some(c) = self.peek().filter(|c| *c != ')') {
            if c == '|' {
                self.at += 1;
                all.push(Vec::new());
                continue;
            }
            let atom = self.atom()?;
            let (least, most) = self.count()?;
            all.last_mut()?.push(Step { atom, least, most });
        }
        Some(all)
    }

    fn atom(&mut self) -> Option<Atom> {
        Some(match self.take()? {
            '$' => Atom::End,
            '.' => Atom::Any,
            '\\' => match named(self.peek()?) {
                Some(class) => {
                    self.at += 1;
                    class
                }
                None => Atom::Char(self.take()?),
            },
            '[' => self.class()?,
            '(' => {
                if self.skip('?') && !self.skip(':') {
                    return None;
                }
                let alternatives = self.alternatives()?;
                self.skip(')').then_some(Atom::Group(alternatives))?
            }
            c => Atom::Char(c),
        })
    }

    fn class(&mut self) -> Option<Atom> {
        let others = self.skip('^');
        let mut ranges = Vec::new();
        while !self.skip(']') {
            let first = match self.take()? {
                '\\' => match named(self.peek()?) {
                    Some(Atom::Class(own, false)) => {
                        self.at += 1;
                        ranges.extend(own);
                        continue;
                    }
                    _ => self.take()?,
                },
                c => c,
            };
            // A dash at the end, or after a range, stands for itself.
            let last = self.chars.get(self.at + 1).copied().filter(|c| *c != ']' && self.peek() == Some('-'));
            match last {
                Some('\\') | None => ranges.push((first, first)),
                Some(last) if last < first => ranges.push((first, first)),
                Some(last) => {
                    self.at += 2;
                    ranges.push((first, last));
                }
            }
        }
        Some(Atom::Class(ranges, others))
    }

    fn count(&mut self) -> Option<(usize, usize)> {
        if self.skip('*') {
            return Some((0, usize::MAX));
        }
        if self.skip('+') {
            return Some((1, usize::MAX));
        }
        if self.skip('?') {
            return Some((0, 1));
        }
        // A brace that does not count stands for itself.
        let after = self.chars.get(self.at + 1..).unwrap_or_default();
        let digits = after.iter().take_while(|c| c.is_ascii_digit()).count();
        let closes = self.chars.get(self.at + 1 + digits) == Some(&'}');
        if self.peek() != Some('{') || digits == 0 || !closes {
            return Some((1, 1));
        }
        let number: String = self.chars.get(self.at + 1..self.at + 1 + digits)?.iter().collect();
        self.at += digits + 2;
        let number = number.parse().ok()?;
        Some((number, number))
    }
}

/// The classes that have a letter.
fn named(c: char) -> Option<Atom> {
    let spaces = || vec![(' ', ' '), ('\t', '\r')];
    Some(match c {
        'd' => Atom::Class(vec![('0', '9')], false),
        's' => Atom::Class(spaces(), false),
        'S' => Atom::Class(spaces(), true),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_of_the_specifications_match_what_they_mean() {
        for (pattern, yes, no) in [
            (r"^[^\s]+$", &["a", "a/b"][..], &["", "a b", " a", "a\n"][..]),
            (r"^[A-Za-z0-9-_.:]+$", &["a-b_c.d:1"], &["a b", "ä", "a/"]),
            (r"^(0x[0-9A-Fa-f]+|[0-9]+)$", &["0x1f", "12"], &["x1", "0x", "12a"]),
            (r#"^[A-Za-z0-9-_.:${}"]+$"#, &["${A}", "\"x\""], &["a b"]),
            (r"^\S+@\S+$", &["a@b"], &["a@", "@b", "a b@c"]),
            (r"^[a-zA-Z0-9 +\-,]+$", &["a b+c-d,e"], &["a.b"]),
            (r"^\d{4}-\d{2}-\d{2}-\d+$", &["2026-01-02-3"], &["26-01-02-3"]),
            (r"^([A-Za-z0-9.:/]+)(,[A-Za-z0-9.:/]+)*$", &["a,b/c", "a"], &["a,", ",a"]),
            (r"^\d+(ms|s|m|h|d)?$", &["1", "1ms"], &["ms", "1x"]),
            (r"^(by-thread|by-group|[0-9]+)$", &["by-group", "7"], &["by"]),
            (r"^https://[^\s]+$", &["https://a"], &["http://a", "https://"]),
            (r#"^(?:[A-Za-z]+\("([A-Za-z\s]+)"\)|[A-Za-z]+)"#, &["ab(\"c d\")", "ab(1"], &["1"]),
            ("src", &["a src b"], &["srx"]),
            ("^[^ ]*$", &["", "a"], &["a b"]),
        ] {
            let read = Pattern::read(pattern).unwrap_or_else(|| panic!("{pattern} is not read"));
            for text in yes {
                assert!(read.matches(text), "{pattern} {text:?}");
            }
            for text in no {
                assert!(!read.matches(text), "{pattern} {text:?}");
            }
        }
    }
}
