//! References inside of texts: `${file.config.path}`.
//!
//! `${`, a word and a dot begin a reference; `$${` is a plain `${`. Anything else, such as the shell's
//! `${HOME}`, stays as it is.

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Stays as it is.
    Plain(&'a str),
    /// The inside of `${…}`, and where it begins in the text, in bytes.
    Reference(&'a str, usize),
    /// A reference without an end, and where it begins.
    Open(usize),
}

/// Splits a text into its parts. None if there is nothing to replace.
pub(crate) fn split(text: &str) -> Option<Vec<Part<'_>>> {
    if !text.contains("${") {
        return None;
    }
    let mut parts = Vec::new();
    let (mut plain, mut at) = (0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('$')) {
        let start = at + found;
        let rest = text.get(start..).unwrap_or_default();
        if rest.starts_with("$${") {
            parts.push(Part::Plain(text.get(plain..start).unwrap_or_default()));
            (plain, at) = (start + 1, start + 3);
        } else if let Some(inside) = rest.strip_prefix("${").filter(|inside| begins_reference(inside)) {
            parts.push(Part::Plain(text.get(plain..start).unwrap_or_default()));
            let Some(end) = inside.find(['}', '\n']).filter(|&end| inside[end..].starts_with('}')) else {
                parts.push(Part::Open(start));
                return Some(parts);
            };
            parts.push(Part::Reference(inside.get(..end).unwrap_or_default(), start));
            at = start + 2 + end + 1;
            plain = at;
        } else {
            at = start + 1;
        }
    }
    parts.push(Part::Plain(text.get(plain..).unwrap_or_default()));
    Some(parts)
}

fn begins_reference(inside: &str) -> bool {
    let word = inside.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(inside.len());
    word > 0 && inside.get(word..).is_some_and(|rest| rest.starts_with('.'))
}

/// Splits `kind.name.attribute`; a name may hold dots.
pub(crate) fn attribute(inside: &str) -> Option<(&str, &str, &str)> {
    let (kind, rest) = inside.split_once('.')?;
    let (name, attribute) = rest.rsplit_once('.')?;
    Some((kind, name, attribute)).filter(|_| !name.is_empty() && !attribute.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_from_what_the_shell_means() {
        assert_eq!(split("plain $HOME"), None);
        assert_eq!(
            split("a ${file.c.path}b"),
            Some(vec![Part::Plain("a "), Part::Reference("file.c.path", 2), Part::Plain("b")])
        );
        assert_eq!(split("${HOME}/${x:-1.2}"), Some(vec![Part::Plain("${HOME}/${x:-1.2}")]));
        let escaped: String = split("$${file.c.path} $$x")
            .unwrap()
            .iter()
            .map(|part| if let Part::Plain(text) = part { text } else { "?" })
            .collect();
        assert_eq!(escaped, "${file.c.path} $$x");
        assert_eq!(split("x ${file.c"), Some(vec![Part::Plain("x "), Part::Open(2)]));
    }

    #[test]
    fn a_name_may_hold_dots() {
        assert_eq!(attribute("file.site/index.html.path"), Some(("file", "site/index.html", "path")));
        assert_eq!(attribute("file.path"), None);
    }
}
