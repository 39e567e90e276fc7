//! An item type for tests, and short ways to write graphs.

use serde::{Deserialize, Serialize};
use setpoint_graph::{Deps, Graph, Item, ItemHandle, ItemRef, Kind, Look, Name, State, SubgraphPath};

/// An item whose every aspect a test can choose.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Thing {
    pub(crate) name: String,
    pub(crate) value: u32,
    pub(crate) external: bool,
    pub(crate) needs: Vec<Need>,
    pub(crate) claims: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Need {
    One(String),
    /// The needed thing's value must be at least this.
    AtLeast(String, u32),
    AnyOf(Vec<String>),
}

impl Item for Thing {
    const KIND: Kind = Kind::from_static("thing");

    fn name(&self) -> Name {
        Name::new(&self.name)
    }

    fn label(&self) -> Option<String> {
        self.name.strip_prefix("labelled-").map(|rest| format!("The {rest}"))
    }

    fn external(&self) -> bool {
        self.external
    }

    fn description(&self) -> String {
        format!("thing {} with value {}", self.name, self.value)
    }

    fn dependencies(&self, deps: &mut Deps) {
        for need in &self.needs {
            match need {
                Need::One(name) => {
                    deps.requires(("thing", name.as_str()))
                        .because(format!("{} stands on {name}", self.name));
                }
                Need::AtLeast(name, least) => {
                    let least = *least;
                    deps.requires(("thing", name.as_str()))
                        .satisfying(format!("is at least {least}"), move |thing: &Thing| {
                            thing.value >= least
                        });
                }
                Need::AnyOf(names) => {
                    deps.any_of(names.iter().map(|name| ("thing", name.as_str())));
                }
            }
        }
        for key in &self.claims {
            deps.claims(key.as_str());
        }
    }
}

pub(crate) fn thing(name: &str) -> Thing {
    Thing { name: name.into(), ..Thing::default() }
}

impl Thing {
    pub(crate) fn value(mut self, value: u32) -> Self {
        self.value = value;
        self
    }

    pub(crate) fn needs(mut self, name: &str) -> Self {
        self.needs.push(Need::One(name.into()));
        self
    }

    pub(crate) fn at_least(mut self, name: &str, least: u32) -> Self {
        self.needs.push(Need::AtLeast(name.into(), least));
        self
    }

    pub(crate) fn any_of<const N: usize>(mut self, names: [&str; N]) -> Self {
        self.needs.push(Need::AnyOf(names.map(str::to_owned).to_vec()));
        self
    }

    pub(crate) fn claims(mut self, key: &str) -> Self {
        self.claims.push(key.into());
        self
    }

    pub(crate) fn external(mut self) -> Self {
        self.external = true;
        self
    }
}

/// Makes a type of things that are of another kind.
macro_rules! thing_of_kind {
    ($(#[$doc:meta])* $type:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) struct $type(pub(crate) Thing);

        impl Item for $type {
            const KIND: Kind = Kind::from_static($kind);

            fn name(&self) -> Name {
                self.0.name()
            }

            fn dependencies(&self, deps: &mut Deps) {
                self.0.dependencies(deps);
            }
        }
    };
}

thing_of_kind! {
    /// A thing whose kind sorts before the others'.
    Bridge, "bridge"
}
thing_of_kind! {
    /// A thing whose kind has all that has to be escaped somewhere.
    Odd, "\"<&>\n\\N"
}

/// State data for tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Health {
    Created,
    Absent,
    Busy,
    Broken(String),
}

impl State for Health {
    type Shared = u32;

    fn look(&self) -> Look {
        match self {
            Self::Created => Look::default(),
            Self::Absent => Look { created: false, ..Look::default() },
            Self::Busy => Look { in_transition: true, ..Look::default() },
            Self::Broken(error) => Look { error: Some(error.clone()), ..Look::default() },
        }
    }
}

pub(crate) fn item(name: &str) -> ItemRef {
    ItemRef::new("thing", name)
}

/// A path written as `a/b`; the empty text is the root.
pub(crate) fn path(text: &str) -> SubgraphPath {
    text.split('/').filter(|name| !name.is_empty()).collect()
}

/// A graph of things, each put into the path before the colon.
pub(crate) fn graph<const N: usize>(things: [(&str, impl Into<ItemHandle>); N]) -> Graph {
    let mut graph = Graph::new("test");
    for (place, thing) in things {
        graph.put_item_into(&path(place), thing).unwrap();
    }
    graph
}

/// The references in the graph's order, without their kind.
pub(crate) fn names<S: State>(graph: &Graph<S>) -> Vec<String> {
    graph.items().map(|node| node.reference().name().to_string()).collect()
}
