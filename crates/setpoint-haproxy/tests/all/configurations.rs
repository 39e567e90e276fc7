//! Configurations that several tests use: written ones, and a generator of new ones.

/// One of each section, in a style as people write it.
pub(crate) const MIXED: &str = include_str!("data/mixed.cfg");

/// Strategies for texts that look like configurations.
pub(crate) mod any {
    use proptest::prelude::*;

    /// A line that is like one of a configuration, or almost.
    pub(crate) fn line() -> impl Strategy<Value = Vec<u8>> {
        let words = prop::sample::select(vec![
            "backend", "frontend", "defaults", "global", "listen", "\"backend\"", "from", "server", "bind", "mode",
            "http-request", "deny", "if", "acl", "b", "s1", "10.0.0.1:80", "#", "# comment", ".if", ".else", ".endif",
            "nonsense", "\"two words\"", "'single'", "\"${VAR}\"", "\\x41", "\\", "\"", "a#b", "no", "option", "httplog",
            "program", "waf-global", "1s", "", "\u{0}", "é",
        ]);
        let blanks = prop::sample::select(vec![" ", "  ", "\t", "", "    ", "\x0b"]);
        let ends = prop::sample::select(vec!["\n", "\n", "\n", "\r\n", "\r", ""]);
        (prop::collection::vec((blanks, words), 0..6), ends).prop_map(|(words, end)| {
            let mut line: Vec<u8> = words.into_iter().flat_map(|(blank, word)| [blank, word]).collect::<String>().into();
            line.extend(end.bytes());
            line
        })
    }

    /// A file of such lines, or of any bytes.
    pub(crate) fn text() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => prop::collection::vec(line(), 0..30).prop_map(|lines| lines.concat()),
            1 => prop::collection::vec(any::<u8>(), 0..200),
        ]
    }
}
