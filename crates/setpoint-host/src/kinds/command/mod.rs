//! Commands that bring something into a state.

mod configurator;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use setpoint_graph::{Attributes, Deps, Item, Kind, Name};

use super::{HostKind, Nature};
use crate::host::Host;
use crate::item::{Because, Dependence, Invocation, Need, RootPath, Wait, environment, need};
use crate::manifest::{Build, Section, Type, field, fields};

pub use configurator::Commands;

/// A state that commands bring about: `check` asks for it, `apply` makes it, `undo` takes it back.
///
/// Where `check` already succeeds, `apply` is not run, and `undo` will not be: what was there before is not
/// Setpoint's to take away. Without `check`, `apply` counts as done once it succeeded. When something that `redo_on`
/// names is changed, `apply` is run again; `undo` is only run when the command is not wanted any more.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// What it is called.
    pub name: Name,
    /// Succeeds where the state is there; must change nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Invocation>,
    /// Brings the state about.
    pub apply: Invocation,
    /// Takes the state back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Invocation>,
    /// Variables that are added to the environment of all three.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Whether the values of the variables must not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// The directory they run in; none for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<RootPath>,
    /// How long `check` may take.
    pub check_timeout: Wait,
    /// How long `apply` may take.
    pub apply_timeout: Wait,
    /// How long `undo` may take.
    pub undo_timeout: Wait,
    /// What asks for the state and takes it back, as they are written.
    #[serde(default, skip_serializing_if = "CommandTexts::is_empty")]
    pub written: CommandTexts,
    /// What it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
}

/// What asks for the state of a command and takes it back, with the references to items as they are written; none where there are
/// no such references. Two commands that differ in nothing else do not differ.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CommandTexts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<Invocation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    undo: Option<Invocation>,
}

impl CommandTexts {
    fn is_empty(&self) -> bool {
        self.check.is_none() && self.undo.is_none()
    }
}

impl PartialEq for CommandTexts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for CommandTexts {}

impl Command {
    /// The kind of all commands.
    pub(crate) const KIND_TEXT: &'static str = "command";

    /// Returns whether another state is meant: both what asks for it and what takes it back are other ones. How they are run, and
    /// where what they refer to is, says nothing about that.
    fn is_of_another_state(&self, new: &Self) -> bool {
        let is_another =
            |old: Option<&Invocation>,
             new: Option<&Invocation>,
             was: Option<&Invocation>,
             is: Option<&Invocation>| { old != new && (was.is_none() || was != is) };
        let (was, is) = (&self.written, &new.written);
        is_another(self.check.as_ref(), new.check.as_ref(), was.check.as_ref(), is.check.as_ref())
            && is_another(self.undo.as_ref(), new.undo.as_ref(), was.undo.as_ref(), is.undo.as_ref())
    }

    fn shown_env(&self) -> environment::Shown<'_> {
        environment::Shown { variables: &self.env, sensitive: self.sensitive }
    }
}

impl fmt::Debug for Command {
    /// Never shows values that are sensitive.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Command");
        debug.field("name", &self.name).field("check", &self.check).field("apply", &self.apply);
        debug.field("undo", &self.undo);
        debug.field("env", &self.shown_env());
        debug.field("cwd", &self.cwd).field("needs", &self.needs).finish_non_exhaustive()
    }
}

impl Item for Command {
    const KIND: Kind = Kind::from_static(Self::KIND_TEXT);

    fn name(&self) -> Name {
        self.name.clone()
    }

    fn dependencies(&self, deps: &mut Deps) {
        need::derive(&self.needs, deps);
    }

    fn attributes(&self, attributes: &mut Attributes) {
        if let Some(check) = &self.check {
            attributes.add("check", check);
        }
        attributes.add("apply", &self.apply);
        if let Some(undo) = &self.undo {
            attributes.add("undo", undo);
        }
        self.shown_env().add_to(attributes);
        if let Some(cwd) = &self.cwd {
            attributes.add("cwd", cwd);
        }
        attributes.add("check_timeout", self.check_timeout);
        attributes.add("apply_timeout", self.apply_timeout);
        attributes.add("undo_timeout", self.undo_timeout);
    }
}

impl HostKind for Command {
    const SECTION: Section = Section {
        key: "commands",
        kind: Self::KIND_TEXT,
        about: "States that commands bring about, by name.",
        nature: Nature::Activity,
        references: Dependence::After,
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
            fields::ENV,
            fields::SECRET_ENV,
            fields::CWD,
            field("check_timeout", Type::Wait, "How long `check` may take; by default 30s."),
            field("apply_timeout", Type::Wait, "How long `apply` may take; by default 5m."),
            field("undo_timeout", Type::Wait, "How long `undo` may take; by default 5m."),
            fields::AFTER,
            fields::PREVENT,
        ],
        referable: &["name"],
    };

    type Configurator = Commands;

    fn configurator(host: &Host) -> Self::Configurator {
        Commands::new(host)
    }

    fn declare(build: &mut Build<'_, '_, '_>, _: Option<RootPath>) -> Option<Self> {
        let (check, apply, undo) = (build.run("check"), build.run("apply"), build.run("undo"));
        let written = CommandTexts {
            check: build.run_as_written("check", check.as_ref()),
            undo: build.run_as_written("undo", undo.as_ref()),
        };
        let (env, cwd) = (build.environment(), build.path_field("cwd"));
        if let Some(cwd) = &cwd {
            build.needs_at(cwd, Because::Inside);
        }
        Some(Self {
            name: build.name(),
            check,
            apply: apply?,
            undo,
            env,
            sensitive: build.is_set("sensitive"),
            cwd,
            check_timeout: build.wait("check_timeout", Wait::from_millis(30_000)),
            apply_timeout: build.wait("apply_timeout", Wait::from_millis(300_000)),
            undo_timeout: build.wait("undo_timeout", Wait::from_millis(300_000)),
            written,
            needs: build.take_needs(),
        })
    }

    fn needs(&self) -> &[Need] {
        &self.needs
    }

    fn needs_mut(&mut self) -> &mut Vec<Need> {
        &mut self.needs
    }
}
