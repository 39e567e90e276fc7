//! Variables that HAProxy does not expand.

use super::configuration::Configuration;
use crate::table::facts::facts;
use crate::text::{Diagnostic, Problem};

/// Looks for variables outside of quotes: HAProxy takes them as they stand there.
pub(super) fn check(configuration: &Configuration<'_>, found: &mut [Vec<Diagnostic>]) {
    for part in &configuration.parts {
        let Some(found) = found.get_mut(part.file) else { continue };
        for line in &part.lines {
            let mut last_address = 0;
            for (index, word) in line.words.iter().enumerate() {
                if index == 0 {
                    // Addresses are the only unquoted text in which HAProxy expands variables.
                    last_address = facts().address_at(&word.to_str_lossy()).unwrap_or_default();
                }
                let Some(variable) = unquoted(word.raw).filter(|_| index > last_address) else { continue };
                let message = format!("`{variable}` is not expanded outside of double quotes");
                let diagnostic = line.diagnostic(Problem::NotExpanded, (word.column, word.raw), message);
                let hint = format!("write it in double quotes: `\"{}\"`", String::from_utf8_lossy(word.raw));
                found.push(diagnostic.warning().with_hint(hint));
            }
        }
    }
}

/// The first variable of a word that stands outside of quotes.
fn unquoted(raw: &[u8]) -> Option<String> {
    memchr::memchr(b'$', raw)?;
    let mut quote = None;
    let mut bytes = raw.iter().copied().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match (quote, byte) {
            (None | Some(b'"'), b'\\') => drop(bytes.next()),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None, b'$') => {
                let name = raw.get(at + 1..)?.strip_prefix(b"{")?;
                let length = name.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')?;
                let is_variable = length > 0 && name.get(length) == Some(&b'}');
                return is_variable.then(|| {
                    format!("${{{}}}", String::from_utf8_lossy(name.get(..length).unwrap_or_default()))
                });
            }
            _ => {}
        }
    }
    None
}
