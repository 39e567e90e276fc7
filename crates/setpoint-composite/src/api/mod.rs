//! The custom resource `Composite`: what a namespace declares, and the status of it.
//!
//! ```text
//!  Composite { subKind, spec } ──validate──▶ Declaration (plain data, see `declare`)
//!            { status }        ◀── conditions, owned keys, what was published
//! ```
//!
//! The definition of the resource is generated from these types ([`crd`]); the API server refuses what
//! [`validate`](CompositeSpec::validate) would refuse, except where its definition is older than this program.
#![expect(unreachable_pub, reason = "the derive of schemas makes inner copies of the types")]
#![expect(clippy::duplicated_attributes, reason = "each printer column has a type")]
#![expect(clippy::struct_field_names, reason = "they are the names of the API")]

mod conditions;
mod definition;
mod status;
mod validate;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{CustomResource, KubeSchema, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use conditions::{ConditionType, condition};
pub use definition::crd;
pub use status::{CompositeStatus, MAX_ISSUES, Phase, Published, Role, StatusIssue};
pub use validate::InvalidSpec;

/// The API group.
pub const GROUP: &str = "core.netcracker.com";
/// The finalizer that is set before the first write to Consul.
pub const FINALIZER: &str = "setpoint.dev/composite-keys";
/// The annotation that lets a Composite go although its keys can't be removed from Consul.
pub const RELEASE_ANNOTATION: &str = "setpoint.dev/leave-keys";

/// What the name of a namespace looks like.
const NAME: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// The same, where blank is as good as not set.
const NAME_OR_BLANK: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$";
/// How long the name of a namespace may be.
const NAME_LENGTH: u32 = 63;
/// What holds of a blue-green controller and its peer.
const PAIR: &str = "(has(self.controllerNamespace) && self.controllerNamespace != '') == (has(self.peerNamespace) && self.peerNamespace != '')";
const PAIR_MESSAGE: &str = "controllerNamespace and peerNamespace belong together: set both or neither";

/// A namespace's part of a composite structure.
///
/// `subKind` stands beside `spec`, as it always has in this API, which is why both are fields of this type.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[kube(
    group = "core.netcracker.com",
    version = "v1",
    kind = "Composite",
    plural = "composites",
    namespaced,
    no_spec,
    derive = "PartialEq",
    status = "CompositeStatus",
    doc = "A namespace's part of a composite structure.",
    printcolumn(name = "Id", type_ = "string", json_path = ".status.compositeId"),
    printcolumn(name = "Role", type_ = "string", json_path = ".status.role"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Phase", type_ = "string", priority = 1, json_path = ".status.phase"),
    printcolumn(
        name = "Synced",
        type_ = "string",
        priority = 1,
        json_path = ".status.conditions[?(@.type==\"Synced\")].status"
    ),
    printcolumn(
        name = "Published",
        type_ = "string",
        priority = 1,
        json_path = ".status.conditions[?(@.type==\"Published\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct CompositeFields {
    /// What kind of declaration it is.
    pub sub_kind: SubKind,
    /// The namespaces.
    pub spec: CompositeSpec,
}

/// The kinds of declarations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum SubKind {
    /// A part of a composite structure.
    #[default]
    CompositeStructure,
}

/// The namespaces that a Composite declares.
///
/// ```
/// use setpoint_composite::api::CompositeSpec;
///
/// let spec: CompositeSpec = serde_json::from_value(serde_json::json!({
///     "originNamespace": "sat-o",
///     "baseline": { "originNamespace": "bl-o" },
/// }))?;
/// assert!(spec.validate().is_ok());
/// assert_eq!(spec.composite_id(), "bl-o");
/// assert!(!spec.is_baseline());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[x_kube(
    validation = Rule::new(PAIR).message(PAIR_MESSAGE),
    validation = Rule::new(
        "!has(self.controllerNamespace) || self.controllerNamespace == '' || (has(self.peerNamespace) && self.controllerNamespace != self.originNamespace && self.peerNamespace != self.originNamespace && self.controllerNamespace != self.peerNamespace)"
    ).message("originNamespace, controllerNamespace and peerNamespace must be three different namespaces"),
    validation = Rule::new(
        "!has(self.baseline) || self.baseline.originNamespace != self.originNamespace"
    ).message("a namespace can't be a satellite of itself: baseline.originNamespace must differ from originNamespace")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CompositeSpec {
    /// The namespace in the role `origin`, or the only one.
    #[schemars(length(min = 1, max = NAME_LENGTH), regex(pattern = NAME))]
    pub origin_namespace: String,
    /// The namespace of the blue-green controller. It is set together with `peerNamespace`; blank is as good as not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME_LENGTH), regex(pattern = NAME_OR_BLANK))]
    pub controller_namespace: Option<String>,
    /// The namespace in the role `peer`. It is set together with `controllerNamespace`; blank is as good as not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME_LENGTH), regex(pattern = NAME_OR_BLANK))]
    pub peer_namespace: Option<String>,
    /// The baseline that this satellite belongs to; a baseline has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
}

/// The baseline of a satellite.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[x_kube(
    validation = Rule::new(PAIR).message(PAIR_MESSAGE)
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Baseline {
    /// The baseline's namespace in the role `origin`, or its only one: it is the id of the composite.
    #[schemars(length(min = 1, max = NAME_LENGTH), regex(pattern = NAME))]
    pub origin_namespace: String,
    /// The baseline's namespace of the blue-green controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME_LENGTH), regex(pattern = NAME_OR_BLANK))]
    pub controller_namespace: Option<String>,
    /// The baseline's namespace in the role `peer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME_LENGTH), regex(pattern = NAME_OR_BLANK))]
    pub peer_namespace: Option<String>,
}

impl Composite {
    /// What it declares.
    pub fn declared(&self) -> &CompositeSpec {
        &self.spec.spec
    }

    /// The reference by which what is made for it is collected with it.
    pub fn owner(&self) -> Option<OwnerReference> {
        let mut owner = self.controller_owner_ref(&())?;
        owner.block_owner_deletion = Some(false);
        Some(owner)
    }

    /// Returns whether it is being deleted.
    pub fn is_leaving(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    /// Returns whether a person has allowed its keys to stay behind in Consul.
    pub fn is_released(&self) -> bool {
        self.annotations().get(RELEASE_ANNOTATION).is_some_and(|value| value == "true")
    }

    /// Returns whether its finalizer is there.
    pub fn is_guarded(&self) -> bool {
        self.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
    }
}
