//! What becomes of objects that HAProxy refuses.
//!
//! The model refuses them, or writes something else for them that HAProxy accepts. What is left is what a configuration
//! alone does not show: whether a file is there, a name is borne by something, a library knows a word. HAProxy says so in
//! a message by which it is recognised.

use std::collections::BTreeMap;

use setpoint_haproxy::model::Version;

use crate::ModelCase;
use crate::case::same_lines;

/// Something that only HAProxy can judge.
#[derive(Debug, PartialEq, Eq)]
pub struct Judgement {
    /// A short name.
    pub name: &'static str,
    /// Why the model can't know it.
    pub why: &'static str,
    /// How it is recognised, by one of these.
    signs: &'static [Sign],
}

/// How it is recognised what a message of HAProxy's is about.
#[derive(Debug, PartialEq, Eq)]
struct Sign {
    /// What stands in the lines, if that matters.
    about: Option<&'static str>,
    /// What the message says, one of these.
    says: &'static [&'static str],
}

impl Sign {
    const fn says(says: &'static [&'static str]) -> Self {
        Self { about: None, says }
    }

    const fn about(about: &'static str, says: &'static [&'static str]) -> Self {
        Self { about: Some(about), says }
    }

    fn is_in(&self, message: &str, lines: &[String]) -> bool {
        self.says.iter().any(|part| message.contains(part))
            && self.about.is_none_or(|about| lines.iter().any(|line| line.contains(about)))
    }
}

impl Judgement {
    /// Finds what a message of HAProxy's is about, if it is something that only HAProxy can judge.
    ///
    /// ```
    /// use setpoint_conformance::Judgement;
    ///
    /// let lines = ["  use_backend b if is_x".to_owned()];
    /// let found = Judgement::of("error detected while parsing switching rule : no such ACL : 'is_x'.", &lines);
    /// assert_eq!(found.unwrap().name, "acl");
    /// assert!(Judgement::of("'weight' : expects an integer", &lines).is_none());
    /// ```
    pub fn of(message: &str, lines: &[String]) -> Option<&'static Self> {
        ONLY_HAPROXY.iter().find(|row| row.signs.iter().any(|sign| sign.is_in(message, lines)))
    }
}

/// What only HAProxy can judge. The first that is recognised is counted.
pub const ONLY_HAPROXY: &[Judgement] = &[
    Judgement {
        name: "acl",
        why: "A condition names an ACL, which may stand anywhere in the section.",
        signs: &[Sign::says(&["no such ACL"])],
    },
    Judgement {
        name: "variable",
        why: "A line expands a variable of HAProxy's environment, which is empty there.",
        signs: &[Sign::about("\"${", &["is empty and marks the end", " expects "])],
    },
    Judgement {
        name: "name",
        why: "A line names something that another section or line has to give: a backend, a table, a filter, a server.",
        signs: &[Sign::says(&[
            "unable to find",
            "unknown http-errors section",
            "doesn't exist",
            "no such user",
            "no such group",
            "do-log action: profile",
            "for do-resolve action",
            "fcgi-app '",
            "section exists",
        ])],
    },
    Judgement {
        name: "file",
        why: "A line names a file that is not there, or that does not hold what it should.",
        signs: &[Sign::says(&[
            "No such file or directory",
            "open the file",
            "opening file",
            "failed to open file",
            "cannot be read or parsed",
            "no certificate or crl found",
            "unable to load",
            "unable to decode base64 key",
            "expects a directory path",
            "at line 1",
            "No SPOE agent found",
        ])],
    },
    Judgement {
        name: "resolution",
        why: "Whether a name has an address is known only where it is looked up.",
        signs: &[Sign::says(&[
            "could not resolve address",
            "no method found to resolve address",
            "invalid address",
            "is not a valid IPv4 or IPv6 address",
        ])],
    },
    Judgement {
        name: "machine",
        why: "A line names something that the machine has to have: a user, a group, a network namespace, a file descriptor.",
        signs: &[Sign::says(&[
            "Cannot open namespace",
            "unknown user name",
            "unknown group name",
            "cannot find user id",
            "cannot find group id",
            "cannot use file descriptor",
            "can't create socket",
        ])],
    },
    Judgement {
        name: "tls",
        why: "Ciphers, curves, algorithms and versions of TLS are those of the library that HAProxy was built with.",
        signs: &[
            Sign::says(&[
                "unable to set SSL",
                "unable to set TLS",
                "unable to set elliptic named curve",
                "unsupported curves",
                "all SSL/TLS versions are disabled",
                "this SSL library does not support",
                "unknown provider",
            ]),
            Sign::about("ssl-propquery ", &["(null)"]),
        ],
    },
    Judgement {
        name: "build",
        why: "A keyword is known only to a HAProxy that was built with a certain library.",
        signs: &[Sign::says(&[
            "unknown keyword '51degrees",
            "unknown keyword 'deviceatlas",
            "unknown keyword 'wurfl",
            "unknown keyword 'tune.zlib",
            "unknown keyword 'profiling.memory'",
            "unknown keyword 'ssl-engine'",
            "(built without",
        ])],
    },
    Judgement {
        name: "lua",
        why: "What Lua registers, and how many arguments it takes, is in files of Lua.",
        signs: &[Sign::about(" lua.", &["Lua", " expects ", " only accepts "])],
    },
    Judgement {
        name: "allowed",
        why: "The global section has to allow what is experimental or deprecated.",
        signs: &[
            Sign::says(&["is experimental, must be allowed", "expose-experimental-directives"]),
            // HAProxy 3.2 says so of a `program` only in a warning, and the notice before it is what was recorded.
            Sign::about("program ", &["NOTICE: haproxy version is"]),
        ],
    },
    Judgement {
        name: "started",
        why: "HAProxy has to be started as master and worker.",
        signs: &[Sign::says(&["master worker mode", "master-worker mode"])],
    },
    Judgement {
        name: "defaults",
        why: "What holds for others is looked at only when something uses it.",
        signs: &[Sign::about(
            "default-server ",
            &["error detected while parsing sni", "unable to enable checks and tracking"],
        )],
    },
    Judgement {
        name: "mode",
        why: "The mode of a proxy may come from its `defaults`, and says which protocols and features it can have.",
        signs: &[Sign::says(&["in non-HTTP mode", "is not usable for", "uses an incompatible MUX protocol"])],
    },
    Judgement {
        name: "beside",
        why: "A line needs another one beside it, or contradicts one that stands somewhere else.",
        signs: &[Sign::says(&[
            "line is forbidden",
            "require an explicit filter declaration",
            "no CA file specified",
            "no FCGI server found",
            "no docroot configured",
            "can not be higher than",
            "can not be lower than",
        ])],
    },
    Judgement {
        name: "room",
        why: "Whether HAProxy's answers fit into buffers that were made small depends on these answers.",
        signs: &[Sign::says(&["unable to parse headers", "invalid default message"])],
    },
    Judgement {
        name: "version",
        why: "There was no HAProxy 3.3 at hand: what it knows first was judged by 3.2.",
        signs: &[Sign::says(&["unknown keyword 'ktls'"])],
    },
];

/// What becomes of an object that HAProxy refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The model refuses it, too.
    Refuses,
    /// The model writes something else for it, which HAProxy was not asked about when the case was recorded.
    Otherwise,
    /// The model writes the same, and only HAProxy can know that it is wrong.
    OnlyHaproxy(&'static Judgement),
    /// The model writes the same, and should not.
    Unexplained,
}

/// Counts of what becomes of objects that HAProxy refuses.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    /// All of them.
    pub cases: usize,
    /// Those that the model refuses.
    pub refuses: usize,
    /// Those for which the model writes something else.
    pub otherwise: usize,
    /// Those that only HAProxy can judge, by the name of the row that says why.
    pub only_haproxy: BTreeMap<&'static str, usize>,
    /// Those that the model writes and should not: version, case, text, and what HAProxy says.
    pub unexplained: Vec<String>,
}

impl Refused {
    pub(crate) fn add(&mut self, case: &ModelCase, version: Version, verdict: Verdict) {
        self.cases += 1;
        match verdict {
            Verdict::Refuses => self.refuses += 1,
            Verdict::Otherwise => self.otherwise += 1,
            Verdict::OnlyHaproxy(judgement) => *self.only_haproxy.entry(judgement.name).or_default() += 1,
            Verdict::Unexplained => {
                let text = case.text.as_deref().unwrap_or_default().join("\n");
                let message = case.haproxy_error.as_deref().unwrap_or_default();
                self.unexplained.push(format!("{version} {}\n{text}\n  {message}", case.case));
            }
        }
    }
}

impl ModelCase {
    /// Returns what becomes of an object whose text HAProxy refuses; `None` for any other.
    pub fn verdict(&self, version: Version) -> Option<Verdict> {
        if self.haproxy_ok != Some(false) || self.is_accepted() || self.status >= 300 {
            return None;
        }
        let recorded = self.text.as_ref()?;
        Some(match self.write_as_recorded(version)? {
            Err(_) => Verdict::Refuses,
            Ok(ours) if !same_lines(&ours, recorded) => Verdict::Otherwise,
            Ok(ours) => match Judgement::of(self.haproxy_error.as_deref().unwrap_or_default(), &ours) {
                Some(judgement) => Verdict::OnlyHaproxy(judgement),
                None => Verdict::Unexplained,
            },
        })
    }
}
