//! Where in the tree of subgraphs something lives.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Name;

/// The names of the subgraphs from the root to a place; the root itself is the empty path.
///
/// ```
/// use setpoint_graph::SubgraphPath;
/// let path = SubgraphPath::from(["network", "eth0"]);
/// assert_eq!(path.to_string(), "network/eth0");
/// assert!(SubgraphPath::from(["network"]).is_prefix_of(&path));
/// assert_eq!(path.parent(), Some(SubgraphPath::from(["network"])));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SubgraphPath(Vec<Name>);

impl SubgraphPath {
    /// The path of the root graph.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// The path of the subgraph of this name below this one.
    #[must_use]
    pub fn join(&self, name: impl Into<Name>) -> Self {
        let mut names = self.0.clone();
        names.push(name.into());
        Self(names)
    }

    /// The path of `tail` seen from below this one.
    #[must_use]
    pub fn concat(&self, tail: &Self) -> Self {
        Self(self.0.iter().chain(&tail.0).cloned().collect())
    }

    /// The path of the subgraph around this one; none for the root.
    pub fn parent(&self) -> Option<Self> {
        let (_, head) = self.0.split_last()?;
        Some(Self(head.to_vec()))
    }

    /// The last name; none for the root.
    pub fn leaf(&self) -> Option<&Name> {
        self.0.last()
    }

    /// Returns whether this is the root's path.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether `other` is this place or inside it.
    pub fn is_prefix_of(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }

    /// Returns the innermost place that both are in.
    ///
    /// ```
    /// use setpoint_graph::SubgraphPath;
    /// let (one, two) = (SubgraphPath::from(["net", "eth0"]), SubgraphPath::from(["net", "eth1"]));
    /// assert_eq!(one.common(&two), SubgraphPath::from(["net"]));
    /// ```
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        self.0
            .iter()
            .zip(&other.0)
            .take_while(|(one, two)| one == two)
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// What remains of this path below `prefix`; none if it is not inside it.
    pub fn strip_prefix(&self, prefix: &Self) -> Option<Self> {
        self.0.strip_prefix(prefix.0.as_slice()).map(|rest| Self(rest.to_vec()))
    }

    /// The names, outermost first.
    pub fn names(&self) -> &[Name] {
        &self.0
    }
}

impl fmt::Display for SubgraphPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("/")?;
            }
            fmt::Display::fmt(name, f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for SubgraphPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl<N: Into<Name>, const COUNT: usize> From<[N; COUNT]> for SubgraphPath {
    fn from(names: [N; COUNT]) -> Self {
        names.into_iter().collect()
    }
}

impl<N: Into<Name>> FromIterator<N> for SubgraphPath {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}
