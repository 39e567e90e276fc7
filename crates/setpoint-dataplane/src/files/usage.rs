//! How the text of a configuration uses a file: what decides whether a running HAProxy can be told what it holds.
//!
//! In doubt a file is used: what is taken for unused takes effect with no reload at all.

use setpoint_haproxy::text::Document;

use crate::client::FileKind;

/// How the text of a configuration uses a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Nothing names it.
    Unused,
    /// As a map alone.
    Map,
    /// As patterns of ACLs alone.
    Patterns,
    /// As authorities, or as revoked certificates, alone: by this path.
    Authorities(String),
    /// As a certificate alone.
    Certificate,
    /// As something else, or as several of these.
    Other,
}

/// The words before a path that say what it is for.
fn behind(word: &str, path: &str) -> Usage {
    match word {
        "-f" => Usage::Patterns,
        "ca-file" | "crl-file" => Usage::Authorities(path.to_owned()),
        "crt" => Usage::Certificate,
        _ => Usage::Other,
    }
}

impl Usage {
    /// How a text uses a file of a kind that has this name.
    pub fn of(document: &Document, kind: FileKind, name: &str) -> Self {
        let mut usage = Self::Unused;
        for line in document.sections().iter().flat_map(|section| section.all_lines()) {
            let raw = String::from_utf8_lossy(line.raw());
            // Most lines of a long configuration have nothing to do with it.
            if !raw.contains(name)
                && !raw.contains(if kind == FileKind::Certificate { "crt" } else { "lua-" })
            {
                continue;
            }
            let words: Vec<String> = line.words().map(|word| word.to_str_lossy().into_owned()).collect();
            // Whoever looks for the name in the text finds it in a comment, too.
            if kind == FileKind::General
                && line.comment().is_some_and(|comment| names(&String::from_utf8_lossy(comment), name))
            {
                usage = usage.and(Self::Other);
            }
            for (number, word) in words.iter().enumerate() {
                let before =
                    number.checked_sub(1).and_then(|number| words.get(number)).map_or("", String::as_str);
                if names(word, name) {
                    let is_map = word.split_once("map").is_some_and(|(_, rest)| rest.contains('('));
                    usage = usage.and(if is_map { Self::Map } else { behind(before, word) });
                } else if kind == FileKind::Certificate && holds_certificates(before, word) {
                    usage = usage.and(Self::Certificate);
                } else if kind == FileKind::General && is_script(name) && word.starts_with("lua-") {
                    // A script may load another.
                    usage = usage.and(Self::Other);
                }
            }
        }
        usage
    }

    fn and(self, other: Self) -> Self {
        match self {
            Self::Unused => other,
            same if same == other => same,
            _ => Self::Other,
        }
    }
}

fn is_script(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("lua"))
}

/// Returns whether a word names certificates without saying which: a list of them, or what seems to be a folder.
fn holds_certificates(before: &str, word: &str) -> bool {
    match before {
        "crt-list" => true,
        "crt" => !word.rsplit('/').next().unwrap_or_default().contains('.'),
        _ => false,
    }
}

/// Returns whether a text has a name as the last part of a path.
fn names(text: &str, name: &str) -> bool {
    let is_of_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '_' | '-');
    text.match_indices(name).any(|(start, _)| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text.get(start + name.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_of_name) && !after.is_some_and(is_of_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(kind: FileKind, name: &str, line: &str) -> Usage {
        Usage::of(&Document::parse(format!("frontend f\n  {line}\n").as_bytes()), kind, name)
    }

    #[test]
    fn what_a_file_is_used_for_is_told_by_the_word_before_it() {
        let general = |line| usage(FileKind::General, "a.lst", line);
        assert_eq!(general("http-request deny if { src -f /etc/h/a.lst }"), Usage::Patterns);
        assert_eq!(
            general("bind :1 ssl ca-file \"/etc/h/a.lst\""),
            Usage::Authorities("/etc/h/a.lst".to_owned())
        );
        assert_eq!(general("bind :1 ssl crl-file a.lst"), Usage::Authorities("a.lst".to_owned()));
        assert_eq!(general("errorfile 503 /etc/h/a.lst"), Usage::Other);
        assert_eq!(
            general("acl x src -f a.lst -f b.lst # a.lst"),
            Usage::Other,
            "whoever greps finds the comment"
        );
        assert_eq!(general("errorfile 503 /etc/h/aa.lst"), Usage::Unused, "another name ends with it");
        assert_eq!(general("errorfile 503 /etc/h/a.lst.old"), Usage::Unused);
        let map = |line| usage(FileKind::Map, "h.map", line);
        assert_eq!(map("use_backend %[hdr(host),lower,map_beg(/maps/h.map,none)]"), Usage::Map);
        assert_eq!(map("http-request deny if { src -f /maps/h.map }"), Usage::Patterns);
        let both = "frontend f\n  acl a src -f h.map\n  http-request set-header x %[path,map(h.map)]\n";
        assert_eq!(Usage::of(&Document::parse(both.as_bytes()), FileKind::Map, "h.map"), Usage::Other);
    }

    #[test]
    fn a_certificate_is_used_by_its_name_by_a_folder_and_by_a_list() {
        let certificate = |line| usage(FileKind::Certificate, "s.pem", line);
        assert_eq!(certificate("bind :1 ssl crt /ssl/s.pem"), Usage::Certificate);
        assert_eq!(certificate("bind :1 ssl crt /ssl"), Usage::Certificate);
        assert_eq!(certificate("bind :1 ssl crt /ssl/"), Usage::Certificate);
        assert_eq!(certificate("bind :1 ssl crt-list /ssl/list.txt"), Usage::Certificate);
        assert_eq!(certificate("bind :1 ssl crt /ssl/other.pem"), Usage::Unused);
        assert_eq!(usage(FileKind::General, "b.lua", "lua-load /a.lua"), Usage::Other);
    }
}
