//! Items: what a graph is made of.
//!
//! A user's item is an ordinary struct with the small [`Item`] trait. Inside the graph it is an
//! [`ItemHandle`]: the value with its reference and dependencies, derived once, shared between graphs.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::dependency::{Dependency, Deps, Derived};
use crate::{ItemRef, Kind, Name, ResourceKey};

/// Something that has an intended state: a file, a route, a process.
///
/// ```
/// use setpoint_graph::{Deps, Item, Kind, Name};
///
/// #[derive(Debug, PartialEq)]
/// struct Route { via: String, metric: u32 }
///
/// impl Item for Route {
///     const KIND: Kind = Kind::from_static("route");
///     fn name(&self) -> Name { Name::new(&self.via) }
///     fn dependencies(&self, deps: &mut Deps) {
///         deps.requires(("interface", self.via.as_str())).because("a route leaves through an interface");
///     }
/// }
/// ```
///
/// Two equal items have the same dependencies: derive `PartialEq`, and derive the dependencies from the
/// fields that it compares.
pub trait Item: PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The kind of all items of this type: one type, one kind.
    ///
    /// It decides which configurator handles them, and is part of every [reference](ItemRef::of) to one.
    const KIND: Kind;

    /// What it is called among those of its kind.
    fn name(&self) -> Name;

    /// A short text for drawings; by default the name.
    fn label(&self) -> Option<String> {
        None
    }

    /// Returns whether something else manages it: it is then only observed, and has no dependencies.
    fn external(&self) -> bool {
        false
    }

    /// A text that shows the whole state; by default the [attributes](Item::attributes), one in each line, or kind and name of
    /// an item that lists none.
    fn description(&self) -> String {
        let mut attributes = Attributes::default();
        self.attributes(&mut attributes);
        if attributes.0.is_empty() {
            format!("{}/{}", Self::KIND, self.name())
        } else {
            attributes.to_string()
        }
    }

    /// Names what must be there before this can be, and which resources it claims.
    fn dependencies(&self, _deps: &mut Deps) {}

    /// Lists the attributes that a person wants to see compared, old and new, in a plan.
    fn attributes(&self, _attributes: &mut Attributes) {}
}

/// One attribute of an item, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// What it is called.
    pub name: &'static str,
    /// Its value as text.
    pub value: String,
    /// Whether the value must not be shown.
    pub sensitive: bool,
}

/// Pairs the attributes of two values of an item, and keeps the pairs that differ: those of the new value in their order,
/// then those that only the old one has. What is a secret on one side is one on both.
///
/// ```
/// use setpoint_graph::{Attributes, differing};
/// let (mut old, mut new) = (Attributes::default(), Attributes::default());
/// old.add("mode", "0644").add("key", "hunter2");
/// new.add("mode", "0644").add_sensitive("key", "hunter3");
/// let (old, new): (Vec<_>, Vec<_>) = (old.iter().cloned().collect(), new.iter().cloned().collect());
/// let pairs = differing(&old, &new);
/// assert_eq!(pairs.len(), 1);
/// assert!(pairs[0].0.as_ref().unwrap().sensitive, "the old key is as secret as the new one");
/// ```
pub fn differing<A: Comparable>(old: &[A], new: &[A]) -> Vec<(Option<A>, Option<A>)> {
    let of_new = new.iter().filter_map(|after| {
        let before = old.iter().find(|before| before.name() == after.name());
        if before.is_some_and(|before| before.value() == after.value()) {
            return None;
        }
        let secret = after.is_sensitive() || before.is_some_and(Comparable::is_sensitive);
        let hidden =
            |attribute: &A| if secret { attribute.clone().into_sensitive() } else { attribute.clone() };
        Some((before.map(hidden), Some(hidden(after))))
    });
    let gone = old.iter().filter(|before| new.iter().all(|after| after.name() != before.name()));
    of_new.chain(gone.map(|before| (Some(before.clone()), None))).collect()
}

/// An attribute that can be compared with another one of its name.
pub trait Comparable: Clone {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// Its value as text.
    fn value(&self) -> &str;
    /// Returns whether its value must not be shown.
    fn is_sensitive(&self) -> bool;
    /// The same attribute, with a value that must not be shown.
    #[must_use]
    fn into_sensitive(self) -> Self;
}

impl Comparable for Attribute {
    fn name(&self) -> &'static str {
        self.name
    }

    fn value(&self) -> &str {
        &self.value
    }

    fn is_sensitive(&self) -> bool {
        self.sensitive
    }

    fn into_sensitive(self) -> Self {
        Self { sensitive: true, ..self }
    }
}

/// Collects the attributes of an item.
///
/// ```
/// use setpoint_graph::Attributes;
/// let mut attributes = Attributes::default();
/// attributes.add("mode", "0644").add_sensitive("password", "hunter2");
/// assert!(attributes.iter().any(|attribute| attribute.sensitive));
/// assert_eq!(attributes.to_string(), "mode: 0644\npassword: (sensitive)");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(Vec<Attribute>);

impl Attributes {
    /// Adds an attribute.
    pub fn add(&mut self, name: &'static str, value: impl fmt::Display) -> &mut Self {
        self.0.push(Attribute { name, value: value.to_string(), sensitive: false });
        self
    }

    /// Adds an attribute whose value is never shown.
    pub fn add_sensitive(&mut self, name: &'static str, value: impl fmt::Display) -> &mut Self {
        self.0.push(Attribute { name, value: value.to_string(), sensitive: true });
        self
    }

    /// The attributes in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Attribute> {
        self.0.iter()
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Attribute { name, value, sensitive }) in self.0.iter().enumerate() {
            let end = if i > 0 { "\n" } else { "" };
            let value = if *sensitive { "(sensitive)" } else { value };
            write!(f, "{end}{name}: {value}")?;
        }
        Ok(())
    }
}

/// The object-safe face of [`Item`].
pub(crate) trait ErasedItem: Any + Send + Sync + fmt::Debug {
    fn same(&self, other: &dyn ErasedItem) -> bool;
    fn label(&self) -> Option<String>;
    fn description(&self) -> String;
    fn attributes(&self) -> Attributes;
}

impl<T: Item> ErasedItem for T {
    fn same(&self, other: &dyn ErasedItem) -> bool {
        (other as &dyn Any).downcast_ref::<T>().is_some_and(|other| self == other)
    }

    fn label(&self) -> Option<String> {
        Item::label(self)
    }

    fn description(&self) -> String {
        Item::description(self)
    }

    fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::default();
        Item::attributes(self, &mut attributes);
        attributes
    }
}

/// An item with all that was derived from it.
pub(crate) struct Entry<T: ?Sized> {
    reference: ItemRef,
    derived: Derived,
    external: bool,
    item: T,
}

/// A shared, immutable item: cheap to clone, and the same value in every graph that holds it.
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
/// let crank = ItemHandle::new(Part("crank", &["axle"]));
/// assert_eq!(crank.reference().to_string(), "part/crank");
/// assert_eq!(crank.dependencies()[0].targets(), [ItemRef::new("part", "axle")]);
/// assert_eq!(crank.get::<Part>().unwrap().0, "crank");
/// ```
#[derive(Clone)]
pub struct ItemHandle(Arc<Entry<dyn ErasedItem>>);

impl ItemHandle {
    /// Takes an item and derives its reference, its dependencies and its claims.
    pub fn new<T: Item>(item: T) -> Self {
        let reference = ItemRef::of::<T>(item.name());
        let mut deps = Deps::default();
        item.dependencies(&mut deps);
        let external = item.external();
        Self(Arc::new(Entry { reference, derived: deps.derive(), external, item }))
    }

    /// The graph-wide reference.
    pub fn reference(&self) -> &ItemRef {
        &self.0.reference
    }

    /// What sort of item it is.
    pub fn kind(&self) -> &Kind {
        self.0.reference.kind()
    }

    /// What it is called among those of its kind.
    pub fn name(&self) -> &Name {
        self.0.reference.name()
    }

    /// Returns whether something else manages it.
    pub fn external(&self) -> bool {
        self.0.external
    }

    /// The text for drawings.
    pub fn label(&self) -> String {
        self.0.item.label().unwrap_or_else(|| self.name().to_string())
    }

    /// The text that shows the whole state.
    pub fn description(&self) -> String {
        self.0.item.description()
    }

    /// The attributes that a plan compares.
    pub fn attributes(&self) -> Attributes {
        self.0.item.attributes()
    }

    /// What must be there before this can be: all of these.
    pub fn dependencies(&self) -> &[Dependency] {
        self.0.derived.dependencies()
    }

    /// The resources it holds alone while it exists.
    pub fn claims(&self) -> &[ResourceKey] {
        self.0.derived.claims()
    }

    /// The item as its own type; none if it is of another.
    pub fn get<T: Item>(&self) -> Option<&T> {
        (&self.0.item as &dyn Any).downcast_ref()
    }

    /// Returns whether both are the very same value in memory.
    pub fn is_same_as(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn derived(&self) -> &Derived {
        &self.0.derived
    }
}

impl PartialEq for ItemHandle {
    /// Compares the items' values, not their places in memory.
    fn eq(&self, other: &Self) -> bool {
        self.is_same_as(other) || self.0.item.same(&other.0.item)
    }
}

impl fmt::Debug for ItemHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0.item, f)
    }
}

impl fmt::Display for ItemHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description())
    }
}

impl<T: Item> From<T> for ItemHandle {
    fn from(item: T) -> Self {
        Self::new(item)
    }
}
