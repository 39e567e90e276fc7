//! The index of one kind of resources.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use smol_str::SmolStr;

use super::{NotAResource, Path, Resource, ResourceId};

/// By what resources are found, and what of them is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// What the paths find in a resource is its key, in their order. Where one finds several values, as with `[*]`, the resource
    /// has several keys; where it finds none, that part of the key is empty.
    pub index_by: Vec<Path>,
    /// What is not kept of a resource.
    pub ignored: Vec<Path>,
}

/// What became of a resource that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is new.
    Created,
    /// Another version of it was there, and what is kept of it differs.
    Modified,
    /// What is kept of it is as it was.
    Not,
}

/// All resources of one kind, by their keys.
#[derive(Clone, Debug)]
pub struct Index {
    keys: Arc<Keys>,
    data: Arc<Data>,
}

/// An index as it was at an instant.
#[derive(Clone, Debug)]
pub struct Snapshot {
    data: Arc<Data>,
}

type Key = Vec<SmolStr>;

#[derive(Clone, Debug, Default)]
struct Data {
    all: BTreeMap<ResourceId, Entry>,
    by_key: BTreeMap<(Key, ResourceId), Arc<Resource>>,
}

#[derive(Clone, Debug)]
struct Entry {
    resource: Arc<Resource>,
    keys: Vec<Key>,
}

impl Index {
    /// An index in which there is nothing.
    pub fn new(keys: Keys) -> Self {
        Self { keys: Arc::new(keys), data: Arc::default() }
    }

    /// By what it finds resources.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Puts a resource, in the place of an earlier version of it.
    pub fn put(&mut self, mut object: Value) -> Result<(ResourceId, Changed), NotAResource> {
        for path in &self.keys.ignored {
            path.remove(&mut object);
        }
        let resource = Resource::new(&object)?;
        let id = resource.id().clone();
        let before = self.data.all.get(&id);
        if before.is_some_and(|before| before.resource.value() == resource.value()) {
            return Ok((id, Changed::Not));
        }
        let changed = if before.is_some() { Changed::Modified } else { Changed::Created };
        let keys = self.keys.of(&object);
        let data = Arc::make_mut(&mut self.data);
        data.remove(&id);
        data.put(Entry { resource: Arc::new(resource), keys });
        Ok((id, changed))
    }

    /// Removes a resource. Returns whether it was there.
    pub fn remove(&mut self, id: &ResourceId) -> bool {
        self.data.all.contains_key(id) && Arc::make_mut(&mut self.data).remove(id)
    }

    /// Removes all resources but these. Returns which ones that were.
    pub fn retain(&mut self, wanted: impl Fn(&ResourceId) -> bool) -> Vec<ResourceId> {
        let gone: Vec<ResourceId> = self.data.all.keys().filter(|id| !wanted(id)).cloned().collect();
        for id in &gone {
            self.remove(id);
        }
        gone
    }

    /// Returns everything as it is now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { data: Arc::clone(&self.data) }
    }
}

impl Snapshot {
    /// All resources, by namespace and name.
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Arc<Resource>> {
        self.data.all.values().map(|entry| &entry.resource)
    }

    /// The resources whose key begins with these parts, by key, namespace and name.
    pub fn fetch(&self, parts: &[SmolStr]) -> impl Iterator<Item = &Arc<Resource>> {
        let from = (parts.to_vec(), ResourceId::default());
        let found = self.data.by_key.range(from..);
        found.take_while(move |((key, _), _)| key.starts_with(parts)).map(|(_, resource)| resource)
    }

    /// One resource.
    pub fn get(&self, id: &ResourceId) -> Option<&Arc<Resource>> {
        self.data.all.get(id).map(|entry| &entry.resource)
    }

    /// Returns whether nothing was changed between the two.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.data, &other.data)
    }
}

impl Data {
    fn put(&mut self, entry: Entry) {
        let id = entry.resource.id();
        for key in &entry.keys {
            self.by_key.insert((key.clone(), id.clone()), Arc::clone(&entry.resource));
        }
        self.all.insert(id.clone(), entry);
    }

    fn remove(&mut self, id: &ResourceId) -> bool {
        let Some(entry) = self.all.remove(id) else { return false };
        for key in entry.keys {
            self.by_key.remove(&(key, id.clone()));
        }
        true
    }
}

impl Keys {
    /// The keys of a resource: each combination of what the paths find.
    fn of(&self, object: &Value) -> Vec<Key> {
        let mut keys = vec![Key::new()];
        for path in &self.index_by {
            let mut parts: Vec<SmolStr> = path.find(object).into_iter().map(part).collect();
            if parts.is_empty() {
                parts.push(SmolStr::default());
            }
            let with_each = |key: Key| {
                parts
                    .iter()
                    .map(move |part| key.iter().chain([part]).cloned().collect())
                    .collect::<Vec<Key>>()
            };
            keys = keys.into_iter().flat_map(with_each).collect();
        }
        keys
    }
}

/// A value as a part of a key.
fn part(value: &Value) -> SmolStr {
    match value {
        Value::String(text) => text.into(),
        Value::Null => SmolStr::default(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Just, Strategy, any};
    use proptest::{prop_assert_eq, prop_oneof, proptest};
    use serde_json::json;

    use super::*;

    fn by(paths: &[&str]) -> Keys {
        Keys { index_by: paths.iter().map(|path| path.parse().unwrap()).collect(), ignored: Vec::new() }
    }

    fn slice(name: &str, service: &str) -> Value {
        json!({ "metadata": { "namespace": "shop", "name": name, "labels": { "kubernetes.io/service-name": service } } })
    }

    fn names<'a>(found: impl Iterator<Item = &'a Arc<Resource>>) -> Vec<String> {
        found.map(|resource| resource.id().to_string()).collect()
    }

    #[test]
    fn resources_are_found_by_their_whole_key_and_by_the_first_parts_of_it() {
        let mut index =
            Index::new(by(&["metadata.namespace", r"metadata.labels.kubernetes\.io/service-name"]));
        for (name, service) in [("web-2", "web"), ("web-1", "web"), ("api-1", "api"), ("webs-1", "webs")] {
            index.put(slice(name, service)).unwrap();
        }
        let found = index.snapshot();
        assert_eq!(names(found.fetch(&["shop".into(), "web".into()])), ["shop/web-1", "shop/web-2"]);
        assert_eq!(names(found.fetch(&["shop".into()])).len(), 4);
        assert_eq!(names(found.all()), ["shop/api-1", "shop/web-1", "shop/web-2", "shop/webs-1"]);
        assert!(names(found.fetch(&["shop".into(), "we".into()])).is_empty(), "parts are whole");
    }

    #[test]
    fn a_resource_with_several_values_at_a_path_is_found_by_each() {
        let mut index = Index::new(by(&["spec.tls[*].secretName"]));
        index.put(json!({ "metadata": { "name": "i" }, "spec": { "tls": [{ "secretName": "a" }, { "secretName": "b" }] } })).unwrap();
        for secret in ["a", "b"] {
            assert_eq!(names(index.snapshot().fetch(&[secret.into()])), ["i"]);
        }
        index.put(json!({ "metadata": { "name": "i" }, "spec": {} })).unwrap();
        assert!(names(index.snapshot().fetch(&["a".into()])).is_empty());
        assert_eq!(names(index.snapshot().fetch(&[SmolStr::default()])), ["i"], "its key is empty");
    }

    #[test]
    fn what_is_ignored_is_not_kept_and_is_no_change() {
        let keys = Keys { ignored: vec!["metadata.managedFields".parse().unwrap()], ..Keys::default() };
        let mut index = Index::new(keys);
        let object = |fields: &str| json!({ "metadata": { "name": "a", "managedFields": fields } });
        assert_eq!(index.put(object("1")).unwrap().1, Changed::Created);
        assert_eq!(index.put(object("2")).unwrap().1, Changed::Not);
        let kept = index.snapshot().all().next().unwrap().value().get_attr("metadata").unwrap();
        assert!(kept.get_attr("managedFields").unwrap().is_undefined());
    }

    #[test]
    fn a_snapshot_stays_as_it_is() {
        let mut index = Index::new(by(&["metadata.namespace"]));
        index.put(slice("a", "x")).unwrap();
        let before = index.snapshot();
        assert!(before.is_same(&index.snapshot()));
        index.put(slice("b", "x")).unwrap();
        index.remove(&ResourceId::new("shop", "a"));
        assert!(!before.is_same(&index.snapshot()));
        assert_eq!(
            (names(before.all()), names(index.snapshot().all())),
            (vec!["shop/a".into()], vec!["shop/b".into()])
        );
    }

    #[test]
    fn what_is_no_resource_is_refused() {
        let mut index = Index::new(Keys::default());
        assert_eq!(index.put(json!([])), Err(NotAResource::NoObject));
        assert_eq!(index.put(json!({ "metadata": { "name": "" } })), Err(NotAResource::NoName));
    }

    proptest! {
        /// The model: a list of all resources, searched one by one.
        #[test]
        fn an_index_finds_what_a_search_through_all_resources_finds(
            changes in vec(prop_oneof![
                3 => (0..6u8, 0..3u8, 0..3u8).prop_map(Some),
                1 => any::<u8>().prop_flat_map(|_| Just(None)),
            ], 0..40),
        ) {
            let mut index = Index::new(by(&["a", "b"]));
            let mut all: BTreeMap<u8, (u8, u8)> = BTreeMap::new();
            for change in changes {
                if let Some((name, a, b)) = change {
                    let object = json!({ "metadata": { "name": name.to_string() }, "a": a.to_string(), "b": b });
                    index.put(object).unwrap();
                    all.insert(name, (a, b));
                } else {
                    let Some((name, _)) = all.pop_first() else { continue };
                    prop_assert_eq!(index.remove(&ResourceId::new("", name.to_string())), true);
                }
                let found = index.snapshot();
                for a in 0..3u8 {
                    let wanted = all.values().filter(|value| value.0 == a).count();
                    prop_assert_eq!(found.fetch(&[a.to_string().into()]).count(), wanted);
                    for b in 0..3u8 {
                        let is_wanted = |value: &&(u8, u8)| **value == (a, b);
                        let wanted: Vec<String> =
                            all.iter().filter(|(_, value)| is_wanted(value)).map(|(name, _)| name.to_string()).collect();
                        let key = [a.to_string().into(), b.to_string().into()];
                        prop_assert_eq!(names(found.fetch(&key)), wanted);
                    }
                }
            }
        }
    }
}
