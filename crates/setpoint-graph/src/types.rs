//! Graphs in and out of serde, for item types that are registered.
//!
//! ```text
//! { "name": "host", "description": "…",
//!   "subgraphs": [{ "path": ["network"], "description": "…" }],      only those that are described or empty
//!   "items": [{ "path": ["network"], "kind": "route", "item": { … }, "state": … }] }
//! ```
//!
//! Nothing is nested however deep the graph is. Dependencies and claims are not written: they are derived
//! again from the items. What a graph's state keeps for the whole graph is not written either.

use std::any::type_name;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{Graph, GraphError, Item, ItemHandle, ItemRef, Kind, Name, State, SubgraphPath};

/// The item types that can be written and read, by kind.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use setpoint_graph::{Graph, Item, ItemTypes, Kind, Name};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct File { name: String, mode: u32 }
/// impl Item for File {
///     const KIND: Kind = Kind::from_static("file");
///     fn name(&self) -> Name { Name::new(&self.name) }
/// }
///
/// let mut types = ItemTypes::new();
/// types.register::<File>();
///
/// let mut graph: Graph = Graph::new("files");
/// graph.put_item(File { name: "motd".into(), mode: 0o644 })?;
/// let value = types.to_value(&graph)?;
/// assert_eq!(value["items"][0]["item"]["mode"], 0o644);
///
/// let again: Graph = types.from_value(value)?;
/// assert!(graph.diff(&again).is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ItemTypes {
    by_kind: BTreeMap<Kind, Codec>,
}

/// How the items of one kind are written and read.
#[derive(Clone, Copy, Debug)]
struct Codec {
    type_name: &'static str,
    /// None if the item is of another type.
    write: fn(&ItemHandle) -> Option<Result<Value, serde_json::Error>>,
    read: fn(Value) -> Result<ItemHandle, serde_json::Error>,
    parse: fn(&str) -> Result<ItemHandle, serde_json::Error>,
}

/// Why a graph or an item could not be written or read. It names the item and where it is.
///
/// ```
/// use setpoint_graph::{Graph, ItemTypes};
///
/// let value = serde_json::json!({ "name": "host", "items": [{ "kind": "file", "item": {} }] });
/// let error = ItemTypes::new().from_value::<()>(value).unwrap_err();
/// assert_eq!(error.to_string(), "items[0] of kind file: kind file is not registered");
/// ```
#[derive(Debug, thiserror::Error)]
pub enum TypesError {
    /// The item's kind is not registered.
    #[error("{place}: kind {kind} is not registered")]
    Unregistered {
        /// The kind.
        kind: Kind,
        /// Which item, and where.
        place: String,
    },
    /// The item is of another type than the one registered for its kind.
    #[error("{item} is not of type {type_name}, which is registered for its kind")]
    OtherType {
        /// The item.
        item: ItemRef,
        /// The registered type.
        type_name: &'static str,
    },
    /// An item or its state could not be written.
    #[error("{place}: can't be written")]
    Write {
        /// Which item, and which part of it.
        place: String,
        /// What serde says.
        source: serde_json::Error,
    },
    /// An item, its state or the whole could not be read.
    #[error("{place}: can't be read")]
    Read {
        /// Which item, and which part of it.
        place: String,
        /// What serde says.
        source: serde_json::Error,
    },
    /// A reference occurs twice.
    #[error("{place}: {item} is there already")]
    Duplicate {
        /// The item.
        item: ItemRef,
        /// Where the second one is.
        place: String,
    },
    /// The graph refused an item.
    #[error("{place}: refused")]
    Refused {
        /// Where.
        place: String,
        /// Why.
        source: Box<GraphError>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GraphDocument {
    name: Name,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    subgraphs: Vec<SubgraphDocument>,
    #[serde(default)]
    items: Vec<ItemDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SubgraphDocument {
    path: SubgraphPath,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    description: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemDocument {
    #[serde(default, skip_serializing_if = "SubgraphPath::is_root")]
    path: SubgraphPath,
    kind: Kind,
    item: Value,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    state: Option<Value>,
}

/// Tells a state that is written as null from none at all.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl ItemTypes {
    /// Starts without any type.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a type of items by its kind, in place of any registered before.
    pub fn register<T: Item + Serialize + DeserializeOwned>(&mut self) -> &mut Self {
        let codec = Codec {
            type_name: type_name::<T>(),
            write: |item| item.get::<T>().map(serde_json::to_value),
            read: |value| serde_json::from_value::<T>(value).map(ItemHandle::new),
            parse: |text| serde_json::from_str::<T>(text).map(ItemHandle::new),
        };
        self.by_kind.insert(T::KIND, codec);
        self
    }

    /// The registered kinds, in order.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.by_kind.keys()
    }

    /// Writes one item.
    pub fn item_to_value(&self, item: &ItemHandle) -> Result<Value, TypesError> {
        let place = || item.reference().to_string();
        let codec = self.codec(item.kind(), place)?;
        let written = (codec.write)(item).ok_or_else(|| TypesError::OtherType {
            item: item.reference().clone(),
            type_name: codec.type_name,
        })?;
        written.map_err(|source| TypesError::Write { place: place(), source })
    }

    /// Reads one item of a kind; its dependencies are derived.
    pub fn item_from_value(&self, kind: &Kind, value: Value) -> Result<ItemHandle, TypesError> {
        self.read_item(kind, value, || format!("an item of kind {kind}"))
    }

    /// Reads one item of a kind from its JSON text, without a detour through a [`Value`].
    pub fn item_from_text(&self, kind: &Kind, text: &str) -> Result<ItemHandle, TypesError> {
        let place = || format!("an item of kind {kind}");
        let read = (self.codec(kind, place)?.parse)(text);
        read.map_err(|source| TypesError::Read { place: place(), source })
    }

    /// Writes a graph: items, their states and the subgraphs.
    pub fn to_value<S: State + Serialize>(&self, graph: &Graph<S>) -> Result<Value, TypesError> {
        let mut items = Vec::with_capacity(graph.len());
        for node in graph.items() {
            let state = node.state().map(serde_json::to_value).transpose().map_err(|source| {
                TypesError::Write { place: format!("the state of {}", node.reference()), source }
            })?;
            let (path, kind) = (node.path(), node.item().kind().clone());
            items.push(ItemDocument { path, kind, item: self.item_to_value(node.item())?, state });
        }
        let mut subgraphs = Vec::new();
        let mut todo = vec![graph.view()];
        while let Some(view) = todo.pop() {
            let first_child = todo.len();
            todo.extend(view.subgraphs());
            let empty = todo.len() == first_child && view.own_items().is_empty();
            todo[first_child..].reverse();
            if view.parent().is_some() && (empty || !view.description().is_empty()) {
                let description = view.description().to_owned();
                subgraphs.push(SubgraphDocument { path: view.path(), description });
            }
        }
        let (name, description) = (graph.name().clone(), graph.description().to_owned());
        let document = GraphDocument { name, description, subgraphs, items };
        serde_json::to_value(document)
            .map_err(|source| TypesError::Write { place: format!("graph {}", graph.name()), source })
    }

    /// Reads a graph; dependencies are derived from the items.
    pub fn from_value<S: State + DeserializeOwned>(&self, value: Value) -> Result<Graph<S>, TypesError> {
        let document: GraphDocument = serde_json::from_value(value)
            .map_err(|source| TypesError::Read { place: "the graph".to_owned(), source })?;
        let mut graph = Graph::new(document.name);
        graph.set_description(document.description);
        for SubgraphDocument { path, description } in document.subgraphs {
            graph.describe_subgraph(&path, description);
        }
        for (i, ItemDocument { path, kind, item, state }) in document.items.into_iter().enumerate() {
            let place = || {
                let around = if path.is_root() { String::new() } else { format!(" in subgraph {path}") };
                format!("items[{i}] of kind {kind}{around}")
            };
            let item = self.read_item(&kind, item, place)?;
            let reference = item.reference().clone();
            if graph.contains(&reference) {
                return Err(TypesError::Duplicate { item: reference, place: place() });
            }
            let refused = |source| TypesError::Refused { place: place(), source: Box::new(source) };
            match state {
                None => graph.put_item_into(&path, item).map_err(refused)?,
                Some(state) => {
                    let state = serde_json::from_value(state).map_err(|source| TypesError::Read {
                        place: format!("the state of {reference}, {}", place()),
                        source,
                    })?;
                    graph.put_item_with_state(&path, item, state).map_err(refused)?
                }
            };
        }
        Ok(graph)
    }

    fn codec(&self, kind: &Kind, place: impl Fn() -> String) -> Result<&Codec, TypesError> {
        let unregistered = || TypesError::Unregistered { kind: kind.clone(), place: place() };
        self.by_kind.get(kind).ok_or_else(unregistered)
    }

    fn read_item(
        &self,
        kind: &Kind,
        value: Value,
        place: impl Fn() -> String,
    ) -> Result<ItemHandle, TypesError> {
        let codec = self.codec(kind, &place)?;
        let hint =
            value.get("name").and_then(Value::as_str).map(|name| format!(" (named {})", Value::from(name)));
        (codec.read)(value)
            .map_err(|source| TypesError::Read { place: place() + &hint.unwrap_or_default(), source })
    }
}
