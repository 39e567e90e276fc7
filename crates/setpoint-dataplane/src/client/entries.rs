//! Entries of a map, which the original API is told one by one.
//!
//! Its call for all of them at once adds where it should replace, and loses some at the end of a buffer.

use std::collections::BTreeMap;

use super::Client;
use super::answer::ApiError;

/// How many entries a map may have whose entries are told one by one.
const MOST: usize = 5_000;

/// The entries of a map by key, in the form that calls can tell; none if they can't: a key that is there twice, a value with a blank,
/// which is cut there, or more than anybody wants to wait for.
pub(crate) fn of_map(bytes: &[u8]) -> Option<BTreeMap<&str, &str>> {
    let mut entries = BTreeMap::new();
    let lines = std::str::from_utf8(bytes).ok()?.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (key, value) = line.split_once(char::is_whitespace)?;
        let value = value.trim();
        let is_plain = !value.is_empty() && !value.contains(char::is_whitespace);
        if !is_plain || entries.insert(key, value).is_some() {
            return None;
        }
    }
    (entries.len() <= MOST).then_some(entries)
}

impl Client {
    /// Tells a running HAProxy the entries of a map, each by itself, and counts them then. Returns whether it has them now.
    pub(crate) async fn tell_entries(&self, name: &str, bytes: &[u8]) -> Result<bool, ApiError> {
        let (Some(wanted), Some(held)) = (of_map(bytes), self.map_entries(name).await?) else {
            return Ok(false);
        };
        let running: BTreeMap<&str, &str> =
            held.iter().map(|entry| (entry.key.as_str(), entry.value.as_str())).collect();
        if running.len() != held.len() {
            // Which of two with the same key goes is not said.
            return Ok(false);
        }
        for key in running.keys().filter(|key| !wanted.contains_key(*key)) {
            self.delete_map_entry(name, key).await?;
        }
        for (key, value) in &wanted {
            match running.get(key) {
                None => self.add_map_entry(name, key, value).await?,
                Some(held) if held != value => self.set_map_entry(name, key, value).await?,
                Some(_) => {}
            }
        }
        let now = self.map_entries(name).await?.unwrap_or_default();
        Ok(now.len() == wanted.len()
            && now.iter().all(|entry| wanted.get(entry.key.as_str()) == Some(&entry.value.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_calls_can_not_tell_of_a_map_is_not_taken_for_entries() {
        assert_eq!(of_map(b"# a\n/a 1\n\n /b\t2 \n").unwrap(), [("/a", "1"), ("/b", "2")].into());
        assert_eq!(of_map(b"").unwrap().len(), 0);
        for text in ["/a 1\n/a 2\n", "/a two words\n", "/a\n"] {
            assert_eq!(of_map(text.as_bytes()), None, "{text}");
        }
        let many = (0..=MOST).fold(String::new(), |text, number| format!("{text}/{number} x\n"));
        assert_eq!(of_map(many.as_bytes()), None);
    }
}
