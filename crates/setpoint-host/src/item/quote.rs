//! Texts as a manifest writes them on one line.

/// A text in quotes, with escapes that YAML knows.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Several texts as a list.
pub(crate) fn quoted_list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_written_into_a_manifest() {
        for text in ["plain", "two\nlines\t", "it's \"quoted\"", "\u{1b}[0m \u{7f}", "žluťoučký \u{200b}"]
        {
            let (quoted, list) = (quoted(text), quoted_list(&[text.to_owned(), "b".to_owned()]));
            assert!(!quoted.contains('\n'), "{quoted}");
            assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), text);
            assert_eq!(serde_json::from_str::<Vec<String>>(&list).unwrap(), [text, "b"]);
        }
        assert_eq!(quoted_list(&["sleep".to_owned(), "600".to_owned()]), r#"["sleep", "600"]"#);
    }
}
