//! Distinguishes what others write from what is written here.
//!
//! ```text
//!  resources as a watch shows them ──┐
//!                                    ├─▶ News: nothing, a status, or what is declared
//!  what was looked at, or written ───┘
//! ```
//!
//! What is written here comes back as an event, which is no reason to look at everything again. Of each
//! resource only digests are kept.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use kube::core::object::HasStatus;
use kube::{Resource, ResourceExt};
use serde::Serialize;

/// What is new about resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing: it was our own write.
    None,
    /// Something else wrote a status.
    Status,
    /// One was made, changed or deleted.
    Declared,
}

/// The resources of one place as they were last looked at, or written here.
#[derive(Clone, Debug, Default)]
pub struct Known {
    resources: BTreeMap<String, Digests>,
}

/// Digests of what somebody declares, and of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digests {
    declared: u64,
    status: u64,
}

impl Digests {
    fn of<K: Resource + HasStatus<Status: Serialize>>(resource: &K) -> Self {
        let metadata = resource.meta();
        let deleted = metadata.deletion_timestamp.is_some();
        let declared = (metadata.generation, deleted, &metadata.finalizers, &metadata.annotations);
        // What is read from JSON can be written as JSON.
        let status = serde_json::to_string(&resource.status()).unwrap_or_default();
        Self { declared: digest(&declared), status: digest(&status) }
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Known {
    /// Remembers all resources as they are looked at now.
    pub fn look<K>(&mut self, all: impl IntoIterator<Item: Borrow<K>>)
    where
        K: Resource + HasStatus<Status: Serialize>,
    {
        self.resources.clear();
        for resource in all {
            self.remember(resource.borrow());
        }
    }

    /// Remembers a resource as it was just written.
    pub fn remember<K: Resource + HasStatus<Status: Serialize>>(&mut self, resource: &K) {
        self.resources.insert(resource.uid().unwrap_or_default(), Digests::of(resource));
    }

    /// Returns what is new about resources, compared with how they were last looked at or written.
    pub fn news<K>(&self, now: impl IntoIterator<Item: Borrow<K>>) -> News
    where
        K: Resource + HasStatus<Status: Serialize>,
    {
        let (mut news, mut count) = (News::None, 0);
        for resource in now {
            let resource = resource.borrow();
            count += 1;
            let Some(known) = self.resources.get(&resource.uid().unwrap_or_default()) else {
                return News::Declared;
            };
            let now = Digests::of(resource);
            if now.declared != known.declared {
                return News::Declared;
            }
            if now.status != known.status {
                news = News::Status;
            }
        }
        if count == self.resources.len() { news } else { News::Declared }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    /// A resource with a status, which any that has one stands for.
    #[derive(Clone, Debug)]
    struct Own(Pod);

    impl Resource for Own {
        type DynamicType = ();
        type Scope = <Pod as Resource>::Scope;

        fn kind(dynamic: &()) -> std::borrow::Cow<'_, str> {
            Pod::kind(dynamic)
        }

        fn group(dynamic: &()) -> std::borrow::Cow<'_, str> {
            Pod::group(dynamic)
        }

        fn version(dynamic: &()) -> std::borrow::Cow<'_, str> {
            Pod::version(dynamic)
        }

        fn plural(dynamic: &()) -> std::borrow::Cow<'_, str> {
            Pod::plural(dynamic)
        }

        fn meta(&self) -> &kube::core::ObjectMeta {
            self.0.meta()
        }

        fn meta_mut(&mut self) -> &mut kube::core::ObjectMeta {
            self.0.meta_mut()
        }
    }

    impl HasStatus for Own {
        type Status = k8s_openapi::api::core::v1::PodStatus;

        fn status(&self) -> Option<&Self::Status> {
            self.0.status.as_ref()
        }

        fn status_mut(&mut self) -> &mut Option<Self::Status> {
            &mut self.0.status
        }
    }

    fn own(generation: i64, version: &str, phase: &str) -> Own {
        let pod = json!({
            "metadata": { "name": "a", "uid": "1", "generation": generation, "resourceVersion": version },
            "status": { "phase": phase },
        });
        Own(serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn what_is_written_here_is_no_news_and_what_others_write_is() {
        let mut known = Known::default();
        assert_eq!(known.news::<Own>([own(1, "5", "Pending")]), News::Declared, "it was made");
        known.look::<Own>([own(1, "5", "Pending")]);
        known.remember(&own(1, "6", "Running"));
        assert_eq!(known.news::<Own>([own(1, "6", "Running")]), News::None);
        assert_eq!(known.news::<Own>([own(1, "7", "Failed")]), News::Status);
        assert_eq!(known.news::<Own>([own(2, "7", "Running")]), News::Declared);
        assert_eq!(known.news::<Own>([] as [Own; 0]), News::Declared, "it is gone");
    }
}
