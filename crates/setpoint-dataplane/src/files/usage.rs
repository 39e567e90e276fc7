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
    /// As a map alone, some of whose look-ups take the first entry that fits: the order of its lines counts.
    OrderedMap,
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
            let others: &[&str] = if kind == FileKind::Certificate { &["crt"] } else { &["lua-", "ca-"] };
            if !raw.contains(name) && !others.iter().any(|other| raw.contains(other)) {
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
                    usage = usage.and(as_map(word, name).unwrap_or_else(|| behind(before, word)));
                } else if kind == FileKind::General && holds_authorities(before, word) && is_pem(name) {
                    usage = usage.and(Self::Other);
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
        match (self, other) {
            (Self::Unused, other) => other,
            (Self::Map | Self::OrderedMap, Self::OrderedMap) | (Self::OrderedMap, Self::Map) => {
                Self::OrderedMap
            }
            (same, other) if same == other => same,
            _ => Self::Other,
        }
    }
}

/// How a word uses a file as a map; none if it does not.
fn as_map(word: &str, name: &str) -> Option<Usage> {
    let (before, _) = word.split_once(name)?;
    let (before, _) = before.rsplit_once('(')?;
    let start = before.rfind(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let converter = before.get(start.map_or(0, |start| start + 1)..)?;
    let mut parts = converter.split('_');
    if parts.next() != Some("map") {
        return None;
    }
    // Whole words, beginnings and networks are found in trees, by the longest; all else line by line.
    let is_found = parts.next().is_none_or(|way| matches!(way, "str" | "beg" | "ip"));
    Some(if is_found { Usage::Map } else { Usage::OrderedMap })
}

fn is_script(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("lua"))
}

/// The endings of files of authorities that are found in a folder.
fn is_pem(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    ["pem", "crt", "cer", "crl"].contains(&ending)
}

/// Returns whether a word seems to name a folder with authorities.
fn holds_authorities(before: &str, word: &str) -> bool {
    ["ca-file", "ca-verify-file"].contains(&before) && !word.starts_with('@') && is_folder(word)
}

/// Returns whether a path seems to be that of a folder.
fn is_folder(path: &str) -> bool {
    !path.rsplit('/').next().unwrap_or_default().contains('.')
}

/// Returns whether a word names certificates without saying which: a list of them, or what seems to be a folder.
fn holds_certificates(before: &str, word: &str) -> bool {
    match before {
        "crt-list" => true,
        "crt" => is_folder(word),
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
        let authorities = |line| usage(FileKind::General, "ca.pem", line);
        assert_eq!(
            authorities("bind :1 ssl ca-file /etc/h verify required"),
            Usage::Other,
            "it is in the folder"
        );
        assert_eq!(authorities("server s 127.0.0.1:1 ssl ca-file @system-ca"), Usage::Unused);
        assert_eq!(authorities("bind :1 ssl ca-file /etc/other.pem"), Usage::Unused);
        assert_eq!(general("bind :1 ssl ca-file /etc/h"), Usage::Unused, "that is none");
        let map = |line| usage(FileKind::Map, "h.map", line);
        assert_eq!(map("use_backend %[hdr(host),lower,map_beg(/maps/h.map,none)]"), Usage::Map);
        assert_eq!(map("http-request deny if { src -f /maps/h.map }"), Usage::Patterns);
        for line in
            ["http-request set-header x %[path,map_reg(/maps/h.map)]", "use_backend %[int(1),map_int(h.map)]"]
        {
            assert_eq!(map(line), Usage::OrderedMap, "the first line that fits counts");
        }
        for line in ["use_backend %[src,map_ip(h.map)]", "http-request set-map(/maps/h.map) %[path] %[src]"] {
            assert_eq!(map(line), Usage::Map, "{line}");
        }
        let ordered =
            "frontend f\n  use_backend %[path,map(h.map)]\n  use_backend %[path,map_sub(h.map,a)]\n";
        let ordered = Document::parse(ordered.as_bytes());
        assert_eq!(Usage::of(&ordered, FileKind::Map, "h.map"), Usage::OrderedMap);
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
