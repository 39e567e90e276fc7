//! What the watch of ConfigMaps tells: which version was last seen in each namespace.
//!
//! One watch serves all namespaces that are followed together; each publisher listens to its own.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// The last thing that was seen of a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// Its version; none if it is gone, or if something may have been missed.
    pub version: Option<String>,
}

/// What was last seen of each ConfigMap.
///
/// ```
/// use setpoint_composite::publish::Sightings;
///
/// let sightings = Sightings::default();
/// let mut shop = sightings.subscribe("shop");
/// sightings.saw("shop", Some("7".to_owned()));
/// assert!(shop.has_changed().unwrap());
/// assert_eq!(shop.borrow_and_update().version.as_deref(), Some("7"));
/// sightings.saw("cart", Some("8".to_owned()));
/// assert!(!shop.has_changed().unwrap());
/// sightings.may_have_missed();
/// assert_eq!(shop.borrow_and_update().version, None);
/// ```
#[derive(Debug, Default)]
pub struct Sightings {
    seen: Mutex<BTreeMap<String, watch::Sender<Sighting>>>,
}

impl Sightings {
    /// Listens to one namespace.
    pub fn subscribe(&self, namespace: &str) -> watch::Receiver<Sighting> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|_, sender| sender.receiver_count() > 0);
        seen.entry(namespace.to_owned()).or_default().subscribe()
    }

    /// Tells a namespace what was seen.
    pub fn saw(&self, namespace: &str, version: Option<String>) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = seen.get(namespace) {
            sender.send_replace(Sighting { version });
        }
    }

    /// Tells all namespaces to look for themselves: a watch was started over.
    pub fn may_have_missed(&self) {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for sender in seen.values() {
            sender.send_replace(Sighting::default());
        }
    }
}
