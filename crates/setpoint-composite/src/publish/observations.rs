//! What the watch of ConfigMaps observed: which version was last seen in each namespace.
//!
//! One watch serves all namespaces that are followed together; each publisher subscribes to its own.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// The last thing that was seen of a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Its version; none if it is gone, or if something may have been missed.
    pub version: Option<String>,
}

/// What was last seen of each ConfigMap.
///
/// ```
/// use setpoint_composite::publish::Observations;
///
/// let observations = Observations::default();
/// let mut shop = observations.subscribe("shop");
/// observations.observed("shop", Some("7".to_owned()));
/// assert!(shop.has_changed().unwrap());
/// assert_eq!(shop.borrow_and_update().version.as_deref(), Some("7"));
/// observations.observed("cart", Some("8".to_owned()));
/// assert!(!shop.has_changed().unwrap());
/// observations.may_have_missed();
/// assert_eq!(shop.borrow_and_update().version, None);
/// ```
#[derive(Debug, Default)]
pub struct Observations {
    seen: Mutex<BTreeMap<String, watch::Sender<Observation>>>,
}

impl Observations {
    /// Subscribes to one namespace.
    pub fn subscribe(&self, namespace: &str) -> watch::Receiver<Observation> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, sender| sender.receiver_count() > 0);
        seen.entry(namespace.to_owned()).or_default().subscribe()
    }

    /// Sets what was observed in a namespace.
    pub fn observed(&self, namespace: &str, version: Option<String>) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = seen.get(namespace) {
            sender.send_replace(Observation { version });
        }
    }

    /// Makes all namespaces look for themselves: a watch was started over.
    pub fn may_have_missed(&self) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for sender in seen.values() {
            sender.send_replace(Observation::default());
        }
    }
}
