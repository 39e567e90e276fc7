//! What a Composite declares, without any of Kubernetes.

use std::collections::BTreeMap;

use crate::{Attribute, Key};

/// One namespace's part of a composite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The namespace that the resource is in.
    pub operator_namespace: String,
    /// The namespace of the origin, which also names the composite if this is its baseline.
    pub origin: String,
    /// The namespace of the blue-green controller; only together with a peer.
    pub controller: Option<String>,
    /// The namespace of the peer; only together with a controller.
    pub peer: Option<String>,
    /// The baseline that this is a satellite of; none if this is the baseline.
    pub baseline: Option<Baseline>,
}

/// The baseline of a satellite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    /// The namespace of its origin, which names the composite.
    pub origin: String,
    /// The namespace of its blue-green controller.
    pub controller: Option<String>,
    /// The namespace of its peer.
    pub peer: Option<String>,
}

/// The key from which the applications of a namespace learn where their structure is.
pub fn structure_ref_key(namespace: &str) -> String {
    format!("config/{namespace}/application/composite/structureRef")
}

impl Declaration {
    /// The id of the composite: the origin of its baseline.
    pub fn composite_id(&self) -> &str {
        self.baseline.as_ref().map_or(&self.origin, |baseline| &baseline.origin)
    }

    /// Every key that is declared, with its value.
    ///
    /// ```
    /// use setpoint_structure::declare::Declaration;
    ///
    /// let baseline = Declaration {
    ///     operator_namespace: "shop".into(),
    ///     origin: "shop".into(),
    ///     controller: None,
    ///     peer: None,
    ///     baseline: None,
    /// };
    /// let keys: Vec<_> = baseline.keys().into_iter().collect();
    /// assert_eq!(
    ///     keys,
    ///     [
    ///         ("composite/shop/structure/shop/compositeRole".into(), "baseline".into()),
    ///         ("config/shop/application/composite/structureRef".into(), "composite/shop/structure".into()),
    ///     ],
    /// );
    /// ```
    pub fn keys(&self) -> BTreeMap<String, String> {
        let composite_id = self.composite_id();
        let role = if self.baseline.is_some() { "satellite" } else { "baseline" };
        let mut keys = BTreeMap::new();
        let mut declare = |namespace: &str, attribute, value: &str| {
            keys.insert(Key { composite_id, namespace, attribute }.to_string(), value.to_owned());
        };
        match (&self.controller, &self.peer) {
            (Some(controller), Some(peer)) => {
                let members = [
                    ("controller", controller, None),
                    ("origin", &self.origin, Some(controller)),
                    ("peer", peer, Some(controller)),
                ];
                for (bluegreen, namespace, its_controller) in members {
                    declare(namespace, Attribute::CompositeRole, role);
                    declare(namespace, Attribute::BluegreenRole, bluegreen);
                    if let Some(its_controller) = its_controller {
                        declare(namespace, Attribute::ControllerNamespace, its_controller);
                    }
                }
            }
            _ => declare(&self.operator_namespace, Attribute::CompositeRole, role),
        }
        keys.insert(
            structure_ref_key(&self.operator_namespace),
            format!("composite/{composite_id}/structure"),
        );
        keys
    }
}
