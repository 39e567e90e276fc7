//! What has to hold between the values of a line, by the names that rows use for it.

use super::accepted;
use super::limits::Complaint;
use super::units::read_number;
use crate::model::{Fields, ObjectKind, Value, Version};

/// What holds between the values of a line.
#[derive(Debug)]
pub(crate) struct Rule {
    name: &'static str,
    complain: fn(&Fields, RuleContext) -> Option<String>,
}

/// Where a line stands, and for which HAProxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RuleContext {
    pub(crate) section: Option<ObjectKind>,
    pub(crate) version: Version,
}

impl Rule {
    pub(crate) fn by_name(name: &str) -> Option<&'static Self> {
        RULES.iter().find(|rule| rule.name == name)
    }

    /// Returns what is wrong with the values of a line, if something is.
    pub(crate) fn complain(&self, fields: &Fields, rule_cx: RuleContext) -> Option<Complaint> {
        (self.complain)(fields, rule_cx).map(Complaint::new)
    }
}

fn get<'f>(fields: &'f Fields, path: &str) -> Option<&'f Value> {
    fields.iter().find(|(field, _)| field.path() == path).map(|(_, value)| value)
}

fn text<'f>(fields: &'f Fields, path: &str) -> &'f str {
    get(fields, path).and_then(Value::as_str).unwrap_or_default()
}

/// The rules, by the names that rows use.
const RULES: &[Rule] = &[
    Rule {
        name: "listener",
        complain: |fields, RuleContext { section, .. }| {
            let has =
                |name: &str| fields.iter().any(|(field, _)| field.path().rsplit('.').next() == Some(name));
            if has("nbconn") && !text(fields, "address").starts_with("rhttp@") {
                return Some("only a listener of reverse HTTP has a number of connections".to_owned());
            }
            (section == Some(ObjectKind::Peers) && has("port-range-end"))
                .then(|| "a peers section listens on one port".to_owned())
        },
    },
    Rule {
        name: "error-file",
        complain: |fields, RuleContext { version, .. }| {
            let has = |path: &str| get(fields, path).is_some();
            let by_file = match text(fields, "return_content_format") {
                "default-errorfiles" | "errorfiles" => true,
                // What is denied with a status alone is answered with a file.
                "" => has("deny_status") && !has("return_content_type") && !has("return_hdrs"),
                _ => false,
            };
            let status =
                get(fields, "deny_status").or_else(|| get(fields, "return_status_code"))?.as_int()?;
            let is_known = accepted().has_word("error-code", &status.to_string(), version);
            (by_file && !is_known)
                .then(|| format!("HAProxy {version} has no error file for the status {status}"))
        },
    },
    Rule {
        name: "length",
        complain: |fields, _| {
            let has_length =
                get(fields, "type_len").is_some() && !matches!(text(fields, "type"), "string" | "binary");
            has_length.then(|| "only keys that are a `string` or `binary` have a length".to_owned())
        },
    },
    Rule {
        name: "multiplexed",
        complain: |fields, _| {
            let many = get(fields, "max_reqs").and_then(Value::as_int).is_some_and(|count| count > 1);
            (many && text(fields, "mpxs_conns") != "enabled")
                .then(|| "more than one request at a time needs `option mpxs-conns`".to_owned())
        },
    },
    Rule {
        name: "challenge",
        complain: |fields, _| {
            let waits = match get(fields, "challenge_ready") {
                Some(Value::List(ready)) => ready.iter().any(|word| word.as_str() != Some("none")),
                _ => false,
            };
            (waits && matches!(text(fields, "challenge"), "" | "http-01"))
                .then(|| "the challenge `http-01` waits for nothing".to_owned())
        },
    },
    Rule {
        name: "case",
        complain: |fields, _| {
            (!text(fields, "from").eq_ignore_ascii_case(text(fields, "to")))
                .then(|| "the name of a header can be changed in nothing but its case".to_owned())
        },
    },
    Rule {
        name: "sample",
        complain: |fields, _| {
            let mut ranges: Vec<(u64, u64)> = Vec::new();
            let text = text(fields, "sample_range");
            for part in text.split(',').filter(|part| !part.is_empty()) {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                let (first, last) = (read_number(first)?, read_number(last)?);
                if first == 0 || last < first {
                    return Some(format!("`{part}` is no range of messages: these are counted from 1"));
                }
                ranges.push((first, last));
            }
            ranges.sort_unstable();
            let most = ranges.last().map(|(_, last)| *last)?;
            if ranges.windows(2).any(|pair| matches!(pair, [(_, last), (next, _)] if next <= last)) {
                return Some(format!("ranges of `{text}` overlap"));
            }
            let size = u64::try_from(get(fields, "sample_size")?.as_int()?).ok()?;
            (size < most).then(|| format!("there is no message {most} among {size}"))
        },
    },
    Rule {
        name: "bound",
        complain: |fields, _| {
            let size = |set: &str| -> Option<u64> {
                let part = |part: &str| {
                    let (first, last) = part.split_once('-').unwrap_or((part, part));
                    Some(read_number(last)?.checked_sub(read_number(first)?)? + 1)
                };
                set.split([',', ' ']).filter(|part| !part.is_empty()).map(part).sum()
            };
            let threads = text(fields, "process").strip_prefix("auto:")?;
            let (threads, cpus) = (size(threads)?, size(text(fields, "cpu_set"))?);
            (threads != cpus).then(|| format!("{threads} threads can't be bound to {cpus} CPUs, one to each"))
        },
    },
];
