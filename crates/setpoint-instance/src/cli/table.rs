//! Answers that are tables: a heading that names the columns, and a line for each row.
//!
//! Columns are found by their names, because versions of HAProxy add some in the middle. Rows are divided when they are looked
//! at: there may be a hundred thousand of them.

use std::borrow::Cow;

/// A table in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table<'a> {
    columns: Vec<Cow<'a, str>>,
    rows: Vec<&'a str>,
    separator: Separator,
}

/// What stands between values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Blanks,
    /// A value in quotes may hold commas, and quotes that are written twice.
    Commas,
}

impl Separator {
    fn split(self, line: &str) -> Vec<Cow<'_, str>> {
        match self {
            Self::Blanks => line.split_ascii_whitespace().map(Cow::Borrowed).collect(),
            // Each line ends with a comma.
            Self::Commas => {
                let line = line.strip_suffix(',').unwrap_or(line);
                if line.contains('"') {
                    split_quoted(line).into_iter().map(Cow::Owned).collect()
                } else {
                    line.split(',').map(Cow::Borrowed).collect()
                }
            }
        }
    }
}

/// Why an answer is no table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// There is no line that names the columns.
    #[error("HAProxy's answer has no heading: {0}")]
    NoHeading(String),
    /// A row has more or fewer values than there are columns.
    #[error("HAProxy's answer names {columns} columns, and has {values} values in a row: {row}")]
    Ragged {
        /// How many columns there are.
        columns: usize,
        /// How many values the row has.
        values: usize,
        /// The row.
        row: String,
    },
    /// A column that is needed is not there.
    #[error("HAProxy's answer has no column `{0}`")]
    NoColumn(&'static str),
}

impl<'a> Table<'a> {
    /// Reads values that are separated by blanks, as in `show servers state`.
    pub fn read_words(answer: &'a str) -> Result<Self, TableError> {
        Self::read(answer, Separator::Blanks)
    }

    /// Reads values that are separated by commas, as in `show stat`.
    pub fn read_csv(answer: &'a str) -> Result<Self, TableError> {
        Self::read(answer, Separator::Commas)
    }

    fn read(answer: &'a str, separator: Separator) -> Result<Self, TableError> {
        let mut lines = answer.lines();
        let heading = lines.find_map(|line| line.strip_prefix("# "));
        let heading = heading.ok_or_else(|| TableError::NoHeading(answer.chars().take(200).collect()))?;
        let columns = separator.split(heading);
        let mut rows = Vec::new();
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let values = separator.split(line).len();
            if values != columns.len() {
                let columns = columns.len();
                return Err(TableError::Ragged { columns, values, row: line.chars().take(200).collect() });
            }
            rows.push(line);
        }
        Ok(Self { columns, rows, separator })
    }

    /// All values, row by row, each with the name of its column.
    pub fn rows(&self) -> impl Iterator<Item = Vec<(&str, Cow<'a, str>)>> {
        let columns = self.columns.iter().map(AsRef::as_ref);
        self.rows.iter().map(move |row| columns.clone().zip(self.separator.split(row)).collect())
    }

    /// The values of some columns, row by row.
    pub fn select<const N: usize>(
        &self,
        columns: [&'static str; N],
    ) -> Result<impl Iterator<Item = [Cow<'a, str>; N]>, TableError> {
        let mut places = [0; N];
        for (place, name) in places.iter_mut().zip(columns) {
            let found = self.columns.iter().position(|column| column == name);
            *place = found.ok_or(TableError::NoColumn(name))?;
        }
        Ok(self.rows.iter().map(move |row| {
            let values = self.separator.split(row);
            places.map(|place| values.get(place).cloned().unwrap_or_default())
        }))
    }
}

fn split_quoted(line: &str) -> Vec<String> {
    let (mut values, mut value, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => value.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => values.push(std::mem::take(&mut value)),
            _ => value.push(letter),
        }
    }
    values.push(value);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_their_names() {
        let table = Table::read_words("1\n# be_id be_name srv_name\n3 shop s1\n4 api a1\n\n").unwrap();
        let rows: Vec<_> = table.select(["srv_name", "be_name"]).unwrap().collect();
        assert_eq!(rows, [["s1", "shop"], ["a1", "api"]]);
        let error = table.select(["srv_addr"]).err();
        assert_eq!(error, Some(TableError::NoColumn("srv_addr")));
    }

    #[test]
    fn values_in_quotes_may_hold_commas_and_quotes() {
        let table = Table::read_csv("# pxname,svname,desc,\nb,s,\"a, \"\"b\"\"\",\n").unwrap();
        assert_eq!(table.select(["desc"]).unwrap().collect::<Vec<_>>(), [["a, \"b\""]]);
    }

    #[test]
    fn what_is_no_table_is_an_error() {
        assert!(matches!(Table::read_words("Permission denied\n"), Err(TableError::NoHeading(_))));
        let ragged = Table::read_words("# a b\n1\n");
        assert!(matches!(ragged, Err(TableError::Ragged { columns: 2, values: 1, .. })), "{ragged:?}");
    }
}
