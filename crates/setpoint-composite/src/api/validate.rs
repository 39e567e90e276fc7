//! What a Composite must declare, checked here as well as by the API server.

use super::{Baseline, CompositeSpec};

/// Why a Composite can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpec {
    /// A namespace that must be there is blank.
    #[error("{0} must not be blank")]
    Blank(&'static str),
    /// It can't be the name of a namespace.
    #[error("{field} is `{value}`, which can't be the name of a namespace")]
    NotANamespace {
        /// Which field.
        field: &'static str,
        /// What it holds.
        value: String,
    },
    /// One of two that belong together is missing.
    #[error("{0}controllerNamespace and {0}peerNamespace belong together: set both or neither")]
    HalfPair(&'static str),
    /// Two roles share a namespace.
    #[error("originNamespace, controllerNamespace and peerNamespace must be three different namespaces")]
    SharedNamespace,
    /// It names itself as its baseline.
    #[error(
        "a namespace can't be a satellite of itself: baseline.originNamespace must differ from originNamespace"
    )]
    OwnSatellite,
}

impl CompositeSpec {
    /// Checks what it declares; returns the first thing that is wrong.
    pub fn validate(&self) -> Result<(), InvalidSpec> {
        let (controller, peer) = (self.controller(), self.peer());
        required("originNamespace", &self.origin_namespace)?;
        optional("controllerNamespace", controller)?;
        optional("peerNamespace", peer)?;
        if controller.is_some() != peer.is_some() {
            return Err(InvalidSpec::HalfPair(""));
        }
        let origin = Some(self.origin_namespace.as_str());
        if controller.is_some() && (controller == origin || peer == origin || controller == peer) {
            return Err(InvalidSpec::SharedNamespace);
        }
        let Some(baseline) = &self.baseline else { return Ok(()) };
        required("baseline.originNamespace", &baseline.origin_namespace)?;
        optional("baseline.controllerNamespace", baseline.controller())?;
        optional("baseline.peerNamespace", baseline.peer())?;
        if baseline.controller().is_some() != baseline.peer().is_some() {
            return Err(InvalidSpec::HalfPair("baseline."));
        }
        if baseline.origin_namespace == self.origin_namespace {
            return Err(InvalidSpec::OwnSatellite);
        }
        Ok(())
    }

    /// The id of the composite: its baseline's origin.
    pub fn composite_id(&self) -> &str {
        self.baseline.as_ref().map_or(&self.origin_namespace, |baseline| &baseline.origin_namespace)
    }

    /// Returns whether it is a baseline itself, and no satellite of one.
    pub fn is_baseline(&self) -> bool {
        self.baseline.is_none()
    }

    /// The namespace of the blue-green controller, if one is named.
    pub fn controller(&self) -> Option<&str> {
        not_blank(self.controller_namespace.as_deref())
    }

    /// The namespace in the role `peer`, if one is named.
    pub fn peer(&self) -> Option<&str> {
        not_blank(self.peer_namespace.as_deref())
    }
}

impl Baseline {
    /// The namespace of its blue-green controller, if one is named.
    pub fn controller(&self) -> Option<&str> {
        not_blank(self.controller_namespace.as_deref())
    }

    /// Its namespace in the role `peer`, if one is named.
    pub fn peer(&self) -> Option<&str> {
        not_blank(self.peer_namespace.as_deref())
    }
}

fn not_blank(value: Option<&str>) -> Option<&str> {
    value.filter(|value| !value.trim().is_empty())
}

fn required(field: &'static str, value: &str) -> Result<(), InvalidSpec> {
    let value = not_blank(Some(value)).ok_or(InvalidSpec::Blank(field))?;
    optional(field, Some(value))
}

fn optional(field: &'static str, value: Option<&str>) -> Result<(), InvalidSpec> {
    match value {
        Some(value) if !is_namespace(value) => {
            Err(InvalidSpec::NotANamespace { field, value: value.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Returns whether Kubernetes would take it as the name of a namespace: a DNS label.
fn is_namespace(name: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.len() <= 63
        && name.bytes().all(inside)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(
        origin: &str,
        controller: Option<&str>,
        peer: Option<&str>,
        baseline: Option<&str>,
    ) -> CompositeSpec {
        CompositeSpec {
            origin_namespace: origin.to_owned(),
            controller_namespace: controller.map(str::to_owned),
            peer_namespace: peer.map(str::to_owned),
            baseline: baseline
                .map(|origin| Baseline { origin_namespace: origin.to_owned(), ..Baseline::default() }),
        }
    }

    #[test]
    fn a_composite_is_valid_alone_in_blue_green_and_as_a_satellite() {
        for valid in [
            spec("bl-o", None, None, None),
            spec("bl-o", Some(""), Some("  "), None),
            spec("bl-o", Some("bl-c"), Some("bl-p"), None),
            spec("sat-o", None, None, Some("bl-o")),
            spec("sat-o", Some("sat-c"), Some("sat-p"), Some("bl-o")),
        ] {
            assert_eq!(valid.validate(), Ok(()), "{valid:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_composite_is_reported() {
        let long = "x".repeat(64);
        for (invalid, why) in [
            (spec("", None, None, None), "originNamespace must not be blank"),
            (spec(" ", None, None, None), "originNamespace must not be blank"),
            (spec("Upper", None, None, None), "originNamespace is `Upper`, which"),
            (spec("a/b", None, None, None), "originNamespace is `a/b`, which"),
            (spec("-a", None, None, None), "originNamespace is `-a`, which"),
            (spec(&long, None, None, None), "originNamespace is `xxx"),
            (spec("o", Some("c"), None, None), "controllerNamespace and peerNamespace belong together"),
            (spec("o", None, Some("p"), None), "controllerNamespace and peerNamespace belong together"),
            (spec("o", Some("o"), Some("p"), None), "three different namespaces"),
            (spec("o", Some("c"), Some("c"), None), "three different namespaces"),
            (spec("o", None, None, Some("")), "baseline.originNamespace must not be blank"),
            (spec("o", None, None, Some("o")), "can't be a satellite of itself"),
        ] {
            let message = invalid.validate().unwrap_err().to_string();
            assert!(message.contains(why), "{message}");
        }
        let mut half = spec("o", None, None, Some("b"));
        half.baseline.as_mut().unwrap().peer_namespace = Some("p".to_owned());
        assert_eq!(half.validate(), Err(InvalidSpec::HalfPair("baseline.")));
    }

    #[test]
    fn the_id_is_the_origin_of_the_baseline() {
        assert_eq!(spec("bl-o", None, None, None).composite_id(), "bl-o");
        assert_eq!(spec("sat-o", None, None, Some("bl-o")).composite_id(), "bl-o");
        assert_eq!(spec("sat-o", Some("sat-c"), Some("sat-p"), Some("bl-o")).composite_id(), "bl-o");
    }

    #[test]
    fn without_a_baseline_it_is_one() {
        assert!(spec("bl-o", None, None, None).is_baseline());
        assert!(!spec("sat-o", None, None, Some("bl-o")).is_baseline());
    }
}
