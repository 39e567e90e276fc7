//! The one plan envelope.
//!
//! Whatever plans in Setpoint, plans into a [`Plan`]: the ordered operations from the current state to the
//! intended one with the reason for each, what is left as it is and why, and a summary. It is plain data:
//! it prints, serialises and compares, and knows nothing of who made it.
//!
//! ```
//! use setpoint_plan::{Action, PlannedOperation, Plan};
//!
//! let mut plan = Plan::new("web");
//! plan.push(PlannedOperation::new(Action::Create, "file", "index.html").because("it is intended and not there"));
//! assert_eq!(plan.summary().to_string(), "1 to create");
//! assert_eq!(plan.to_string(), "web: 1 to create\n  + file/index.html: it is intended and not there\n");
//! ```

mod text;

use serde::{Deserialize, Serialize};

/// What an operation does to one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Brings it into being.
    Create,
    /// Changes it in place.
    Modify,
    /// Removes it.
    Delete,
    /// Removes it and brings it into being again, as one step.
    Recreate,
}

impl Action {
    /// The sign that stands for it in a printed plan.
    pub fn sign(self) -> char {
        match self {
            Self::Create => '+',
            Self::Modify => '~',
            Self::Delete => '-',
            Self::Recreate => '±',
        }
    }
}

/// One attribute that an operation changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeChange {
    /// What the attribute is called.
    pub attribute: String,
    /// Its value before; none if it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// Its value afterwards; none if it is not there any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// One operation of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedOperation {
    /// What is done.
    pub action: Action,
    /// The kind of thing it is done to.
    pub kind: String,
    /// The name of the thing.
    pub name: String,
    /// Where the thing lives, outermost part first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Why the operation is there.
    pub reason: String,
    /// The same for programs; none where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ReasonCode>,
    /// The attributes it changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detail: Vec<AttributeChange>,
    /// The positions, in the plan, of the operations that must have succeeded before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<usize>,
    /// The things whose operations must have succeeded before, as `kind/name`: those that `after` has by position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// Whether a deletion is followed by a creation of the same thing later in the plan, or a creation
    /// preceded by its deletion.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub temporary: bool,
    /// The group it belongs to: operations of one group are never carried out at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whether it can be carried out on what is running; none where the question does not arise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
}

/// Why an operation is there, in a word that stays the same whatever the sentence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasonCode {
    /// It is declared, and not there.
    Missing,
    /// It is there before anybody made it, and is taken over.
    TakenOver,
    /// It differs from what is declared.
    Changed,
    /// It is not declared any more.
    Removed,
    /// It is not declared any more, was there before anybody made it, and stays.
    Released,
    /// What it needs is not there any more.
    DependencyLost,
    /// What it needs is made anew.
    DependencyRecreated,
    /// What it needs is modified, and it has to be made anew then.
    DependencyModified,
    /// An item with which it is applied again is changed, or was, and that is still to be done.
    Repeated,
    /// It was deleted to be re-created, and its creation has not succeeded yet.
    RecreationInterrupted,
    /// A failed change may have left it half done.
    HalfDone,
    /// A failed operation may have left parts of it.
    Leftover,
    /// It can't be changed in place.
    NotInPlace,
    /// No order of operations keeps it in place.
    Cycle,
    /// Nobody knows how the last operation on it ended.
    Unknown,
    /// Somebody asked for it.
    Requested,
}

/// Whether an operation can be carried out on what is running, or only by loading a configuration anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "possible", rename_all = "lowercase")]
pub enum Runtime {
    /// What is running can be changed.
    Yes,
    /// It takes effect with a reload.
    No {
        /// Why.
        why: String,
    },
}

impl Runtime {
    /// It takes effect with a reload, for this reason.
    pub fn no(why: impl Into<String>) -> Self {
        Self::No { why: why.into() }
    }

    /// Returns whether what is running can be changed.
    pub fn is_possible(&self) -> bool {
        matches!(self, Self::Yes)
    }
}

impl PlannedOperation {
    /// Makes an operation without a reason yet.
    pub fn new(action: Action, kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            action,
            kind: kind.into(),
            name: name.into(),
            path: Vec::new(),
            reason: String::new(),
            code: None,
            detail: Vec::new(),
            after: Vec::new(),
            waits_for: Vec::new(),
            temporary: false,
            group: None,
            runtime: None,
        }
    }

    /// Says why the operation is there.
    #[must_use]
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }
}

/// Why something is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It waits for something that is not there.
    Pending,
    /// Something else manages it, and has not brought it into being.
    External,
    /// It can't be handled as it is declared.
    Invalid,
    /// An operation on it is under way, or it waits for one.
    Busy,
    /// It failed, and its next attempt is not due.
    Failed,
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::External => "external",
            Self::Invalid => "invalid",
            Self::Busy => "busy",
            Self::Failed => "failed",
        })
    }
}

/// Something that the plan leaves as it is, although that is not what was declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The kind of thing.
    pub kind: String,
    /// The name of the thing.
    pub name: String,
    /// Where the thing lives, outermost part first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Why in one word.
    pub standing: Standing,
    /// Why in words: what it waits for, and what is wrong with that.
    pub causes: Vec<String>,
    /// The things that it waits for, as `kind/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// How many there are of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Things that are created.
    pub create: usize,
    /// Things that are modified in place.
    pub modify: usize,
    /// Things that are deleted for good.
    pub delete: usize,
    /// Things that are deleted and created again.
    pub recreate: usize,
    /// Things that are left as they are, against what was declared.
    pub left: usize,
    /// Things that are there already, and are taken over.
    #[serde(default, skip_serializing_if = "is_none")]
    pub adopt: usize,
    /// Things that were taken over, and are let go.
    #[serde(default, skip_serializing_if = "is_none")]
    pub release: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

impl Summary {
    /// Returns whether the plan holds no operation.
    pub fn is_unchanged(&self) -> bool {
        self.create + self.modify + self.delete + self.recreate + self.adopt + self.release == 0
    }

    fn count(&mut self, operation: &PlannedOperation) {
        let count = match (operation.action, operation.temporary) {
            // Counted with the creation that follows it.
            (Action::Delete, true) => return,
            (Action::Create, true) | (Action::Recreate, _) => &mut self.recreate,
            (Action::Create, false) if operation.code == Some(ReasonCode::TakenOver) => &mut self.adopt,
            (Action::Create, false) => &mut self.create,
            (Action::Modify, _) => &mut self.modify,
            (Action::Delete, false) if operation.code == Some(ReasonCode::Released) => &mut self.release,
            (Action::Delete, false) => &mut self.delete,
        };
        *count += 1;
    }
}

/// The ordered operations from a current state to an intended one. Making it changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What is planned for.
    pub subject: String,
    /// The operations in an order that is safe to follow one by one.
    pub operations: Vec<PlannedOperation>,
    /// What is left as it is, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
    summary: Summary,
}

impl Plan {
    /// Makes a plan without operations.
    pub fn new(subject: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            operations: Vec::new(),
            left: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// Adds an operation at the end.
    pub fn push(&mut self, operation: PlannedOperation) {
        self.summary.count(&operation);
        self.operations.push(operation);
    }

    /// Adds something that is left as it is.
    pub fn leave(&mut self, left: Left) {
        self.summary.left += 1;
        self.left.push(left);
    }

    /// Counts again, after it became known of operations that they take over or let go.
    pub fn recount(&mut self) {
        self.summary = Summary { left: self.left.len(), ..Summary::default() };
        self.operations.iter().for_each(|operation| self.summary.count(operation));
    }

    /// How many there are of each.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}
