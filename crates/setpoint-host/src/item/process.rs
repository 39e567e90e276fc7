//! Processes that are kept running.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use setpoint_graph::{Attributes, Deps, Item, Kind, Name};
use sha2::{Digest, Sha256};

use super::content::hex;
use super::{Need, Ready, RootPath, Run, StopSignal, Wait, environment, need};

/// A command that is kept running.
///
/// It stays in the foreground: the process that was started is the one that is looked after.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// What it is called.
    pub name: Name,
    /// What is run.
    pub command: Run,
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
    /// What it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
}

impl Process {
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
        debug.field("runs_other", &self.runs_other).field("sensitive", &self.sensitive).finish()
    }
}

impl Item for Process {
    const KIND: Kind = Kind::from_static(Self::KIND_TEXT);

    fn name(&self) -> Name {
        self.name.clone()
    }

    fn dependencies(&self, deps: &mut Deps) {
        need::derive(&self.needs, deps);
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
            attributes.add("running", format_args!("another definition ({digest})"));
        }
    }
}
