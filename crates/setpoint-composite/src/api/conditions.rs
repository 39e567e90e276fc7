//! What the conditions of a Composite are about.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// What the conditions of a Composite are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionType {
    /// The declaration is valid, and the Composite is the oldest of its namespace.
    Accepted,
    /// Consul holds exactly the keys that it declares.
    Synced,
    /// The ConfigMap holds the structure in Consul.
    Published,
    /// All of it is as it should be: what others wait for.
    Ready,
}

impl ConditionType {
    /// The steps, in the order in which they are reached. [`Ready`](Self::Ready) follows from them.
    pub const STEPS: [Self; 3] = [Self::Accepted, Self::Synced, Self::Published];

    /// Its name in a resource.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Synced => "Synced",
            Self::Published => "Published",
            Self::Ready => "Ready",
        }
    }
}

/// Returns the condition of a type, if it was ever set.
pub fn condition(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    setpoint_kube::conditions::condition(conditions, kind.as_str())
}
