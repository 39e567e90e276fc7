//! Why the model differs from the original where it does: one row for each reason.

use serde_json::Value as Json;

use setpoint_haproxy::model::spelling::{one_word, split};
use setpoint_haproxy::model::{ModelError, Version};
use setpoint_haproxy::table::directives;
use setpoint_haproxy::table::units::read_time;

use crate::Difference;
use crate::case::without_zeros;

/// A reason to differ from the original.
#[derive(Debug)]
pub struct Reason {
    /// A short name.
    pub name: &'static str,
    /// What the original does, and why the model does not.
    pub why: &'static str,
    /// Whether a difference is of this kind.
    applies: fn(&Difference) -> bool,
}

impl Reason {
    /// Returns whether this is the reason of a difference.
    pub fn explains(&self, difference: &Difference) -> bool {
        (self.applies)(difference)
    }
}

/// All reasons. The first that applies is counted.
pub const REASONS: &[Reason] = &[
    Reason {
        name: "refused",
        why: "HAProxy refuses what the original writes, and the model refuses to write it.",
        applies: |difference| {
            difference.accepted == Some(false) && matches!(&difference.text, Some((_, Err(_))))
        },
    },
    Reason {
        name: "blamed",
        why: "HAProxy refuses the text, and `check` says in which line: the model keeps that line as text, and reads no other \
              otherwise than the original does.",
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
        applies: |difference| {
            let without_source = |json: &Json| {
                let mut json = json.clone();
                for section in json.as_object_mut().into_iter().flat_map(|sections| sections.values_mut()) {
                    section.as_object_mut().and_then(|section| section.remove("source"));
                }
                json
            };
            is_blamed(difference)
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
        applies: |difference| difference.lost,
    },
    Reason {
        name: "unsaid",
        why: "The original does not write a word that HAProxy would refuse; the model refuses it.",
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
        applies: |difference| {
            let same = |(theirs, ours): &(Json, Json)| without_zeros(theirs) == without_zeros(ours);
            difference.text.is_none() && difference.read.as_ref().is_some_and(same)
        },
    },
    Reason {
        name: "kept",
        why: "What the model writes holds more of what was sent than what the original writes.",
        applies: keeps_more,
    },
    Reason {
        name: "unwritten",
        why: "Inside of a transaction the original reads back from memory what it never wrote.",
        applies: is_unwritten,
    },
    Reason {
        name: "unread",
        why: "The original does not read a line that HAProxy accepts: a quoted value, a time with a unit, `errorloc`, \
              `ignore-persist` …; the model reads all that the original reads, and it.",
        applies: |difference| difference.read.as_ref().is_some_and(|(theirs, ours)| contains(ours, theirs)),
    },
    Reason {
        name: "dropped",
        why: "The original reads a part of a line and drops the rest; the model keeps the whole line as text.",
        applies: drops_words,
    },
    Reason {
        name: "variable",
        why: "A section that expands a variable whose value is not known is kept as text.",
        applies: |difference| difference.recorded.iter().any(|line| line.contains("${")),
    },
    Reason {
        name: "vanished",
        why: "The original accepts a value and writes nothing of it; the model says that there is no line for it.",
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
        applies: |difference| matches!(&difference.text, Some((_, Err(ModelError::WrongType { .. })))),
    },
    Reason {
        name: "tls-versions",
        why: "The original ignores `no_tlsv10` and its like on a server, and writes `no-sslv3` twice.",
        applies: differs_in_tls_versions,
    },
    Reason {
        name: "gpt-arguments",
        why: "The original writes and reads the arguments of `sc-set-gpt` in the wrong order: HAProxy has the index first.",
        applies: |difference| difference.recorded.iter().any(|line| line.contains("sc-set-gpt(")),
    },
    Reason {
        name: "set-query",
        why: "The format of `set-query`, and in 3.0 of `set-uri`, is in `hdr_format` for the original, and not in the \
              property that the schema has for it.",
        applies: |difference| {
            difference.recorded.iter().any(|line| line.contains("set-query ") || line.contains("set-uri "))
        },
    },
    Reason {
        name: "seconds",
        why: "A time without unit is in seconds in some directives: the original writes and reads milliseconds there.",
        applies: is_in_seconds,
    },
    Reason {
        name: "quotes",
        why: "The original sometimes keeps the quotes of a word and sometimes not; to HAProxy it is the same word.",
        applies: |difference| {
            difference.read.as_ref().is_some_and(|(theirs, ours)| unquoted(theirs) == unquoted(ours))
        },
    },
    Reason {
        name: "twice",
        why: "The original writes a line twice.",
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
        applies: |difference| {
            difference.recorded.iter().any(|line| line.contains("no-tls-tickets tls-tickets"))
        },
    },
    Reason {
        name: "gpt-value",
        why: "The original does not write the value of `sc-set-gpt0` in a `tcp-request`, nor that of some `set-var-fmt`.",
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
        applies: |difference| has_nothing(&difference.sent) || has_bare_lines(difference),
    },
    Reason {
        name: "quoted",
        why: "The original writes a text with a blank, a quote or a # as it is, so that HAProxy sees other words; the \
              model puts it in quotes.",
        applies: is_quoted,
    },
    Reason {
        name: "bandwidth-limit",
        why: "Up to 3.1 the original writes `limit` and `period` without a value where none is given.",
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
        applies: is_several_words,
    },
];

/// Collects what some JSON says: its texts and numbers, as text.
fn leaves(json: &Json, into: &mut Vec<String>) {
    match json {
        Json::String(text) => into.push(text.clone()),
        Json::Number(number) if number.as_i64() == Some(0) => {}
        Json::Number(number) => into.push(number.to_string()),
        Json::Array(values) => values.iter().for_each(|value| leaves(value, into)),
        Json::Object(properties) => properties.values().for_each(|value| leaves(value, into)),
        Json::Null | Json::Bool(_) => {}
    }
}

/// Counts what some JSON says that some lines say, too.
fn stated_count(json: &Json, lines: &[String]) -> usize {
    let mut all = Vec::new();
    leaves(json, &mut all);
    let decoded = |line: &String| split(line).map_or_else(|| line.clone(), |words| words.join(" "));
    let text = lines.iter().map(decoded).chain(lines.iter().cloned()).collect::<Vec<_>>().join("\n");
    let parts: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let number = |leaf: &str| leaf.bytes().all(|byte| byte.is_ascii_digit());
    all.iter()
        .filter(
            |leaf| if number(leaf) { parts.contains(&leaf.as_str()) } else { text.contains(leaf.as_str()) },
        )
        .count()
}

/// Returns whether our text says more of what was sent.
fn keeps_more(difference: &Difference) -> bool {
    matches!(&difference.text, Some((theirs, Ok(ours))) if stated_count(&difference.sent, ours) > stated_count(&difference.sent, theirs))
}

/// Returns whether the original reads back what its text does not say, and the model no more than that.
fn is_unwritten(difference: &Difference) -> bool {
    let Some((theirs, ours)) = &difference.read else { return false };
    let count = |json: &Json| {
        let mut all = Vec::new();
        leaves(json, &mut all);
        all.len()
    };
    difference.kind == crate::Kind::Model
        && !ours.is_null()
        && stated_count(theirs, &difference.recorded) < count(theirs)
        && contains(theirs, ours)
}

/// Returns whether one JSON holds all that another does.
fn contains(whole: &Json, part: &Json) -> bool {
    match (whole, part) {
        (Json::Object(whole), Json::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| contains(whole, part)))
        }
        (Json::Array(whole), Json::Array(part)) => {
            part.len() <= whole.len()
                && part.iter().all(|part| whole.iter().any(|whole| contains(whole, part)))
        }
        (_, Json::Null) => true,
        (whole, part) => whole == part,
    }
}

/// Decodes each text.
fn unquoted(json: &Json) -> Json {
    match json {
        Json::String(text) => Json::from(split(text).map_or_else(|| text.clone(), |words| words.join(" "))),
        Json::Array(values) => Json::Array(values.iter().map(unquoted).collect()),
        Json::Object(properties) => {
            Json::Object(properties.iter().map(|(name, value)| (name.clone(), unquoted(value))).collect())
        }
        json => json.clone(),
    }
}

/// Returns whether all that differs are times that one side takes for seconds and the other for milliseconds.
fn is_in_seconds(difference: &Difference) -> bool {
    fn read(theirs: &Json, ours: &Json) -> bool {
        match (theirs, ours) {
            _ if theirs == ours => true,
            (Json::Number(theirs), Json::Number(ours)) => {
                theirs.as_i64().zip(ours.as_i64()).is_some_and(|(theirs, ours)| theirs * 1000 == ours)
            }
            (Json::Object(theirs), Json::Object(ours)) => {
                theirs.len() == ours.len()
                    && theirs
                        .iter()
                        .all(|(name, theirs)| ours.get(name).is_some_and(|ours| read(theirs, ours)))
            }
            (Json::Array(theirs), Json::Array(ours)) => {
                theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(theirs, ours)| read(theirs, ours))
            }
            _ => false,
        }
    }
    let written = |(theirs, ours): (&str, &str)| {
        theirs == ours
            || theirs.parse().is_ok_and(|milliseconds: i64| read_time(ours, 1) == Some(milliseconds))
    };
    let text = match &difference.text {
        None => true,
        Some((_, Err(_))) => false,
        Some((theirs, Ok(ours))) => {
            let (theirs, ours) = (theirs.join(" "), ours.join(" "));
            let (theirs, ours): (Vec<_>, Vec<_>) =
                (theirs.split_whitespace().collect(), ours.split_whitespace().collect());
            theirs.len() == ours.len() && theirs.into_iter().zip(ours).all(written)
        }
    };
    text && difference.read.as_ref().is_none_or(|(theirs, ours)| read(theirs, ours))
}

/// Returns whether each line that the model keeps as text has a word that is nowhere in what the original reads.
fn drops_words(difference: &Difference) -> bool {
    let Some((theirs, ours)) = &difference.read else { return false };
    let (mut cut, mut others) = (0, 0);
    differing_pairs(theirs, ours, &mut |theirs, ours| match (theirs, ours) {
        (Json::String(theirs), Json::String(ours)) if ours.starts_with(&format!("{theirs} ")) => cut += 1,
        _ => others += 1,
    });
    if cut > 0 && others == 0 {
        return true;
    }
    !difference.unmodelled.is_empty()
        && difference.unmodelled.iter().all(|line| is_cut(difference, line))
        && contains(theirs, ours)
}

/// Returns whether HAProxy refuses the text, and all that the model keeps as text are lines that `check` blames, or of which the
/// original drops a part.
fn is_blamed(difference: &Difference) -> bool {
    let is_explained = |line: &String| difference.blamed.contains(line) || is_cut(difference, line);
    difference.accepted == Some(false)
        && !difference.blamed.is_empty()
        && difference.unmodelled.iter().all(is_explained)
}

/// Returns whether something stands right after the parentheses of `usesrc hdr_ip(…)`.
fn has_text_after_hdr_ip(line: &str) -> bool {
    let after = line.split_once("usesrc hdr_ip(").and_then(|(_, rest)| rest.split_once(')'));
    after.is_some_and(|(_, after)| after.starts_with(|c: char| !c.is_whitespace()))
}

/// Returns whether a line has a word that is nowhere in what the original reads.
fn is_cut(difference: &Difference, line: &str) -> bool {
    let Some((theirs, _)) = &difference.read else { return false };
    let mut read = Vec::new();
    leaves(theirs, &mut read);
    let words = split(line).unwrap_or_default();
    let mut rest = words.iter().skip(1).flat_map(|word| word.split(|c: char| !c.is_ascii_alphanumeric()));
    rest.any(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic()) && !read.iter().any(|leaf| leaf.contains(part))
    })
}

/// Returns whether two sides say the same of everything that both say something of.
fn agree_on_what_both_read(theirs: &Json, ours: &Json) -> bool {
    match (theirs, ours) {
        (Json::Object(theirs), Json::Object(ours)) => theirs
            .iter()
            .all(|(name, theirs)| ours.get(name).is_none_or(|ours| agree_on_what_both_read(theirs, ours))),
        (Json::Array(theirs), Json::Array(ours)) if theirs.len() == ours.len() => {
            theirs.iter().zip(ours).all(|(theirs, ours)| agree_on_what_both_read(theirs, ours))
        }
        (Json::Array(_), Json::Array(_)) => contains(theirs, ours) || contains(ours, theirs),
        (theirs, ours) => theirs == ours,
    }
}

/// Returns whether both write the same but for words that forbid versions of TLS.
fn differs_in_tls_versions(difference: &Difference) -> bool {
    let Some((theirs, Ok(ours))) = &difference.text else { return false };
    let others = |lines: &[String]| {
        let words = lines.iter().flat_map(|line| line.split_whitespace());
        words
            .filter(|word| !word.starts_with("no-tlsv1") && *word != "no-sslv3")
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    others(theirs) == others(ours)
}

/// Returns whether all that the original writes and the model does not are keywords without a value.
fn has_bare_lines(difference: &Difference) -> bool {
    let Some((theirs, Ok(ours))) = &difference.text else { return false };
    let extra: Vec<&String> = theirs.iter().filter(|line| !ours.contains(line)).collect();
    extra.iter().all(|line| line.split_whitespace().count() == 1) && extra.len() + ours.len() == theirs.len()
}

/// Returns whether some JSON holds something that says nothing.
fn has_nothing(json: &Json) -> bool {
    let says_nothing = |json: &Json| match json {
        Json::String(text) => text.is_empty(),
        Json::Object(properties) => properties.is_empty(),
        _ => false,
    };
    match json {
        Json::Array(values) => values.iter().any(|value| says_nothing(value) || has_nothing(value)),
        Json::Object(properties) => {
            properties.values().any(|value| says_nothing(value) || has_nothing(value))
        }
        _ => false,
    }
}

/// Returns whether both write the same words, but for quotes that only one puts.
fn is_quoted(difference: &Difference) -> bool {
    let Some((theirs, Ok(ours))) = &difference.text else { return false };
    let same = |(ours, theirs): (&String, &String)| {
        let words: Vec<&str> = theirs.split_whitespace().collect();
        let decoded = split(ours).unwrap_or_default();
        ours == theirs
            || decoded.join(" ").split_whitespace().collect::<Vec<_>>() == words
            || split(theirs).is_some_and(|theirs| theirs == decoded)
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(same)
}

/// Returns whether what the original reads holds a text that is not the one word it should be.
fn is_several_words(difference: &Difference) -> bool {
    let Some((theirs, ours)) = &difference.read else { return false };
    let mut found = false;
    differing_texts(theirs, ours, "", &mut |name, text| {
        found |= split(text).is_none()
            || (text.contains(' ') && one_word(text) != text && !directives().takes_words(name));
    });
    found
}

/// Calls a function for each pair of values that differ at the same place.
fn differing_pairs<'j>(theirs: &'j Json, ours: &'j Json, each: &mut dyn FnMut(&'j Json, &'j Json)) {
    match (theirs, ours) {
        _ if theirs == ours => {}
        (Json::Object(theirs), Json::Object(ours)) if theirs.len() == ours.len() => {
            for (name, theirs) in theirs {
                differing_pairs(theirs, ours.get(name).unwrap_or(&Json::Null), each);
            }
        }
        (Json::Array(theirs), Json::Array(ours)) if theirs.len() == ours.len() => {
            theirs.iter().zip(ours).for_each(|(theirs, ours)| differing_pairs(theirs, ours, each));
        }
        (theirs, ours) => each(theirs, ours),
    }
}

/// Calls a function for each text, with the name of its property, that is in one JSON and not at the same place of another.
fn differing_texts<'j>(theirs: &'j Json, ours: &Json, name: &'j str, each: &mut dyn FnMut(&'j str, &'j str)) {
    match theirs {
        _ if theirs == ours => {}
        Json::String(text) => each(name, text),
        Json::Array(values) => {
            for (position, value) in values.iter().enumerate() {
                differing_texts(value, ours.get(position).unwrap_or(&Json::Null), name, each);
            }
        }
        Json::Object(properties) => {
            for (name, value) in properties {
                differing_texts(value, ours.get(name).unwrap_or(&Json::Null), name, each);
            }
        }
        _ => {}
    }
}
