//! Edits that are made and validated together.

use std::collections::BTreeMap;

use crate::edit::refuse_external_with_dependencies;
use crate::{Graph, GraphError, ItemHandle, ItemRef, State, SubgraphPath};

impl<S: State> Graph<S> {
    /// Makes several edits that are only validated together: an item may leave one subgraph and appear in
    /// another in any order. Refused edits change nothing.
    pub fn edit(&mut self, batch: Batch) -> Result<(), GraphError> {
        let mut outcome: BTreeMap<ItemRef, Option<(SubgraphPath, Option<ItemHandle>)>> = BTreeMap::new();
        for (reference, steps) in batch.steps {
            let before = self.path_of(&reference);
            let mut places: BTreeMap<SubgraphPath, Option<ItemHandle>> = BTreeMap::new();
            places.extend(before.clone().map(|path| (path, None)));
            for step in steps {
                match step {
                    Step::Put(path, item) => {
                        refuse_external_with_dependencies(&item)?;
                        places.insert(path, Some(item));
                    }
                    Step::Del(path) => {
                        if places.remove(&path).is_none() {
                            return Err(GraphError::NoSuchItem { item: reference, lives_in: path });
                        }
                    }
                }
            }
            let place = places.pop_first();
            if let (Some((one, _)), Some((two, _))) = (&place, places.pop_first()) {
                let (lives_in, put_into) =
                    if before.as_ref() == Some(&two) { (two, one.clone()) } else { (one.clone(), two) };
                return Err(GraphError::LivesElsewhere { item: reference, lives_in, put_into });
            }
            outcome.insert(reference, place);
        }
        for (reference, place) in outcome {
            match place {
                None if !self.contains(&reference) => {}
                None => {
                    self.del_item(&reference)?;
                }
                Some((path, item)) => {
                    if self.contains(&reference) {
                        self.move_item(&reference, &path)?;
                    }
                    if let Some(item) = item {
                        self.put_item_into(&path, item)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Edits that are made together, see [`Graph::edit`].
///
/// ```
/// # use setpoint_graph::*;
/// # #[derive(Debug, PartialEq)]
/// # struct Part(&'static str, &'static [&'static str]);
/// # impl Item for Part {
/// #     const KIND: Kind = Kind::from_static("part");
/// #     fn name(&self) -> Name { Name::new(self.0) }
/// #     fn dependencies(&self, deps: &mut Deps) { for n in self.1 { deps.requires(("part", *n)).because("it rests on it"); } }
/// # }
/// let (old, new) = (SubgraphPath::from(["old"]), SubgraphPath::from(["new"]));
/// let mut graph: Graph = Graph::new("machine");
/// graph.put_item_into(&old, Part("crank", &[]))?;
/// // On its own, each of the two would be refused or lose the item.
/// let batch = Batch::new().put(&new, Part("crank", &[])).del(&old, ("part", "crank"));
/// graph.edit(batch)?;
/// assert_eq!(graph.path_of(&("part", "crank").into()), Some(new));
/// # Ok::<(), GraphError>(())
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    steps: BTreeMap<ItemRef, Vec<Step>>,
}

#[derive(Debug)]
enum Step {
    Put(SubgraphPath, ItemHandle),
    Del(SubgraphPath),
}

impl Batch {
    /// Starts an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts an item into a subgraph.
    #[must_use]
    pub fn put(mut self, path: &SubgraphPath, item: impl Into<ItemHandle>) -> Self {
        let item = item.into();
        let steps = self.steps.entry(item.reference().clone()).or_default();
        steps.push(Step::Put(path.clone(), item));
        self
    }

    /// Removes an item from a subgraph.
    #[must_use]
    pub fn del(mut self, path: &SubgraphPath, reference: impl Into<ItemRef>) -> Self {
        self.steps.entry(reference.into()).or_default().push(Step::Del(path.clone()));
        self
    }
}
