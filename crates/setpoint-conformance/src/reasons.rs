//! Why the model differs from the original where it does: one row for each reason.

use serde_json::Value as Json;

use setpoint_haproxy::model::{ModelError, Version};

use crate::Difference;
use crate::case::without_zeros;
use crate::evidence::{
    agree_on_what_both_read, contains, differs_in_tls_versions, drops_words, has_bare_lines, has_nothing,
    has_text_after_hdr_ip, is_blamed, is_in_seconds, is_misread, is_quoted, is_several_words, is_unwritten,
    keeps_more, unquoted,
};

/// A reason to differ from the original.
#[derive(Debug)]
pub struct Reason {
    /// A short name.
    pub name: &'static str,
    /// What the original does, and why the model does not.
    pub why: &'static str,
    /// What it is about; it explains no difference of anything else.
    about: About,
    /// Whether a difference is of this kind.
    applies: fn(&Difference) -> bool,
}

/// What a reason is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// What is written: of what is read, both have to say the same.
    Text,
    /// What is read: what is written must not differ.
    Reading,
    /// Both: what the original writes has other words than what was sent, which it reads from memory, and the model from the text.
    Both,
}

impl Reason {
    /// Returns whether this is the reason of a difference.
    pub fn explains(&self, difference: &Difference) -> bool {
        let may_be = match self.about {
            About::Text => {
                let agree = |(theirs, ours): &(Json, Json)| {
                    agree_on_what_both_read(&unquoted(theirs), &unquoted(ours))
                };
                difference.read.as_ref().is_none_or(agree)
            }
            About::Reading => difference.text.is_none(),
            About::Both => true,
        };
        may_be && (self.applies)(difference)
    }
}

/// All reasons. The first that applies is counted.
pub const REASONS: &[Reason] = &[
    Reason {
        name: "refused",
        why: "HAProxy refuses what the original writes, and the model refuses to write it.",
        about: About::Text,
        applies: |difference| {
            difference.accepted == Some(false) && matches!(&difference.text, Some((_, Err(_))))
        },
    },
    Reason {
        name: "blamed",
        why: "HAProxy refuses the text, and `check` says in which line: the model keeps that line as text, and reads no other \
              otherwise than the original does.",
        about: About::Reading,
        applies: |difference| {
            is_blamed(difference)
                && difference
                    .read
                    .as_ref()
                    .is_some_and(|(theirs, ours)| agree_on_what_both_read(theirs, ours))
        },
    },
    Reason {
        name: "ring-unit",
        why: "HAProxy before 3.1 reads no unit of the size of a ring, so that `32k` is 32: the model keeps such a line as text, and \
              writes bytes.",
        about: About::Reading,
        applies: |difference| {
            let has_unit = |line: &String| {
                let size = line.strip_prefix("size ").and_then(|size| size.strip_suffix(['k', 'm', 'g']));
                size.is_some_and(|digits| digits.parse::<u64>().is_ok())
            };
            difference.version <= Version::V3_0
                && difference.section == "rings"
                && difference.unmodelled.iter().all(has_unit)
                && difference
                    .read
                    .as_ref()
                    .is_some_and(|(theirs, ours)| agree_on_what_both_read(theirs, ours))
        },
    },
    Reason {
        name: "usesrc",
        why: "The original writes an address right after `usesrc hdr_ip(…)`, which HAProxy ignores, and reads it as a part of \
              `occ`; the model reads one address. HAProxy refuses other lines, which `check` blames.",
        about: About::Reading,
        applies: |difference| {
            let without_source = |json: &Json| {
                let mut json = json.clone();
                json.as_object_mut().and_then(|section| section.remove("source"));
                for section in json.as_object_mut().into_iter().flat_map(|sections| sections.values_mut()) {
                    section.as_object_mut().and_then(|section| section.remove("source"));
                }
                json
            };
            let is_refused = difference.kind == crate::Kind::Model && difference.accepted == Some(false);
            (is_refused || is_blamed(difference))
                && difference.recorded.iter().any(|line| has_text_after_hdr_ip(line))
                && difference.read.as_ref().is_some_and(|(theirs, ours)| {
                    agree_on_what_both_read(&without_source(theirs), &without_source(ours))
                })
        },
    },
    Reason {
        name: "unreadable",
        why: "A line can't be cut into words (a quote that does not end), which HAProxy refuses: the model keeps its section as \
              text.",
        about: About::Reading,
        applies: |difference| {
            let reads_less = |(theirs, ours): &(Json, Json)| contains(theirs, ours);
            difference.unreadable
                && difference.accepted == Some(false)
                && difference.read.as_ref().is_some_and(reads_less)
        },
    },
    Reason {
        name: "lost",
        why: "The original accepts something and then loses it, puts it elsewhere or reads it as something else; what the \
              model writes or reads is what was sent.",
        about: About::Both,
        applies: |difference| difference.lost || is_misread(difference),
    },
    Reason {
        name: "unsaid",
        why: "The original does not write a word that HAProxy would refuse; the model refuses it.",
        about: About::Text,
        applies: |difference| match &difference.text {
            Some((theirs, Err(ModelError::Refused { word: Some(word), .. }))) => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
                let mut parts = theirs.iter().flat_map(|line| line.split(|c| !is_part(c)));
                !parts.any(|part| part == word)
            }
            _ => false,
        },
    },
    Reason {
        name: "zeros",
        why: "The original shows a zero for what is not there.",
        about: About::Reading,
        applies: |difference| {
            let same = |(theirs, ours): &(Json, Json)| without_zeros(theirs) == without_zeros(ours);
            difference.text.is_none() && difference.read.as_ref().is_some_and(same)
        },
    },
    Reason {
        name: "kept",
        why: "What the model writes holds more of what was sent than what the original writes.",
        about: About::Text,
        applies: keeps_more,
    },
    Reason {
        name: "unwritten",
        why: "Inside of a transaction the original reads back from memory what it never wrote.",
        about: About::Both,
        applies: is_unwritten,
    },
    Reason {
        name: "unread",
        why: "The original does not read a line that HAProxy accepts: a quoted value, a time with a unit, `errorloc`, \
              `ignore-persist` …; the model reads all that the original reads, and it.",
        about: About::Reading,
        applies: |difference| difference.read.as_ref().is_some_and(|(theirs, ours)| contains(ours, theirs)),
    },
    Reason {
        name: "dropped",
        why: "The original reads a part of a line and drops the rest; the model keeps the whole line as text.",
        about: About::Reading,
        applies: drops_words,
    },
    Reason {
        name: "variable",
        why: "A line that expands a variable whose value is not known is kept as text.",
        about: About::Reading,
        applies: |difference| difference.recorded.iter().any(|line| line.contains("${")),
    },
    Reason {
        name: "vanished",
        why: "The original accepts a value and writes nothing of it; the model says that there is no line for it.",
        about: About::Text,
        applies: |difference| match &difference.text {
            Some((_, Err(ModelError::Unwritten { fields, .. }))) => fields.iter().any(|(path, _)| {
                difference.reread.pointer(&format!("/{}", path.replace('.', "/"))).is_none()
            }),
            _ => false,
        },
    },
    Reason {
        name: "type",
        why: "The original ignores a value of the wrong type; the model refuses it.",
        about: About::Text,
        applies: |difference| matches!(&difference.text, Some((_, Err(ModelError::WrongType { .. })))),
    },
    Reason {
        name: "tls-versions",
        why: "The original ignores `no_tlsv10` and its like on a server, and writes `no-sslv3` twice.",
        about: About::Text,
        applies: differs_in_tls_versions,
    },
    Reason {
        name: "gpt-arguments",
        why: "The original writes and reads the arguments of `sc-set-gpt` in the wrong order: HAProxy has the index first.",
        about: About::Both,
        applies: |difference| difference.recorded.iter().any(|line| line.contains("sc-set-gpt(")),
    },
    Reason {
        name: "set-query",
        why: "The format of `set-query`, and in 3.0 of `set-uri`, is in `hdr_format` for the original, and not in the \
              property that the schema has for it.",
        about: About::Both,
        applies: |difference| {
            difference.recorded.iter().any(|line| line.contains("set-query ") || line.contains("set-uri "))
        },
    },
    Reason {
        name: "seconds",
        why: "A time without unit is in seconds in some directives: the original writes and reads milliseconds there.",
        about: About::Both,
        applies: is_in_seconds,
    },
    Reason {
        name: "quotes",
        why: "The original sometimes keeps the quotes of a word and sometimes not; to HAProxy it is the same word.",
        about: About::Reading,
        applies: |difference| {
            difference.read.as_ref().is_some_and(|(theirs, ours)| unquoted(theirs) == unquoted(ours))
        },
    },
    Reason {
        name: "twice",
        why: "The original writes a line twice.",
        about: About::Text,
        applies: |difference| {
            matches!(&difference.text, Some((theirs, Ok(ours))) if {
                let mut once: Vec<&String> = Vec::new();
                for line in theirs {
                    if !once.contains(&line) {
                        once.push(line);
                    }
                }
                once.len() < theirs.len() && once.len() == ours.len() && once.iter().all(|line| ours.contains(line))
            })
        },
    },
    Reason {
        name: "sections",
        why: "Of two sections of the same name the original merges the lines, or keeps the last.",
        about: About::Reading,
        applies: |difference| {
            let headers: Vec<&String> = difference
                .recorded
                .iter()
                .filter(|line| line.starts_with(|c: char| c.is_ascii_alphabetic()))
                .collect();
            headers
                .iter()
                .enumerate()
                .any(|(position, line)| headers.iter().skip(position + 1).any(|other| other == line))
        },
    },
    Reason {
        name: "tls-tickets",
        why: "In 3.2 the original writes `no-tls-tickets tls-tickets`, which says both.",
        about: About::Both,
        applies: |difference| {
            difference.recorded.iter().any(|line| line.contains("no-tls-tickets tls-tickets"))
        },
    },
    Reason {
        name: "gpt-value",
        why: "The original does not write the value of `sc-set-gpt0` in a `tcp-request`, nor that of some `set-var-fmt`.",
        about: About::Both,
        applies: |difference| {
            difference.recorded.iter().any(|line| {
                let line = line.trim_end();
                line.ends_with(')') && (line.contains(" sc-set-gpt0(") || line.contains(" set-var-fmt("))
            })
        },
    },
    Reason {
        name: "unnamed",
        why: "The original gives names to `defaults` that have none.",
        about: About::Reading,
        applies: |difference| {
            difference
                .read
                .as_ref()
                .is_some_and(|(theirs, _)| theirs.to_string().contains("unnamed_defaults_"))
        },
    },
    Reason {
        name: "empty",
        why: "An empty text, structure or element says nothing; the original writes a keyword \
              without a value for it.",
        about: About::Both,
        applies: |difference| has_nothing(&difference.sent) || has_bare_lines(difference),
    },
    Reason {
        name: "quoted",
        why: "The original writes a text with a blank, a quote or a # as it is, so that HAProxy sees other words; the \
              model puts it in quotes.",
        about: About::Both,
        applies: is_quoted,
    },
    Reason {
        name: "bandwidth-limit",
        why: "Up to 3.1 the original writes `limit` and `period` without a value where none is given.",
        about: About::Both,
        applies: |difference| {
            matches!(&difference.text, Some((theirs, Ok(ours))) if {
                let bare = |line: &String| line.replace(" limit  period", " period").replace(" period  ", " ").replace(" limit  ", " ");
                let cut = |line: &String| bare(line).trim_end().trim_end_matches(" period").trim_end().to_owned();
                theirs.iter().all(|line| line.contains(" set-bandwidth-limit ")) && theirs.iter().map(cut).eq(ours.iter().map(cut))
            })
        },
    },
    Reason {
        name: "brackets",
        why: "The original writes an IPv6 address without brackets, of which HAProxy takes the end for a port; the model writes \
              brackets.",
        about: About::Both,
        applies: |difference| {
            matches!(&difference.text, Some((theirs, Ok(ours))) if {
                let without = |lines: &[String]| lines.iter().map(|line| line.replace(['[', ']'], "")).collect::<Vec<_>>();
                without(ours) == without(theirs) && ours.iter().any(|line| line.contains("[::"))
            })
        },
    },
    Reason {
        name: "order",
        why: "The original writes the options of a line in another order, which HAProxy does not mind; it refuses the line for \
              something else.",
        about: About::Text,
        applies: |difference| {
            matches!(&difference.text, Some((theirs, Ok(ours))) if {
                let sorted = |lines: &[String]| lines.iter().map(|line| {
                    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
                    words.sort_unstable();
                    words
                }).collect::<Vec<_>>();
                difference.accepted == Some(false) && difference.read.is_none() && sorted(ours) == sorted(theirs)
            })
        },
    },
    Reason {
        name: "words",
        why: "The original reads as one value what are several words to HAProxy, or what ends in a comment; HAProxy takes \
              the first word and ignores the rest.",
        about: About::Both,
        applies: is_several_words,
    },
];
