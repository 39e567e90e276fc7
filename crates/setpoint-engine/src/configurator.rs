//! Configurators: what carries out operations on the items of one kind.
//!
//! A configurator is written for its own item type. The registry erases it once, here, and every item is
//! given to it as that type again: nobody downcasts.

use std::any::type_name;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use setpoint_graph::{Item, ItemHandle, Kind};

use crate::metadata::Ownership;
use crate::op::{OpCx, OpError, Operation};

/// Carries out operations on items of one type.
///
/// ```
/// use std::fs;
/// use std::io::ErrorKind;
/// use setpoint_engine::{Configurator, OpCx, OpError};
/// # use setpoint_engine::{DefaultRegistry, Engine, Selection};
/// # use setpoint_graph::{Graph, Item, Kind, Name};
/// # #[derive(Debug, PartialEq)] struct Directory(String);
/// # impl Item for Directory {
/// #     const KIND: Kind = Kind::from_static("directory");
/// #     fn name(&self) -> Name { Name::new(&self.0) }
/// # }
/// struct Directories;
///
/// impl Configurator<Directory> for Directories {
///     async fn create(&self, _: &OpCx, new: &Directory) -> Result<(), OpError> {
///         // It is made or nothing is changed. One that was there before is not ours: an error that may have left
///         // something half done would have it deleted.
///         fs::create_dir(&new.0).map_err(|error| OpError::untouched(error.to_string()))
///     }
///     async fn delete(&self, _: &OpCx, old: &Directory) -> Result<(), OpError> {
///         match fs::remove_dir(&old.0) {
///             Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
///             _ => Ok(()),
///         }
///     }
/// }
/// # let theirs = std::env::temp_dir().join(format!("setpoint-engine-doc-{}", std::process::id()));
/// # fs::create_dir(&theirs)?;
/// # let mut intended = Graph::new("directories");
/// # intended.put_item(Directory(theirs.display().to_string()))?;
/// # let engine = Engine::new(DefaultRegistry::new().with(Directories)).retrying_now();
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// # let mut current = None;
/// # for _ in 0..3 {
/// #     let status = runtime.block_on(engine.reconcile(&mut current, Some(&intended), &Selection::all()))?;
/// #     assert_eq!(status.failures().len(), 1);
/// # }
/// # runtime.block_on(engine.reconcile(&mut current, None, &Selection::all()))?.result()?;
/// # assert!(theirs.is_dir(), "what was there before is left alone");
/// # fs::remove_dir(&theirs)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Configurator<T: Item>: Send + Sync + Sized + 'static {
    /// Brings an item into being.
    fn create(&self, cx: &OpCx, new: &T) -> impl Future<Output = Result<(), OpError>> + Send;

    /// Removes an item. Removing what is not there is a success.
    fn delete(&self, cx: &OpCx, old: &T) -> impl Future<Output = Result<(), OpError>> + Send;

    /// Changes an item in place. A configurator without this method has its items deleted and created instead.
    ///
    /// It is only called where [`Configurator::needs_recreate`] returns `false`.
    fn modify(&self, _cx: &OpCx, _old: &T, _new: &T) -> impl Future<Output = Result<(), OpError>> + Send {
        NoModification
    }

    /// Returns whether the way from old to new is deletion and creation; by default, if there is no
    /// [`modify`](Configurator::modify).
    ///
    /// Plans ask this, and what depends on an item that is re-created is deleted before it and created after it. Override
    /// it where `modify` can't take every change. One configurator that wraps another passes these methods on.
    fn needs_recreate(&self, _ownership: Ownership, _old: &T, _new: &T) -> bool {
        !gives_modify::<T, Self>()
    }

    /// Returns whether an item that must be applied again, because something that it comes after was changed, is deleted and
    /// created for that; by default, if there is no [`modify`](Configurator::modify). For items that run, and know what they
    /// read as it was when they started.
    fn recreates_to_reapply(&self, _item: &T) -> bool {
        !gives_modify::<T, Self>()
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

    /// Lists all items of this type that the real system has; none if it can't list them.
    fn list(&self, _cx: &OpCx) -> impl Future<Output = Result<Option<Vec<T>>, OpError>> + Send {
        async { Ok(None) }
    }
}

/// The future of a `modify` that nobody wrote.
struct NoModification;

impl Future for NoModification {
    type Output = Result<(), OpError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Err(OpError::untouched("this kind of item can't be modified in place")))
    }
}

/// Returns whether a configurator has a `modify` of its own: that returns a future of another type than the default does.
///
/// Nothing is called: only the types are looked at. A test holds this for each way to write the method.
fn gives_modify<T: Item, C: Configurator<T>>() -> bool {
    fn name_of_future<'a, C: 'a, T: 'a, F>(_: impl Fn(&'a C, &'a OpCx, &'a T, &'a T) -> F) -> &'static str {
        type_name::<F>()
    }
    name_of_future(C::modify) != type_name::<NoModification>()
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

impl<T> From<Option<T>> for Observed<T> {
    /// What was looked for is there, or it is not.
    fn from(found: Option<T>) -> Self {
        found.map_or(Self::Absent, Self::Present)
    }
}

type OpFuture<T> = BoxFuture<'static, Result<T, OpError>>;

trait Erased: Send + Sync {
    fn create(self: Arc<Self>, cx: OpCx, new: ItemHandle) -> OpFuture<()>;
    fn delete(self: Arc<Self>, cx: OpCx, old: ItemHandle) -> OpFuture<()>;
    fn modify(self: Arc<Self>, cx: OpCx, old: ItemHandle, new: ItemHandle) -> OpFuture<()>;
    fn read(self: Arc<Self>, cx: OpCx, item: ItemHandle) -> OpFuture<Observed<ItemHandle>>;
    fn list(self: Arc<Self>, cx: OpCx) -> OpFuture<Option<Vec<ItemHandle>>>;
    fn needs_recreate(&self, ownership: Ownership, old: &ItemHandle, new: &ItemHandle) -> bool;
    fn recreates_to_reapply(&self, item: &ItemHandle) -> bool;
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

    fn needs_recreate(&self, ownership: Ownership, old: &ItemHandle, new: &ItemHandle) -> bool {
        match (old.get(), new.get()) {
            (Some(old), Some(new)) => self.configurator.needs_recreate(ownership, old, new),
            // Another type under the same reference: nothing can turn one into the other in place.
            _ => true,
        }
    }

    fn recreates_to_reapply(&self, item: &ItemHandle) -> bool {
        item.get().is_some_and(|item| self.configurator.recreates_to_reapply(item))
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

    pub(crate) fn needs_recreate(&self, ownership: Ownership, old: &ItemHandle, new: &ItemHandle) -> bool {
        self.0.needs_recreate(ownership, old, new)
    }

    pub(crate) fn recreates_to_reapply(&self, item: &ItemHandle) -> bool {
        self.0.recreates_to_reapply(item)
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

    /// Registers a configurator for the kind of its items, in place of an earlier one.
    #[must_use]
    pub fn with<T: Item>(mut self, configurator: impl Configurator<T>) -> Self {
        self.configurators.insert(T::KIND, ConfiguratorHandle::new(configurator));
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

#[cfg(test)]
mod tests {
    use std::future::ready;

    use setpoint_graph::Name;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Thing(u32);

    impl Item for Thing {
        const KIND: Kind = Kind::from_static("thing");
        fn name(&self) -> Name {
            Name::from_static("a")
        }
    }

    /// Makes a configurator with these methods besides `create` and `delete`.
    macro_rules! configurator {
        ($name:ident { $($method:item)* }) => {
            struct $name;
            impl Configurator<Thing> for $name {
                async fn create(&self, _: &OpCx, _: &Thing) -> Result<(), OpError> {
                    Ok(())
                }
                async fn delete(&self, _: &OpCx, _: &Thing) -> Result<(), OpError> {
                    Ok(())
                }
                $($method)*
            }
        };
    }

    configurator! { Plain {} }
    configurator! { Modifying {
        async fn modify(&self, _: &OpCx, _: &Thing, _: &Thing) -> Result<(), OpError> {
            Ok(())
        }
    } }
    configurator! { ModifyingAtOnce {
        fn modify(&self, _: &OpCx, _: &Thing, _: &Thing) -> impl Future<Output = Result<(), OpError>> + Send {
            ready(Ok(()))
        }
    } }
    configurator! { Choosing {
        async fn modify(&self, _: &OpCx, _: &Thing, _: &Thing) -> Result<(), OpError> {
            Ok(())
        }
        fn needs_recreate(&self, _: Ownership, _: &Thing, new: &Thing) -> bool {
            new.0 > 5
        }
    } }

    /// Passes everything on.
    struct Wrapped<C>(C);

    impl<C: Configurator<Thing>> Configurator<Thing> for Wrapped<C> {
        async fn create(&self, cx: &OpCx, new: &Thing) -> Result<(), OpError> {
            self.0.create(cx, new).await
        }
        async fn delete(&self, cx: &OpCx, old: &Thing) -> Result<(), OpError> {
            self.0.delete(cx, old).await
        }
        async fn modify(&self, cx: &OpCx, old: &Thing, new: &Thing) -> Result<(), OpError> {
            self.0.modify(cx, old, new).await
        }
        fn needs_recreate(&self, ownership: Ownership, old: &Thing, new: &Thing) -> bool {
            self.0.needs_recreate(ownership, old, new)
        }
        fn recreates_to_reapply(&self, item: &Thing) -> bool {
            self.0.recreates_to_reapply(item)
        }
    }

    fn recreates(configurator: impl Configurator<Thing>, new: u32) -> bool {
        let configurator = ConfiguratorHandle::new(configurator);
        configurator.needs_recreate(
            Ownership::Owned,
            &ItemHandle::new(Thing(1)),
            &ItemHandle::new(Thing(new)),
        )
    }

    #[test]
    fn items_are_recreated_if_no_modify_is_given_and_modified_if_one_is() {
        assert!(recreates(Plain, 2));
        assert!(!recreates(Modifying, 2));
        assert!(!recreates(ModifyingAtOnce, 2));
    }

    #[test]
    fn a_configurator_may_still_choose_which_changes_are_made_in_place() {
        assert!(!recreates(Choosing, 2));
        assert!(recreates(Choosing, 6));
    }

    #[test]
    fn a_wrapper_that_passes_these_methods_on_answers_as_what_it_wraps() {
        let reapplied =
            |configurator: ConfiguratorHandle| configurator.recreates_to_reapply(&ItemHandle::new(Thing(1)));
        assert!(reapplied(ConfiguratorHandle::new(Wrapped(Plain))));
        assert!(!reapplied(ConfiguratorHandle::new(Wrapped(Modifying))));
        assert!(recreates(Wrapped(Plain), 2));
        assert!(!recreates(Wrapped(Modifying), 2));
        assert!(recreates(Wrapped(Choosing), 6));
    }
}
