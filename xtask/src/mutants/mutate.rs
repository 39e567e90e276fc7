//! Changes of rows: what could be wrong with one, one thing at a time.
//!
//! ```text
//! dfb 3.2+   option abortonclose <abortonclose:toggle> ; default=disabled
//! │   │      │                   │                       └─ another default, or no attribute
//! │   │      │                   └─ another type, one value less, no option
//! │   │      └─ another word
//! │   └─ other versions
//! └─ a section less                                        … or no row, or its place taken by the next one
//! ```

use std::fmt;

/// A row that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// The line that is changed, counted from 0.
    pub(crate) line: usize,
    /// What is changed.
    pub(crate) change: Change,
}

/// What is changed of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is not there.
    Removed,
    /// It stands after the next row.
    Moved,
    /// It says something else.
    Replaced(String),
}

impl Mutant {
    /// Returns the text of the file with the change in it.
    pub(crate) fn apply(&self, text: &str) -> String {
        let mut lines: Vec<&str> = text.lines().collect();
        match &self.change {
            Change::Removed => drop(lines.remove(self.line)),
            Change::Moved => lines.swap(self.line, self.line + 1),
            Change::Replaced(row) => lines[self.line] = row,
        }
        let mut changed = lines.join("\n");
        changed.push('\n');
        changed
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Removed => f.write_str("removed"),
            Self::Moved => f.write_str("moved below the next row"),
            Self::Replaced(row) => write!(f, "became {row}"),
        }
    }
}

/// Lists everything that can be changed of the rows of a file.
pub(crate) fn mutants(text: &str) -> Vec<Mutant> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    let mut in_order = false;
    for (line, row) in lines.iter().enumerate() {
        if row.starts_with('[') {
            in_order = row.starts_with("[order");
        }
        if !is_row(row) || in_order {
            continue;
        }
        let mut add = |change| all.push(Mutant { line, change });
        add(Change::Removed);
        // Two forms of one directive: the first that fits is taken.
        let next = lines.get(line + 1).copied().unwrap_or_default();
        if is_row(next) && keyword(next).is_some() && keyword(next) == keyword(row) {
            add(Change::Moved);
        }
        for changed in changed_rows(row) {
            add(Change::Replaced(changed));
        }
    }
    all
}

fn is_row(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with(['#', '['])
}

/// The columns of a row: sections, where it names some, versions, grammar, attributes.
struct Columns<'r> {
    sections: Option<&'r str>,
    versions: &'r str,
    grammar: &'r str,
    attributes: Vec<&'r str>,
}

impl<'r> Columns<'r> {
    fn of(row: &'r str) -> Self {
        let (row, attributes) = row.split_once(" ; ").unwrap_or((row, ""));
        let (first, rest) = row.split_once(' ').unwrap_or((row, ""));
        let is_versions =
            |word: &str| word == "*" || word.contains(|c: char| c.is_ascii_digit()) || word.starts_with('@');
        let (sections, versions, grammar) = if is_versions(first) {
            (None, first, rest)
        } else {
            let (versions, grammar) = rest.trim_start().split_once(' ').unwrap_or((rest, ""));
            (Some(first), versions, grammar)
        };
        Self { sections, versions, grammar: grammar.trim(), attributes: attributes_of(attributes) }
    }

    fn row(&self) -> String {
        let mut row = String::new();
        for column in self.sections.into_iter().chain([self.versions, self.grammar]) {
            row.push_str(column);
            row.push(' ');
        }
        if self.attributes.is_empty() {
            return row.trim_end().to_owned();
        }
        format!("{}; {}", row, self.attributes.join(" "))
    }
}

/// Splits attributes at blanks; what is in double quotes stays together.
fn attributes_of(text: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let is_blank = |c: char| {
        is_quoted ^= c == '"';
        c == ' ' && !is_quoted
    };
    text.split(is_blank).filter(|attribute| !attribute.is_empty()).collect()
}

/// The first word of a row's grammar.
fn keyword(row: &str) -> Option<&str> {
    Columns::of(row).grammar.split_whitespace().next()
}

fn changed_rows(row: &str) -> Vec<String> {
    let columns = Columns::of(row);
    let mut changed = Vec::new();
    if let Some(sections) = columns.sections {
        let several = sections.bytes().filter(u8::is_ascii_lowercase).count() > 1;
        for (at, _) in sections.match_indices(|c: char| c.is_ascii_lowercase()).filter(|_| several) {
            let mut fewer = sections.to_owned();
            fewer.replace_range(at..=at, "-");
            changed.push(
                Columns { sections: Some(&fewer), attributes: columns.attributes.clone(), ..columns }.row(),
            );
        }
    }
    for versions in other_versions(columns.versions) {
        changed
            .push(Columns { versions: &versions, attributes: columns.attributes.clone(), ..columns }.row());
    }
    for grammar in other_grammars(columns.grammar) {
        changed.push(Columns { grammar: &grammar, attributes: columns.attributes.clone(), ..columns }.row());
    }
    for (position, attribute) in columns.attributes.iter().enumerate() {
        let mut fewer = columns.attributes.clone();
        fewer.remove(position);
        changed.push(Columns { attributes: fewer, ..columns }.row());
        if let Some(other) = other_default(attribute) {
            let mut others = columns.attributes.clone();
            others[position] = &other;
            changed.push(Columns { attributes: others, ..columns }.row());
        }
    }
    changed
}

/// More versions, or fewer.
fn other_versions(versions: &str) -> Vec<String> {
    match versions {
        "*" => vec!["3.2+".to_owned(), "-3.2".to_owned()],
        _ => vec!["*".to_owned()],
    }
}

/// One word that is spelled otherwise, one option or one value less, one type that is another.
fn other_grammars(grammar: &str) -> Vec<String> {
    let mut others = Vec::new();
    let words: Vec<&str> = grammar.split(' ').collect();
    let with = |at: usize, word: &str| {
        let mut words = words.clone();
        words[at] = word;
        words.join(" ")
    };
    for (at, word) in words.iter().enumerate() {
        if word.len() > 1 && word.starts_with(|c: char| c.is_ascii_lowercase()) && !word.contains(['=', '('])
        {
            others.push(with(at, &format!("{word}-x")));
        }
        if let Some((before, values)) = word.split_once('[').filter(|_| word.starts_with('<'))
            && let Some((values, after)) = values.split_once(']')
            && let Some((_, fewer)) = values.split_once('|')
        {
            others.push(with(at, &format!("{before}[{fewer}]{after}")));
        }
        for (ty, other) in
            [(":toggle>", ":flag>"), (":flag>", ":toggle>"), (":int>", ">"), (":int0>", ":int>")]
        {
            if let Some(before) = word.strip_suffix(ty) {
                others.push(with(at, &format!("{before}{other}")));
            }
        }
    }
    // An option that holds no other.
    let mut open = None;
    for (at, word) in words.iter().enumerate() {
        match *word {
            "[" => open = Some(at),
            "]" => {
                if let Some(open) = open.take() {
                    let rest: Vec<&str> = words[..open].iter().chain(&words[at + 1..]).copied().collect();
                    others.push(rest.join(" "));
                }
            }
            _ => {}
        }
    }
    others
}

/// Another default.
fn other_default(attribute: &str) -> Option<String> {
    let (name, value) = attribute
        .split_once('=')
        .filter(|(name, _)| *name == "default" || name.starts_with("default@") || *name == "implied")?;
    let other = match value {
        "enabled" => "disabled".to_owned(),
        "disabled" => "enabled".to_owned(),
        value => match value.parse::<u64>() {
            Ok(number) => (number + 1).to_string(),
            Err(_) => return None,
        },
    };
    Some(format!("{name}={other}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(row: &str) -> Vec<String> {
        mutants(row).iter().map(|mutant| mutant.apply(row)).collect()
    }

    #[test]
    fn each_column_of_a_row_is_changed_by_itself() {
        let row = "d-b 3.2+     option x <x:toggle> ; default=disabled runtime\n";
        assert_eq!(
            of(row),
            [
                "\n",
                "--b 3.2+ option x <x:toggle> ; default=disabled runtime\n",
                "d-- 3.2+ option x <x:toggle> ; default=disabled runtime\n",
                "d-b * option x <x:toggle> ; default=disabled runtime\n",
                "d-b 3.2+ option-x x <x:toggle> ; default=disabled runtime\n",
                "d-b 3.2+ option x <x:flag> ; default=disabled runtime\n",
                "d-b 3.2+ option x <x:toggle> ; runtime\n",
                "d-b 3.2+ option x <x:toggle> ; default=enabled runtime\n",
                "d-b 3.2+ option x <x:toggle> ; default=disabled\n",
            ]
        );
    }

    #[test]
    fn what_is_quoted_is_one_attribute() {
        let row = "*        grace <grace:ms0> ; deprecated@2.3+=\"no longer works\" no\n";
        let fewer = "* grace <grace:ms0> ; deprecated@2.3+=\"no longer works\"\n";
        assert!(of(row).contains(&fewer.to_owned()), "{:?}", of(row));
    }

    #[test]
    fn options_and_values_are_left_out() {
        let row = "*        mode <mode:word[tcp|http|log]> [ for <time> ]\n";
        let changed = of(row);
        assert!(changed.contains(&"* mode <mode:word[http|log]> [ for <time> ]\n".to_owned()), "{changed:?}");
        assert!(changed.contains(&"* mode <mode:word[tcp|http|log]>\n".to_owned()), "{changed:?}");
    }

    #[test]
    fn forms_of_one_directive_change_places() {
        let rows = "[backend]\n*  balance a=x\n*  balance <a>\n*  mode <mode>\n";
        let moved: Vec<_> =
            mutants(rows).into_iter().filter(|mutant| mutant.change == Change::Moved).collect();
        assert_eq!(moved, [Mutant { line: 1, change: Change::Moved }]);
        assert_eq!(moved[0].apply(rows), "[backend]\n*  balance <a>\n*  balance a=x\n*  mode <mode>\n");
    }

    #[test]
    fn comments_headings_and_the_order_of_lines_are_no_rows() {
        assert_eq!(mutants("# a comment\n\n[backend]\n[order backend]\nmode balance\n"), []);
    }
}
