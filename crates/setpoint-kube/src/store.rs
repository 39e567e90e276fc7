//! The objects that are followed, as they were last seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Resource;
use kube::core::ObjectMeta;
use kube::runtime::watcher::Event;

/// A namespace and a name.
type Place = (String, String);

/// The objects of one kind, by namespace and name.
#[derive(Debug)]
pub struct Store<K> {
    state: Mutex<State<K>>,
}

#[derive(Debug)]
struct State<K> {
    objects: BTreeMap<Place, Arc<K>>,
    /// What was named by the list under way.
    listed: BTreeSet<Place>,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Self { state: Mutex::new(State { objects: BTreeMap::new(), listed: BTreeSet::new() }) }
    }
}

impl<K: Resource> Store<K> {
    /// Takes an event in; returns the namespaces in which something changed.
    ///
    /// What a list does not name any more is gone when the list is complete.
    pub fn apply(&self, event: Event<K>) -> BTreeSet<String> {
        let mut state = self.lock();
        match event {
            Event::Init => {
                state.listed.clear();
                BTreeSet::new()
            }
            Event::InitApply(object) => {
                let place = place(object.meta());
                state.listed.insert(place.clone());
                state.put(place, object)
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut state.listed);
                let gone: Vec<_> =
                    state.objects.keys().filter(|place| !listed.contains(*place)).cloned().collect();
                gone.into_iter().map(|place| state.remove(place)).collect()
            }
            Event::Apply(object) => {
                let place = place(object.meta());
                state.put(place, object)
            }
            Event::Delete(object) => BTreeSet::from([state.remove(place(object.meta()))]),
        }
    }

    /// Keeps what is known of an object that can't be read now.
    pub fn keep(&self, metadata: &ObjectMeta) {
        self.lock().listed.insert(place(metadata));
    }

    /// Returns the objects of one namespace.
    pub fn of(&self, namespace: &str) -> Vec<Arc<K>> {
        let state = self.lock();
        let from = (namespace.to_owned(), String::new());
        let range = state.objects.range(from..).take_while(|((found, _), _)| found == namespace);
        range.map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Returns the namespaces that have objects.
    pub fn namespaces(&self) -> BTreeSet<String> {
        self.lock().objects.keys().map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Returns how many objects there are.
    pub fn len(&self) -> usize {
        self.lock().objects.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nothing under this lock can be half done, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Resource> State<K> {
    fn put(&mut self, place: Place, mut object: K) -> BTreeSet<String> {
        // Nobody reads them, and they are half of an object.
        object.meta_mut().managed_fields = None;
        let same = self.objects.get(&place).is_some_and(|old| {
            old.meta().resource_version.is_some()
                && old.meta().resource_version == object.meta().resource_version
                && old.meta().uid == object.meta().uid
        });
        let namespace = place.0.clone();
        self.objects.insert(place, Arc::new(object));
        if same { BTreeSet::new() } else { BTreeSet::from([namespace]) }
    }

    fn remove(&mut self, place: Place) -> String {
        self.objects.remove(&place);
        place.0
    }
}

fn place(metadata: &ObjectMeta) -> Place {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn map(namespace: &str, name: &str, version: &str) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.namespace = Some(namespace.to_owned());
        map.metadata.name = Some(name.to_owned());
        map.metadata.resource_version = Some(version.to_owned());
        map
    }

    #[test]
    fn what_a_list_does_not_name_any_more_is_gone_when_it_is_complete() {
        let store = Store::default();
        for event in [Event::Init, Event::InitApply(map("a", "x", "1")), Event::InitApply(map("b", "y", "1"))]
        {
            store.apply(event);
        }
        assert_eq!(store.apply(Event::InitDone), BTreeSet::new());
        assert_eq!((store.len(), store.of("a").len(), store.of("c").len()), (2, 1, 0));
        store.apply(Event::Init);
        assert_eq!(store.apply(Event::InitApply(map("a", "x", "1"))), BTreeSet::new(), "it is as it was");
        assert_eq!(store.len(), 2, "nothing is gone before the list is complete");
        assert_eq!(store.apply(Event::InitDone), BTreeSet::from(["b".to_owned()]));
        assert_eq!(store.namespaces(), BTreeSet::from(["a".to_owned()]));
    }

    #[test]
    fn an_object_that_can_not_be_read_now_is_kept_as_it_was() {
        let store = Store::default();
        store.apply(Event::Apply(map("a", "x", "1")));
        store.apply(Event::Init);
        store.keep(&map("a", "x", "2").metadata);
        store.apply(Event::InitDone);
        assert_eq!(store.len(), 1);
        assert_eq!(store.apply(Event::Delete(map("a", "x", "3"))), BTreeSet::from(["a".to_owned()]));
        assert!(store.is_empty());
    }
}
