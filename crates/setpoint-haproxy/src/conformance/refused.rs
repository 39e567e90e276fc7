//! What becomes of objects that HAProxy refuses.
//!
//! The model refuses them, or writes something else for them that HAProxy accepts. What is left is what a configuration
//! alone does not show: whether a file is there, a name is borne by something, a library knows a word. HAProxy says so in
//! a message by which it is recognised.

use std::collections::BTreeMap;

use super::ModelCase;
use super::case::same_lines;
use crate::model::Version;

/// Something that only HAProxy can judge.
#[derive(Debug, PartialEq, Eq)]
pub struct Judgement {
    /// A short name.
    pub name: &'static str,
    /// Why the model can't know it.
    pub why: &'static str,
    /// What HAProxy's messages of this kind say, one of these.
    says: &'static [&'static str],
    /// What the lines are about, one of these; anything if there are none.
    about: &'static [&'static str],
}

impl Judgement {
    /// Finds what a message of HAProxy's is about, if it is something that only HAProxy can judge.
    ///
    /// ```
    /// use setpoint_haproxy::conformance::Judgement;
    ///
    /// let lines = ["  use_backend b if is_x".to_owned()];
    /// let found = Judgement::of("error detected while parsing switching rule : no such ACL : 'is_x'.", &lines);
    /// assert_eq!(found.unwrap().name, "acl");
    /// assert!(Judgement::of("'weight' : expects an integer", &lines).is_none());
    /// ```
    pub fn of(message: &str, lines: &[String]) -> Option<&'static Self> {
        let is_said = |row: &&Self| row.says.iter().any(|part| message.contains(part));
        let is_about = |row: &&Self| {
            row.about.is_empty() || row.about.iter().any(|part| lines.iter().any(|line| line.contains(part)))
        };
        ONLY_HAPROXY.iter().find(|row| is_said(row) && is_about(row))
    }
}

/// What only HAProxy can judge. The first that is recognised is counted.
pub const ONLY_HAPROXY: &[Judgement] = &[
    Judgement {
        name: "acl",
        why: "A condition names an ACL, which may stand anywhere in the section.",
        says: &["no such ACL"],
        about: &[],
    },
    Judgement {
        name: "variable",
        why: "A line expands a variable of HAProxy's environment, which is empty there.",
        says: &["is empty and marks the end", " expects "],
        about: &["\"${"],
    },
    Judgement {
        name: "name",
        why: "A line names something that another section or line has to give: a backend, a table, a filter, a server.",
        says: &[
            "unable to find",
            "unknown http-errors section",
            "doesn't exist",
            "no such user",
            "no such group",
            "do-log action: profile",
            "for do-resolve action",
            "fcgi-app '",
            "section exists",
        ],
        about: &[],
    },
    Judgement {
        name: "file",
        why: "A line names a file that is not there, or that does not hold what it should.",
        says: &[
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
        ],
        about: &[],
    },
    Judgement {
        name: "resolution",
        why: "Whether a name has an address is known only where it is looked up.",
        says: &[
            "could not resolve address",
            "no method found to resolve address",
            "invalid address",
            "is not a valid IPv4 or IPv6 address",
        ],
        about: &[],
    },
    Judgement {
        name: "machine",
        why: "A line names something that the machine has to have: a user, a group, a network namespace, a file descriptor.",
        says: &[
            "Cannot open namespace",
            "unknown user name",
            "unknown group name",
            "cannot find user id",
            "cannot find group id",
            "cannot use file descriptor",
            "can't create socket",
        ],
        about: &[],
    },
    Judgement {
        name: "tls",
        why: "Ciphers, curves, algorithms and versions of TLS are those of the library that HAProxy was built with.",
        says: &[
            "unable to set SSL",
            "unable to set TLS",
            "unable to set elliptic named curve",
            "unsupported curves",
            "all SSL/TLS versions are disabled",
            "this SSL library does not support",
            "unknown provider",
        ],
        about: &[],
    },
    Judgement {
        name: "tls",
        why: "Ciphers, curves, algorithms and versions of TLS are those of the library that HAProxy was built with.",
        says: &["(null)"],
        about: &["ssl-propquery "],
    },
    Judgement {
        name: "build",
        why: "A keyword is known only to a HAProxy that was built with a certain library.",
        says: &[
            "unknown keyword '51degrees",
            "unknown keyword 'deviceatlas",
            "unknown keyword 'wurfl",
            "unknown keyword 'tune.zlib",
            "unknown keyword 'profiling.memory'",
            "unknown keyword 'ssl-engine'",
            "(built without",
        ],
        about: &[],
    },
    Judgement {
        name: "lua",
        why: "What Lua registers, and how many arguments it takes, is in files of Lua.",
        says: &["Lua", " expects ", " only accepts "],
        about: &[" lua."],
    },
    Judgement {
        name: "allowed",
        why: "The global section has to allow what is experimental or deprecated.",
        says: &["is experimental, must be allowed", "expose-experimental-directives"],
        about: &[],
    },
    Judgement {
        name: "allowed",
        why: "The global section has to allow what is experimental or deprecated.",
        // HAProxy 3.2 says so of a `program` only in a warning, and the notice before it is what was recorded.
        says: &["NOTICE: haproxy version is"],
        about: &["program "],
    },
    Judgement {
        name: "started",
        why: "HAProxy has to be started as master and worker.",
        says: &["master worker mode", "master-worker mode"],
        about: &[],
    },
    Judgement {
        name: "defaults",
        why: "What holds for others is looked at only when something uses it.",
        says: &["error detected while parsing sni", "unable to enable checks and tracking"],
        about: &["default-server "],
    },
    Judgement {
        name: "mode",
        why: "The mode of a proxy may come from its `defaults`, and says which protocols and features it can have.",
        says: &["in non-HTTP mode", "is not usable for", "uses an incompatible MUX protocol"],
        about: &[],
    },
    Judgement {
        name: "beside",
        why: "A line needs another one beside it, or contradicts one that stands somewhere else.",
        says: &[
            "line is forbidden",
            "require an explicit filter declaration",
            "no CA file specified",
            "no FCGI server found",
            "no docroot configured",
            "can not be higher than",
            "can not be lower than",
        ],
        about: &[],
    },
    Judgement {
        name: "room",
        why: "Whether HAProxy's answers fit into buffers that were made small depends on these answers.",
        says: &["unable to parse headers", "invalid default message"],
        about: &[],
    },
    Judgement {
        name: "version",
        why: "There was no HAProxy 3.3 at hand: what it knows first was judged by 3.2.",
        says: &["unknown keyword 'ktls'"],
        about: &[],
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
    pub(super) fn add(&mut self, case: &ModelCase, version: Version, verdict: Verdict) {
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
    /// Says what becomes of an object whose text HAProxy refuses; `None` for any other.
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
