//! What things are called: kinds, names, references and resource keys.
//!
//! A [`Kind`] and a [`Name`] together make an [`ItemRef`], which is unique over a whole graph whatever
//! subgraph the item lives in. All of them are cheap to clone and order by their text.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smol_str::SmolStr;

use crate::Item;

macro_rules! text_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, Default)]
        #[serde(transparent)]
        pub struct $name(SmolStr);

        impl $name {
            /// Wraps the text as it is: any text is allowed.
            pub fn new(text: impl AsRef<str>) -> Self {
                Self(SmolStr::new(text))
            }

            /// Wraps a static text without copying it.
            pub const fn from_static(text: &'static str) -> Self {
                Self(SmolStr::new_static(text))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(SmolStr::from(text))
            }
        }

        impl From<&$name> for $name {
            fn from(other: &$name) -> Self {
                other.clone()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }
    };
}

text_newtype! {
    /// What sort of thing an item is, such as `file` or `route`: decides which configurator handles it.
    ///
    /// ```
    /// assert_eq!(setpoint_graph::Kind::from_static("file").as_str(), "file");
    /// ```
    Kind
}
text_newtype! {
    /// What an item is called among those of its kind.
    ///
    /// ```
    /// assert_eq!(setpoint_graph::Name::new("any \"text\"").to_string(), "any \"text\"");
    /// ```
    Name
}
text_newtype! {
    /// Something only one item can hold at a time, such as a port or an address.
    ///
    /// ```
    /// assert!(setpoint_graph::ResourceKey::new("port/80") < "port/81".into());
    /// ```
    ResourceKey
}

/// A graph-wide reference to an item: its kind and its name.
///
/// ```
/// use setpoint_graph::ItemRef;
/// let dir = ItemRef::new("directory", "etc");
/// assert_eq!(dir.to_string(), "directory/etc");
/// assert!(dir < ItemRef::new("file", "a"));
/// ```
#[derive(Clone)]
pub struct ItemRef {
    kind: Kind,
    name: Name,
    /// The hash of both, made once: references are looked up far more often than they are made.
    hash: u32,
}

impl ItemRef {
    /// Makes the reference to the item of this kind and name.
    pub fn new(kind: impl Into<Kind>, name: impl Into<Name>) -> Self {
        let (kind, name) = (kind.into(), name.into());
        let mut hasher = FxHasher::default();
        kind.as_str().hash(&mut hasher);
        name.as_str().hash(&mut hasher);
        let wide = hasher.finish();
        #[expect(clippy::cast_possible_truncation, reason = "both halves are folded into the result")]
        let hash = (wide ^ (wide >> 32)) as u32;
        Self { kind, name, hash }
    }

    /// Makes the reference to the item of this type and name.
    ///
    /// ```
    /// use setpoint_graph::{Item, ItemRef, Kind, Name};
    ///
    /// #[derive(Debug, PartialEq)]
    /// struct File { path: String }
    /// impl Item for File {
    ///     const KIND: Kind = Kind::from_static("file");
    ///     fn name(&self) -> Name { Name::new(&self.path) }
    /// }
    /// assert_eq!(ItemRef::of::<File>("motd"), ItemRef::new("file", "motd"));
    /// ```
    pub fn of<T: Item>(name: impl Into<Name>) -> Self {
        Self::new(T::KIND, name)
    }

    /// What sort of item it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// What the item is called among those of its kind.
    pub fn name(&self) -> &Name {
        &self.name
    }

    pub(crate) fn hash32(&self) -> u32 {
        self.hash
    }

    /// A number that sorts as the reference does wherever two numbers differ; equal numbers decide nothing.
    ///
    /// Sorting many references compares these before it touches their texts. All references must be of
    /// one kind for the order to hold.
    pub fn name_prefix(&self) -> u128 {
        let mut bytes = [0_u8; 16];
        let name = self.name.as_str().as_bytes();
        let len = name.len().min(16);
        bytes[..len].copy_from_slice(&name[..len]);
        u128::from_be_bytes(bytes)
    }
}

impl PartialEq for ItemRef {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.name == other.name && self.kind == other.kind
    }
}

impl Eq for ItemRef {}

impl Hash for ItemRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.hash);
    }
}

impl PartialOrd for ItemRef {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ItemRef {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.kind.cmp(&other.kind).then_with(|| self.name.cmp(&other.name))
    }
}

impl fmt::Display for ItemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl fmt::Debug for ItemRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<K: Into<Kind>, N: Into<Name>> From<(K, N)> for ItemRef {
    fn from((kind, name): (K, N)) -> Self {
        Self::new(kind, name)
    }
}

impl From<&ItemRef> for ItemRef {
    fn from(other: &ItemRef) -> Self {
        other.clone()
    }
}

#[derive(Serialize, Deserialize)]
struct PlainRef {
    kind: Kind,
    name: Name,
}

impl Serialize for ItemRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PlainRef { kind: self.kind.clone(), name: self.name.clone() }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ItemRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let plain = PlainRef::deserialize(deserializer)?;
        Ok(Self::new(plain.kind, plain.name))
    }
}
