//! Calls that carry out several operations at once.

use std::fmt;

use serde_json::Value as Json;
use setpoint_haproxy::api::{Key, SECTIONS};
use setpoint_haproxy::compare::{ChildKey, SectionKey};
use setpoint_haproxy::model::{ObjectKind, Version};
use setpoint_plan::Action;

use super::calls::{NoCall, Place, section_call};
use super::info::ApiVersion;
use super::transport::Call;

/// Several operations that one call carries out.
#[derive(Clone, Debug, PartialEq)]
pub struct Bundle {
    /// In which section.
    pub section: SectionKey,
    /// What they come to.
    pub effect: BundleEffect,
    /// What is sent.
    pub body: Json,
}

/// What several operations come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleEffect {
    /// The section is created, with all that stands in it.
    CreateSection,
    /// The list of things of one kind is replaced.
    ReplaceList(ObjectKind),
}

impl fmt::Display for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.effect {
            BundleEffect::CreateSection => write!(f, "+ {} with all that stands in it", self.section),
            BundleEffect::ReplaceList(kind) => write!(f, "~ {}: {}", self.section, kind.collection()),
        }
    }
}

/// Returns the call that carries out a bundle, without the version or transaction that it is made for.
pub(super) fn call_of_bundle(bundle: &Bundle, version: &ApiVersion) -> Result<Call, NoCall> {
    let section = SECTIONS.iter().find(|section| section.keyword == bundle.section.kind);
    let Some(section) = section else {
        return Err(NoCall::because(format!("the API knows no section {}", bundle.section)));
    };
    let body = bundle.body.clone();
    match bundle.effect {
        BundleEffect::CreateSection => {
            let api = version.schema();
            let has_it = section.full.is_some_and(|(since, until)| (since..=until).contains(&api));
            // 3.0 makes defaults by replacing those of a name, which takes no children.
            if !has_it || (section.kind == ObjectKind::Defaults && api == Version::V3_0) {
                return Err(NoCall::because(format!("API {version} makes {} sections alone", section.label)));
            }
            let call = section_call(Action::Create, section, &bundle.section, Some(body), version)?;
            Ok(call.query("full_section", true))
        }
        BundleEffect::ReplaceList(kind) => {
            let none = ChildKey::Index(0);
            let place = Place { kind, within: section.kind, section: &bundle.section, key: &none };
            let child = place.child(version)?;
            if child.key != Key::Index {
                return Err(NoCall::because(format!("a list of {} can't be replaced", kind.collection())));
            }
            Ok(place.collection(child, Call::put)?.json(body))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use setpoint_haproxy::text::SectionKind;

    use super::*;

    fn call(version: &str, kind: SectionKind, effect: BundleEffect) -> Result<String, String> {
        let bundle = Bundle { section: SectionKey::named(kind, "x"), effect, body: json!([]) };
        let call = call_of_bundle(&bundle, &version.parse().unwrap());
        call.map(|call| call.to_string()).map_err(|why| why.to_string())
    }

    #[test]
    fn a_section_with_all_that_stands_in_it_is_one_call() {
        let whole = |version, kind| call(version, kind, BundleEffect::CreateSection);
        assert_eq!(
            whole("v3.0.21", SectionKind::Backend).unwrap(),
            "POST configuration/backends?full_section=true"
        );
        assert!(whole("v3.0.21", SectionKind::CrtStore).unwrap_err().contains("crt-store"));
        assert!(whole("v3.2.0", SectionKind::CrtStore).is_ok());
        assert!(whole("v3.0.21", SectionKind::Defaults).is_err());
        assert!(whole("v3.4.0", SectionKind::Cache).is_err(), "nothing stands in one");
    }

    #[test]
    fn a_list_is_replaced_by_one_call() {
        let list = |kind| call("v3.4.0", SectionKind::Frontend, BundleEffect::ReplaceList(kind));
        assert_eq!(list(ObjectKind::Acl).unwrap(), "PUT configuration/frontends/x/acls");
        assert!(list(ObjectKind::SslFrontUse).is_err(), "it only grows at its end");
        assert!(list(ObjectKind::Bind).is_err(), "they have names");
    }
}
