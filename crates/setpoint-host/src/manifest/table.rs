//! What a manifest may hold: the one table that the loader and the schema are made from.

use crate::item::{Command, Directory, File, Process, Symlink};

/// What the value of a field must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// Text.
    Text,
    /// Text, or base64 with the tag `!!binary`.
    Content,
    /// `true` or `false`.
    Boolean,
    /// Octal digits.
    Mode,
    /// A name or a number.
    Account,
    /// A length of time.
    Wait,
    /// The name of a signal.
    Signal,
    /// A line for the shell, or a program with its arguments.
    Run,
    /// Items as `kind.name`.
    References,
    /// Text by name.
    Environment,
    /// Anything by name, for templates.
    Values,
    /// One of the conditions in [`READY`], and a time.
    Ready,
    /// The number of a port, or a host with one.
    Port,
}

/// A field of an item, or of the whole.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) about: &'static str,
}

/// A map of items of one kind.
#[derive(Debug)]
pub(crate) struct Section {
    /// The key of the map.
    pub(crate) key: &'static str,
    /// The kind of its items.
    pub(crate) kind: &'static str,
    pub(crate) about: &'static str,
    /// Fields that must be there.
    pub(crate) required: &'static [&'static str],
    /// Fields of which exactly one must be there; none if empty.
    pub(crate) one_of: &'static [&'static str],
    pub(crate) fields: &'static [Field],
    /// What `${kind.name.…}` can name.
    pub(crate) referable: &'static [&'static str],
}

const fn field(name: &'static str, kind: Type, about: &'static str) -> Field {
    Field { name, kind, about }
}

const PATH: Field = field(
    "path",
    Type::Text,
    "Where it is, below the root; by default the item's name. Another path is a rename on disk.",
);
const MODE: Field = field(
    "mode",
    Type::Mode,
    "The permission bits in octal, such as \"0750\"; by default 0755 when it is made, and then whatever they are.",
);
const FILE_MODE: Field = field(
    "mode",
    Type::Mode,
    "The permission bits in octal, such as \"0640\"; by default 0644 when it is made, 0600 if it is sensitive, and then \
     whatever they are.",
);
const OWNER: Field = field("owner", Type::Account, "The user it belongs to, by name or number.");
const GROUP: Field = field("group", Type::Account, "The group it belongs to, by name or number.");
const AFTER: Field = field(
    "after",
    Type::References,
    "Items that must be there first, as `kind.name`. What becomes of them later changes nothing.",
);
const PREVENT: Field = field("prevent_destroy", Type::Boolean, "Refuses every plan that would delete it.");
const ADOPT: Field =
    field("adopt", Type::Boolean, "Takes over what is already there, and leaves it in the end.");
const ENV: Field = field("env", Type::Environment, "Variables that are added to the environment.");
const CWD: Field = field("cwd", Type::Text, "The directory it runs in, below the root; by default the root.");
const SECRET_ENV: Field =
    field("sensitive", Type::Boolean, "Never shows the values of its environment variables.");

/// What `ready` holds.
pub(crate) const READY: &[Field] = &[
    field("port", Type::Port, "It accepts connections; without a host, of this machine (127.0.0.1)."),
    field(
        "file",
        Type::Text,
        "Something is at this path, below the root; whatever is there before it starts counts too.",
    ),
    field(
        "command",
        Type::Run,
        "It succeeds (exit 0), in the directory and with the environment of the process.",
    ),
    field(
        "log",
        Type::Text,
        "A line that the process has written to its log since it was started contains this text.",
    ),
    field("timeout", Type::Wait, "How long that may take, from when it was started; by default 30s."),
];
/// The fields of `ready` of which exactly one must be there.
pub(crate) const READY_ONE_OF: &[&str] = &["port", "file", "command", "log"];

/// The fields around the items.
pub(crate) const TOP: &[Field] = &[
    field("name", Type::Text, "What this set of items is called; by default the name of the directory."),
    field("root", Type::Text, "The directory that all paths are in; by default the one of the manifest."),
    field("values", Type::Values, "Values for all templates."),
];

/// The maps of items.
pub(crate) const SECTIONS: &[Section] = &[
    Section {
        key: "directories",
        kind: Directory::KIND_TEXT,
        about: "Directories by name.",
        required: &[],
        one_of: &[],
        fields: &[PATH, MODE, OWNER, GROUP, AFTER, PREVENT, ADOPT],
        referable: &["name", "path"],
    },
    Section {
        key: "files",
        kind: File::KIND_TEXT,
        about: "Regular files by name.",
        required: &[],
        one_of: &["content", "source", "template", "template_source"],
        fields: &[
            PATH,
            field("content", Type::Content, "What it holds, as it is; base64 with the tag `!!binary`."),
            field("source", Type::Text, "A file that it is a copy of, seen from the manifest."),
            field("template", Type::Text, "A template (Jinja) that gives what it holds."),
            field("template_source", Type::Text, "A file with the template, seen from the manifest."),
            field("values", Type::Values, "Values for the template, over those of the whole set."),
            field("sensitive", Type::Boolean, "Never shows what it holds."),
            FILE_MODE,
            OWNER,
            GROUP,
            AFTER,
            PREVENT,
            ADOPT,
        ],
        referable: &["name", "path", "sha256"],
    },
    Section {
        key: "symlinks",
        kind: Symlink::KIND_TEXT,
        about: "Symbolic links by name.",
        required: &["target"],
        one_of: &[],
        fields: &[
            PATH,
            field("target", Type::Text, "What it points to, as it is written into the link."),
            AFTER,
            PREVENT,
            ADOPT,
        ],
        referable: &["name", "path", "target"],
    },
    Section {
        key: "processes",
        kind: Process::KIND_TEXT,
        about: "Commands that are kept running, by name. They restart when a file or link that they refer to changes.",
        required: &["command"],
        one_of: &[],
        fields: &[
            field(
                "command",
                Type::Run,
                "What runs, in the foreground: a program with its arguments, or a line for the shell.",
            ),
            ENV,
            SECRET_ENV,
            CWD,
            field(
                "log",
                Type::Text,
                "The file its output is added to, below the root; by default one beside the state.",
            ),
            field(
                "ready",
                Type::Ready,
                "What it must show when it was started before what comes after it may begin; by default nothing.",
            ),
            field("stop_signal", Type::Signal, "The signal that asks it to end; by default TERM."),
            field(
                "stop_timeout",
                Type::Wait,
                "How long it may take to end before it is killed; by default 10s.",
            ),
            field(
                "restart_on",
                Type::References,
                "Items that it needs, and restarts with when they change, as `kind.name`.",
            ),
            AFTER,
            PREVENT,
        ],
        referable: &["name", "log"],
    },
    Section {
        key: "commands",
        kind: Command::KIND_TEXT,
        about: "States that commands bring about, by name.",
        required: &["apply"],
        one_of: &[],
        fields: &[
            field("check", Type::Run, "Succeeds (exit 0) where the state is there; must change nothing."),
            field("apply", Type::Run, "Brings the state about."),
            field(
                "undo",
                Type::Run,
                "Takes the state back when it is not wanted any more, and at no other time.",
            ),
            field(
                "redo_on",
                Type::References,
                "Items that it comes after, and is applied again with when they change, as `kind.name`: `apply` is \
                 run, whatever `check` says, and `undo` is not.",
            ),
            ENV,
            SECRET_ENV,
            CWD,
            field("check_timeout", Type::Wait, "How long `check` may take; by default 30s."),
            field("apply_timeout", Type::Wait, "How long `apply` may take; by default 5m."),
            field("undo_timeout", Type::Wait, "How long `undo` may take; by default 5m."),
            AFTER,
            PREVENT,
        ],
        referable: &["name"],
    },
];

impl Section {
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The section of a kind.
    pub(crate) fn of_kind(kind: &str) -> Option<&'static Self> {
        SECTIONS.iter().find(|section| section.kind == kind)
    }
}
