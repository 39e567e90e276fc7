//! What a manifest may hold: the one table that the loader and the schema are made from.

use crate::item::Dependence;
use crate::kinds::{KINDS, Nature};

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
    /// A length of time that is more than none.
    Wait,
    /// A length of time, or none.
    Grace,
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
    /// What kind of thing its items are.
    pub(crate) nature: Nature,
    /// How its items depend on what they refer to and read, such as a file; on anything else they only come after it.
    pub(crate) references: Dependence,
    /// Fields that must be there.
    pub(crate) required: &'static [&'static str],
    /// Fields of which exactly one must be there; none if empty.
    pub(crate) one_of: &'static [&'static str],
    pub(crate) fields: &'static [Field],
    /// What `${kind.name.…}` can name.
    pub(crate) referable: &'static [&'static str],
}

pub(crate) const fn field(name: &'static str, kind: Type, about: &'static str) -> Field {
    Field { name, kind, about }
}

/// Fields that several kinds have.
pub(crate) mod fields {
    use super::{Field, Type, field};

    pub(crate) const PATH: Field = field(
        "path",
        Type::Text,
        "Where it is, below the root; by default the item's name. Another path is a rename on disk.",
    );
    pub(crate) const MODE: Field = field(
        "mode",
        Type::Mode,
        "The permission bits in octal, such as \"0750\"; by default 0755 when it is made, and then whatever they are.",
    );
    pub(crate) const FILE_MODE: Field = field(
        "mode",
        Type::Mode,
        "The permission bits in octal, such as \"0640\"; by default 0644 when it is made, 0600 if it is sensitive, and then \
         whatever they are.",
    );
    pub(crate) const OWNER: Field =
        field("owner", Type::Account, "The user it belongs to, by name or number.");
    pub(crate) const GROUP: Field =
        field("group", Type::Account, "The group it belongs to, by name or number.");
    pub(crate) const AFTER: Field = field(
        "after",
        Type::References,
        "Items that must be there first, as `kind.name`. What becomes of them later changes nothing.",
    );
    pub(crate) const PREVENT: Field =
        field("prevent_destroy", Type::Boolean, "Refuses every plan that would delete it.");
    pub(crate) const ADOPT: Field =
        field("adopt", Type::Boolean, "Takes over what is already there, and leaves it in the end.");
    pub(crate) const ENV: Field =
        field("env", Type::Environment, "Variables that are added to the environment.");
    pub(crate) const CWD: Field =
        field("cwd", Type::Text, "The directory it runs in, below the root; by default the root.");
    pub(crate) const SECRET_ENV: Field =
        field("sensitive", Type::Boolean, "Never shows the values of its environment variables.");
}

/// What `ready` holds.
pub(crate) const READY: &[Field] = &[
    field(
        "port",
        Type::Port,
        "It accepts connections; without a host, of this machine (127.0.0.1). A host is an address, or a name in \
         /etc/hosts: no name server is asked.",
    ),
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

impl Section {
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The sections of all kinds.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> + Clone {
        KINDS.iter().map(|kind| &kind.section)
    }

    /// The section of a kind.
    pub(crate) fn of_kind(kind: &str) -> Option<&'static Self> {
        Self::all().find(|section| section.kind == kind)
    }

    /// Returns whether its items are somewhere on disk.
    pub(crate) fn has_path(&self) -> bool {
        self.nature != Nature::Activity
    }
}
