//! Dependencies: what an item needs before it can exist, and why.
//!
//! An item's dependencies are AND-ed; one [`Dependency`] may name several alternatives, of which any one
//! is enough. A predicate can say no to a required item, and then says why in words.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use smallvec::SmallVec;

use crate::item::{Item, ItemHandle};
use crate::{ItemRef, ResourceKey};

/// One thing that an item needs: an item that exists and satisfies a predicate, or any one of several.
///
/// ```
/// # use setpoint_graph::*;
/// # #[derive(Debug, PartialEq)]
/// # struct Part(&'static str, &'static [&'static str]);
/// # impl Item for Part {
/// #     const KIND: Kind = Kind::from_static("part");
/// #     fn name(&self) -> Name { Name::new(self.0) }
/// #     fn dependencies(&self, deps: &mut Deps) { for n in self.1 { deps.requires(("part", *n)).because("it rests on it"); } }
/// #     fn attributes(&self, attributes: &mut Attributes) { attributes.add("needs", self.1.join(" ")); }
/// # }
/// let mut deps = Deps::default();
/// let wheel = deps.requires(("part", "wheel")).satisfying("is free", |part: &Part| part.1.is_empty());
/// assert_eq!(wheel.to_string(), "part/wheel that is free");
/// assert!(wheel.is_satisfied_by(&Part("wheel", &[]).into()));
/// assert!(wheel.check(&Part("wheel", &["axle"]).into()).unwrap_err().contains("axle"));
/// ```
pub struct Dependency {
    targets: SmallVec<[ItemRef; 1]>,
    strength: Strength,
    recreate_when_modified: bool,
    repeat_when_changed: bool,
    auto_deleted_by_external: bool,
    /// Boxed because most dependencies have neither part, and there are millions of them.
    details: Option<Box<Details>>,
}

/// What a dependency holds back, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strength {
    /// The dependent can't be there without it, at any time.
    Existence,
    /// The dependent is not created or changed without it, and stays whatever becomes of it.
    Order,
}

#[derive(Default)]
struct Details {
    predicate: Option<Predicate>,
    description: String,
}

struct Predicate {
    wanted: String,
    check: Box<Check>,
}

/// Says in words what is wrong with a required item.
type Check = dyn Fn(&ItemHandle) -> Result<(), String> + Send + Sync;

impl Dependency {
    /// The alternatives: one item for a plain dependency.
    pub fn targets(&self) -> &[ItemRef] {
        &self.targets
    }

    /// Returns whether any one of several items is enough.
    pub fn is_any_of(&self) -> bool {
        self.targets.len() != 1
    }

    /// Why the dependency is there; empty if no reason was given.
    pub fn description(&self) -> &str {
        self.details.as_ref().map_or("", |words| &words.description)
    }

    /// What the required item must be like, in words; none if existing is enough.
    pub fn wanted(&self) -> Option<&str> {
        self.details.as_ref()?.predicate.as_ref().map(|predicate| predicate.wanted.as_str())
    }

    /// Returns whether the dependent is re-created when the required item is modified.
    pub fn recreates_when_modified(&self) -> bool {
        self.recreate_when_modified
    }

    /// Returns whether the dependent only comes after the required item, and stays whatever becomes of that.
    pub fn is_order(&self) -> bool {
        self.strength == Strength::Order
    }

    /// Returns whether the dependent is applied again when the required item was changed or made anew.
    pub fn repeats_when_changed(&self) -> bool {
        self.repeat_when_changed
    }

    /// Returns whether the dependent vanishes by itself when the required external item does.
    pub fn is_auto_deleted_by_external(&self) -> bool {
        self.auto_deleted_by_external
    }

    /// Asks the predicate about the required item; the error says in words why not. One that panics says no.
    pub fn check(&self, required: &ItemHandle) -> Result<(), String> {
        match self.details.as_ref().and_then(|details| details.predicate.as_ref()) {
            None => Ok(()),
            Some(predicate) => {
                let checked = catch_unwind(AssertUnwindSafe(|| (predicate.check)(required)));
                checked.unwrap_or_else(|panic| {
                    let text = panic.downcast_ref::<&str>().copied();
                    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
                    Err(format!("its predicate panicked: {}", text.unwrap_or("no message")))
                })
            }
        }
    }

    /// Returns whether the required item is as the predicate wants it.
    pub fn is_satisfied_by(&self, required: &ItemHandle) -> bool {
        self.details.is_none() || self.check(required).is_ok()
    }

    /// Names the reason for the dependency.
    pub fn because(&mut self, description: impl Into<String>) -> &mut Self {
        self.details.get_or_insert_default().description = description.into();
        self
    }

    /// Re-creates the dependent whenever the required item is modified.
    pub fn recreate_when_modified(&mut self) -> &mut Self {
        self.recreate_when_modified = true;
        self
    }

    /// Applies the dependent again, whenever the required item was changed or made anew: in place, or as its configurator
    /// says. That it must be is remembered until it was.
    pub fn repeat_when_changed(&mut self) -> &mut Self {
        self.repeat_when_changed = true;
        self
    }

    /// Says that the system removes the dependent by itself when the required external item goes.
    pub fn auto_deleted_by_external(&mut self) -> &mut Self {
        self.auto_deleted_by_external = true;
        self
    }

    /// Wants the required item, of type `T`, to satisfy a predicate; `wanted` says which in words.
    pub fn satisfying<T: Item>(
        &mut self,
        wanted: impl Into<String>,
        holds: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> &mut Self {
        self.satisfying_with_reason::<T>(wanted, move |item| {
            if holds(item) {
                return Ok(());
            }
            Err(format!("its state is {}", item.description().replace('\n', ", ")))
        })
    }

    /// Like [`Dependency::satisfying`], with a predicate that itself says why not.
    pub fn satisfying_with_reason<T: Item>(
        &mut self,
        wanted: impl Into<String>,
        check: impl Fn(&T) -> Result<(), String> + Send + Sync + 'static,
    ) -> &mut Self {
        let check = move |required: &ItemHandle| match required.get::<T>() {
            Some(item) => check(item),
            None => Err("it is of an unexpected type".to_owned()),
        };
        self.details.get_or_insert_default().predicate =
            Some(Predicate { wanted: wanted.into(), check: Box::new(check) });
        self
    }
}

impl fmt::Display for Dependency {
    /// Writes what is needed, in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.targets.as_slice() {
            [one] => write!(f, "{one}")?,
            [] => f.write_str("any of nothing")?,
            many => {
                f.write_str("any of ")?;
                for (i, target) in many.iter().enumerate() {
                    write!(f, "{}{target}", if i == 0 { "" } else { ", " })?;
                }
            }
        }
        if let Some(wanted) = self.wanted() {
            write!(f, " that {wanted}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Dependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dependency")
            .field("targets", &self.targets)
            .field("wanted", &self.wanted())
            .field("description", &self.description())
            .field("strength", &self.strength)
            .field("recreate_when_modified", &self.recreate_when_modified)
            .field("repeat_when_changed", &self.repeat_when_changed)
            .field("auto_deleted_by_external", &self.auto_deleted_by_external)
            .finish_non_exhaustive()
    }
}

/// Collects what an item depends on and claims, when it is put into a graph.
///
/// ```
/// # use setpoint_graph::{Deps, Item, Kind, Name};
/// # #[derive(Debug, PartialEq)] struct Link { up: bool }
/// # impl Item for Link {
/// #     const KIND: Kind = Kind::from_static("link");
/// #     fn name(&self) -> Name { Name::from_static("eth0") }
/// # }
/// # fn dependencies(deps: &mut Deps) {
/// deps.requires(("link", "eth0"))
///     .satisfying("is up", |link: &Link| link.up)
///     .because("an address needs a live link");
/// deps.any_of([("gateway", "a"), ("gateway", "b")]);
/// deps.after(("step", "migrate")).repeat_when_changed();
/// deps.claims("port/80");
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Deps {
    dependencies: Vec<Dependency>,
    claims: Vec<ResourceKey>,
}

impl Deps {
    /// Depends on one item.
    pub fn requires(&mut self, target: impl Into<ItemRef>) -> &mut Dependency {
        self.push(SmallVec::from_buf([target.into()]))
    }

    /// Comes after one item: it is not created or changed while that is missing, failed or about to change. Once it
    /// is there, it stays whatever becomes of the other.
    pub fn after(&mut self, target: impl Into<ItemRef>) -> &mut Dependency {
        let dependency = self.push(SmallVec::from_buf([target.into()]));
        dependency.strength = Strength::Order;
        dependency
    }

    /// Depends on any one of several items. With none at all it can never be satisfied.
    pub fn any_of<R: Into<ItemRef>>(&mut self, targets: impl IntoIterator<Item = R>) -> &mut Dependency {
        let mut seen = rustc_hash::FxHashSet::default();
        let targets = targets.into_iter().map(Into::into).filter(|target| seen.insert(target.clone()));
        let targets = targets.collect();
        self.push(targets)
    }

    /// Claims a resource that only one item can hold at a time.
    pub fn claims(&mut self, key: impl Into<ResourceKey>) {
        self.claims.push(key.into());
    }

    fn push(&mut self, targets: SmallVec<[ItemRef; 1]>) -> &mut Dependency {
        self.dependencies.push(Dependency {
            targets,
            strength: Strength::Existence,
            recreate_when_modified: false,
            repeat_when_changed: false,
            auto_deleted_by_external: false,
            details: None,
        });
        let last = self.dependencies.len() - 1;
        &mut self.dependencies[last]
    }

    pub(crate) fn derive(mut self) -> Derived {
        self.claims.sort_unstable();
        self.claims.dedup();
        let any_of = self.dependencies.iter().any(Dependency::is_any_of);
        let rare = (any_of || !self.claims.is_empty()).then(|| {
            let mut dependency_of_edge = Vec::new();
            if any_of {
                for (i, dependency) in (0_u32..).zip(&self.dependencies) {
                    dependency_of_edge.extend(std::iter::repeat_n(i, dependency.targets.len()));
                }
            }
            Box::new(Rare {
                dependency_of_edge: dependency_of_edge.into_boxed_slice(),
                claims: self.claims.into_boxed_slice(),
            })
        });
        let plain = self.dependencies.iter().all(|dependency| {
            !dependency.is_any_of()
                && dependency.wanted().is_none()
                && !dependency.is_order()
                && !dependency.recreate_when_modified
                && !dependency.repeat_when_changed
                && !dependency.auto_deleted_by_external
        });
        Derived { dependencies: self.dependencies.into_boxed_slice(), rare, plain }
    }
}

/// What was derived from an item, in its compact form.
pub(crate) struct Derived {
    dependencies: Box<[Dependency]>,
    rare: Option<Box<Rare>>,
    plain: bool,
}

/// What few items have.
struct Rare {
    /// Which dependency each edge belongs to; empty if that is simply the edge's own position.
    dependency_of_edge: Box<[u32]>,
    claims: Box<[ResourceKey]>,
}

impl Derived {
    pub(crate) fn dependencies(&self) -> &[Dependency] {
        &self.dependencies
    }

    pub(crate) fn claims(&self) -> &[ResourceKey] {
        self.rare.as_ref().map_or(&[], |rare| &rare.claims)
    }

    /// All required items in the order of the edges.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &ItemRef> {
        self.dependencies.iter().flat_map(|dependency| dependency.targets.iter())
    }

    /// Returns whether every dependency only wants one item to exist.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// How many edges there are.
    pub(crate) fn edges(&self) -> usize {
        if self.plain { self.dependencies.len() } else { self.targets().count() }
    }

    /// The position of the dependency that an edge belongs to.
    pub(crate) fn dependency_of_edge(&self, edge: usize) -> usize {
        match &self.rare {
            Some(rare) if !rare.dependency_of_edge.is_empty() => {
                rare.dependency_of_edge.get(edge).map_or(usize::MAX, |&dependency| dependency as usize)
            }
            _ => edge,
        }
    }
}
