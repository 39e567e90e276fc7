//! Processes that are kept running.

mod configurator;
mod declare;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use setpoint_graph::{Attributes, Deps, Item, Kind, Name};
use sha2::{Digest, Sha256};

use super::{HostKind, Nature};
use crate::host::Host;
use crate::item::{
    Because, Dependence, Invocation, Need, Readiness, Ready, RootPath, StopSignal, Wait, environment, hex,
    need,
};
use crate::manifest::{Build, Section, Type, field, fields};

pub use configurator::Processes;

/// A command that is kept running.
///
/// It stays in the foreground: the process that was started is the one that is looked after.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// What it is called.
    pub name: Name,
    /// What is run.
    pub command: Invocation,
    /// Variables that are added to its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Whether the values of its variables must not be shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sensitive: bool,
    /// The directory it runs in; none for the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<RootPath>,
    /// Where its output goes; none for a file beside the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<RootPath>,
    /// When it is ready for what comes after it; none if it is once it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Ready>,
    /// The signal that asks it to end.
    #[serde(default)]
    pub stop_signal: StopSignal,
    /// How long it may take to end before it is killed.
    pub stop_timeout: Wait,
    /// What runs is another definition than this, with this digest. Never part of an intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_other: Option<String>,
    /// What runs adds to a log that is not at its path any more. Never part of an intent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub log_lost: bool,
    /// What it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
}

impl Process {
    /// The attribute that says what is wrong with what runs: nobody declares it.
    pub const RUNNING: &'static str = "running";
    /// The kind of all processes.
    pub(crate) const KIND_TEXT: &'static str = "process";

    fn shown_env(&self) -> environment::Shown<'_> {
        environment::Shown { variables: &self.env, sensitive: self.sensitive }
    }

    /// Tells what is run, and how, from any other definition. How it is stopped and when it is ready are
    /// no part of it.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        let mut add = |text: &str| {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        };
        for part in self.command.argv() {
            add(part);
        }
        add("");
        for (name, value) in &self.env {
            add(name);
            add(value);
        }
        add(self.cwd.as_ref().map_or("", RootPath::as_str));
        add(self.log.as_ref().map_or("", RootPath::as_str));
        hex(&hasher.finalize()[..8])
    }
}

impl fmt::Debug for Process {
    /// Never shows values that are sensitive.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Process");
        debug.field("name", &self.name).field("command", &self.command);
        debug.field("env", &self.shown_env());
        debug.field("cwd", &self.cwd).field("log", &self.log).field("ready", &self.ready);
        debug.field("stop_signal", &self.stop_signal);
        debug.field("stop_timeout", &self.stop_timeout).field("needs", &self.needs);
        debug.field("runs_other", &self.runs_other).field("log_lost", &self.log_lost);
        debug.field("sensitive", &self.sensitive).finish()
    }
}

impl Item for Process {
    const KIND: Kind = Kind::from_static(Self::KIND_TEXT);

    fn name(&self) -> Name {
        self.name.clone()
    }

    fn dependencies(&self, deps: &mut Deps) {
        need::derive(&self.needs, deps);
        // Another one of the set that listens there has to end first.
        if let Some(Ready { condition: Readiness::Port(address), .. }) = &self.ready {
            deps.claims(format!("port {address}"));
        }
    }

    fn attributes(&self, attributes: &mut Attributes) {
        attributes.add("command", &self.command);
        self.shown_env().add_to(attributes);
        if let Some(cwd) = &self.cwd {
            attributes.add("cwd", cwd);
        }
        if let Some(log) = &self.log {
            attributes.add("log", log);
        }
        if let Some(ready) = &self.ready {
            attributes.add("ready", ready);
        }
        attributes.add("stop_signal", self.stop_signal.name()).add("stop_timeout", self.stop_timeout);
        if let Some(digest) = &self.runs_other {
            attributes.add(Self::RUNNING, format_args!("another definition ({digest})"));
        } else if self.log_lost {
            attributes.add(Self::RUNNING, "with a log that was moved or deleted");
        }
    }
}

impl HostKind for Process {
    const SECTION: Section = Section {
        key: "processes",
        kind: Self::KIND_TEXT,
        about: "Commands that are kept running, by name. They restart when a file or link that they refer to changes.",
        nature: Nature::Activity,
        references: Dependence::RepeatsAfter,
        required: &["command"],
        one_of: &[],
        fields: &[
            field(
                "command",
                Type::Run,
                "What runs, in the foreground: a program with its arguments, or a line for the shell.",
            ),
            fields::ENV,
            fields::SECRET_ENV,
            fields::CWD,
            field(
                "log",
                Type::Text,
                "The file its output is added to, below the root; by default one beside the state.",
            ),
            field("adopt", Type::Boolean, "Adds to a log that is already there, and leaves it in the end."),
            field(
                "ready",
                Type::Ready,
                "What it must show when it was started before what comes after it may begin; by default nothing.",
            ),
            field("stop_signal", Type::Signal, "The signal that asks it to end; by default TERM."),
            field(
                "stop_timeout",
                Type::Grace,
                "How long it may take to end before it is killed; by default 10s.",
            ),
            field(
                "restart_on",
                Type::References,
                "Items that it comes after, and with which it restarts when they change, as `kind.name`.",
            ),
            fields::AFTER,
            fields::PREVENT,
        ],
        referable: &["name", "log"],
    };

    type Configurator = Processes;

    fn configurator(host: &Host) -> Self::Configurator {
        Processes::new(host)
    }

    fn declare(build: &mut Build<'_, '_, '_>, _: Option<RootPath>) -> Option<Self> {
        let (command, env) = (build.run("command"), build.environment());
        let (cwd, log) = (build.path_field("cwd"), build.path_field("log"));
        if let Some(cwd) = &cwd {
            build.needs_at(cwd, Because::Inside);
        }
        if let Some(log) = &log {
            build.needs_what_is_around(log, Because::Inside);
            if let Some(declared) = build.declared_at(log) {
                let message = format!("its log is at {log}, which is declared as {declared}");
                build.report("log", &message, Some("choose another path"));
            }
        }
        let ready = declare::ready(build);
        let stop_signal = build.plain("stop_signal").and_then(StopSignal::by_name).unwrap_or_default();
        let stop_timeout = build.wait("stop_timeout", Wait::from_millis(10_000));
        let (name, sensitive, needs) = (build.name(), build.is_set("sensitive"), build.take_needs());
        let (command, runs_other, log_lost) = (command?, None, false);
        Some(Self {
            name,
            command,
            env,
            sensitive,
            cwd,
            log,
            ready,
            stop_signal,
            stop_timeout,
            runs_other,
            log_lost,
            needs,
        })
    }

    fn needs(&self) -> &[Need] {
        &self.needs
    }

    fn needs_mut(&mut self) -> &mut Vec<Need> {
        &mut self.needs
    }
}
