//! Configurators: what carries out operations on the items of one kind.
//!
//! A configurator is written for its own item type. The registry erases it once, here, and every item is
//! given to it as that type again: nobody downcasts.

use std::any::type_name;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use setpoint_graph::{Item, ItemHandle, Kind};

use crate::op::{OpCx, OpError, Operation};

/// Carries out operations on items of one type.
///
/// ```
/// use setpoint_engine::{Configurator, OpCx, OpError};
/// # use setpoint_graph::{Item, Kind, Name};
/// # #[derive(Debug, PartialEq)] struct Directory(String);
/// # impl Item for Directory {
/// #     fn kind(&self) -> Kind { Kind::from_static("directory") }
/// #     fn name(&self) -> Name { Name::new(&self.0) }
/// # }
/// struct Directories;
///
/// impl Configurator<Directory> for Directories {
///     async fn create(&self, _: &OpCx, new: &Directory) -> Result<(), OpError> {
///         Ok(std::fs::create_dir(&new.0)?)
///     }
///     async fn delete(&self, _: &OpCx, old: &Directory) -> Result<(), OpError> {
///         Ok(std::fs::remove_dir(&old.0)?)
///     }
/// }
/// ```
pub trait Configurator<T: Item>: Send + Sync + 'static {
    /// Brings an item into being.
    fn create(&self, cx: &OpCx, new: &T) -> impl Future<Output = Result<(), OpError>> + Send;

    /// Removes an item. Removing what is not there is a success.
    fn delete(&self, cx: &OpCx, old: &T) -> impl Future<Output = Result<(), OpError>> + Send;

    /// Changes an item in place. Only called where [`Configurator::needs_recreate`] says no.
    fn modify(&self, _cx: &OpCx, _old: &T, _new: &T) -> impl Future<Output = Result<(), OpError>> + Send {
        async { Err(OpError::untouched("this kind of item can't be modified in place")) }
    }

    /// Whether the way from old to new is deletion and creation; by default always.
    fn needs_recreate(&self, _old: &T, _new: &T) -> bool {
        true
    }

    /// How long an operation on an item may take, or reading it, which is none; where this says nothing, the engine's
    /// limit holds. For items that bring a limit of their own.
    fn limit(&self, _operation: Option<Operation>, _item: &T) -> Option<Duration> {
        None
    }

    /// Reads the item from the real system.
    fn read(&self, _cx: &OpCx, _item: &T) -> impl Future<Output = Result<Observed<T>, OpError>> + Send {
        async { Ok(Observed::Unsupported) }
    }

    /// Lists all items of this type that the real system has; none if that can't be told.
    fn list(&self, _cx: &OpCx) -> impl Future<Output = Result<Option<Vec<T>>, OpError>> + Send {
        async { Ok(None) }
    }
}

/// What reading an item from the real system showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed<T> {
    /// The configurator can't read.
    Unsupported,
    /// The item is not there.
    Absent,
    /// The item is there, like this.
    Present(T),
}

impl<T> Observed<T> {
    pub(crate) fn map<U>(self, f: impl FnOnce(T) -> U) -> Observed<U> {
        match self {
            Self::Unsupported => Observed::Unsupported,
            Self::Absent => Observed::Absent,
            Self::Present(item) => Observed::Present(f(item)),
        }
    }
}

type OpFuture<T> = BoxFuture<'static, Result<T, OpError>>;

trait Erased: Send + Sync {
    fn create(self: Arc<Self>, cx: OpCx, new: ItemHandle) -> OpFuture<()>;
    fn delete(self: Arc<Self>, cx: OpCx, old: ItemHandle) -> OpFuture<()>;
    fn modify(self: Arc<Self>, cx: OpCx, old: ItemHandle, new: ItemHandle) -> OpFuture<()>;
    fn read(self: Arc<Self>, cx: OpCx, item: ItemHandle) -> OpFuture<Observed<ItemHandle>>;
    fn list(self: Arc<Self>, cx: OpCx) -> OpFuture<Option<Vec<ItemHandle>>>;
    fn needs_recreate(&self, old: &ItemHandle, new: &ItemHandle) -> bool;
    fn limit(&self, operation: Option<Operation>, item: &ItemHandle) -> Option<Duration>;
    fn accepts(&self, item: &ItemHandle) -> bool;
    fn item_type(&self) -> &'static str;
}

struct Typed<T, C> {
    configurator: C,
    item: PhantomData<fn(&T)>,
}

fn typed<T: Item>(item: &ItemHandle) -> Result<&T, OpError> {
    item.get().ok_or_else(|| OpError::untouched(format!("{} is no {}", item.reference(), type_name::<T>())))
}

impl<T: Item, C: Configurator<T>> Erased for Typed<T, C> {
    fn create(self: Arc<Self>, cx: OpCx, new: ItemHandle) -> OpFuture<()> {
        Box::pin(async move { self.configurator.create(&cx, typed(&new)?).await })
    }

    fn delete(self: Arc<Self>, cx: OpCx, old: ItemHandle) -> OpFuture<()> {
        Box::pin(async move { self.configurator.delete(&cx, typed(&old)?).await })
    }

    fn modify(self: Arc<Self>, cx: OpCx, old: ItemHandle, new: ItemHandle) -> OpFuture<()> {
        Box::pin(async move { self.configurator.modify(&cx, typed(&old)?, typed(&new)?).await })
    }

    fn read(self: Arc<Self>, cx: OpCx, item: ItemHandle) -> OpFuture<Observed<ItemHandle>> {
        Box::pin(async move {
            let observed = self.configurator.read(&cx, typed(&item)?).await?;
            Ok(observed.map(ItemHandle::new))
        })
    }

    fn list(self: Arc<Self>, cx: OpCx) -> OpFuture<Option<Vec<ItemHandle>>> {
        Box::pin(async move {
            let listed = self.configurator.list(&cx).await?;
            Ok(listed.map(|items| items.into_iter().map(ItemHandle::new).collect()))
        })
    }

    fn needs_recreate(&self, old: &ItemHandle, new: &ItemHandle) -> bool {
        match (old.get(), new.get()) {
            (Some(old), Some(new)) => self.configurator.needs_recreate(old, new),
            // Another type under the same reference: nothing can turn one into the other in place.
            _ => true,
        }
    }

    fn limit(&self, operation: Option<Operation>, item: &ItemHandle) -> Option<Duration> {
        item.get().and_then(|item| self.configurator.limit(operation, item))
    }

    fn accepts(&self, item: &ItemHandle) -> bool {
        item.get::<T>().is_some()
    }

    fn item_type(&self) -> &'static str {
        type_name::<T>()
    }
}

/// A configurator whose item type is erased, as registries hand it out.
#[derive(Clone)]
pub struct ConfiguratorHandle(Arc<dyn Erased>);

impl ConfiguratorHandle {
    /// Erases the item type of a configurator.
    pub fn new<T: Item>(configurator: impl Configurator<T>) -> Self {
        Self(Arc::new(Typed { configurator, item: PhantomData }))
    }

    pub(crate) fn create(&self, cx: OpCx, new: ItemHandle) -> OpFuture<()> {
        Arc::clone(&self.0).create(cx, new)
    }

    pub(crate) fn delete(&self, cx: OpCx, old: ItemHandle) -> OpFuture<()> {
        Arc::clone(&self.0).delete(cx, old)
    }

    pub(crate) fn modify(&self, cx: OpCx, old: ItemHandle, new: ItemHandle) -> OpFuture<()> {
        Arc::clone(&self.0).modify(cx, old, new)
    }

    pub(crate) fn read(&self, cx: OpCx, item: ItemHandle) -> OpFuture<Observed<ItemHandle>> {
        Arc::clone(&self.0).read(cx, item)
    }

    pub(crate) fn list(&self, cx: OpCx) -> OpFuture<Option<Vec<ItemHandle>>> {
        Arc::clone(&self.0).list(cx)
    }

    pub(crate) fn needs_recreate(&self, old: &ItemHandle, new: &ItemHandle) -> bool {
        self.0.needs_recreate(old, new)
    }

    /// The limit that the item brings; none if asking for it panicked.
    pub(crate) fn limit(&self, operation: Option<Operation>, item: &ItemHandle) -> Option<Duration> {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.0.limit(operation, item)))
            .ok()
            .flatten()
    }

    pub(crate) fn accepts(&self, item: &ItemHandle) -> bool {
        self.0.accepts(item)
    }

    pub(crate) fn item_type(&self) -> &'static str {
        self.0.item_type()
    }
}

impl fmt::Debug for ConfiguratorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConfiguratorHandle({})", self.item_type())
    }
}

/// Knows which configurator handles which kind of item.
pub trait Registry: Send + Sync + 'static {
    /// The configurator for a kind; none if the kind is unknown.
    fn configurator(&self, kind: &Kind) -> Option<ConfiguratorHandle>;

    /// The kinds that are known, in order.
    fn kinds(&self) -> Vec<Kind>;
}

/// One configurator for each kind.
#[derive(Clone, Debug, Default)]
pub struct DefaultRegistry {
    configurators: BTreeMap<Kind, ConfiguratorHandle>,
}

impl DefaultRegistry {
    /// Makes a registry that knows no kind.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers the configurator of a kind, in place of an earlier one.
    #[must_use]
    pub fn with<T: Item>(mut self, kind: impl Into<Kind>, configurator: impl Configurator<T>) -> Self {
        self.configurators.insert(kind.into(), ConfiguratorHandle::new(configurator));
        self
    }
}

impl Registry for DefaultRegistry {
    fn configurator(&self, kind: &Kind) -> Option<ConfiguratorHandle> {
        self.configurators.get(kind).cloned()
    }

    fn kinds(&self) -> Vec<Kind> {
        self.configurators.keys().cloned().collect()
    }
}
