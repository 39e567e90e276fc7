//! `setpoint composite plan`: what the operator would write.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, Client, ResourceExt};
use setpoint_composite::api::Composite;
use setpoint_composite::operator::{declaration, sort_composites};
use setpoint_composite::publish::{Ownership, ownership, payload_of};
use setpoint_consul::{self as consul, Read};
use setpoint_plan::{Action, Left, Plan, PlannedOperation, Standing};
use setpoint_structure::declare::{
    Claimant, Conflict, Declaration, Resolution, after, data_changes, ownable, owned_before, resolve, to_read,
};
use setpoint_structure::{prefix, transform};

use super::error::Error;
use super::render::read;
use super::structure::{warn, write_plan};
use super::target::{LookArgs, patient, published};
use crate::error::CliError;
use crate::report::{Report, print, print_json};
use crate::service::runtime;

/// What the ConfigMap and the resource are called in a plan.
const CONFIG_MAP: &str = "configmap";
const COMPOSITE: &str = "composite";

/// Arguments of `setpoint composite plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// A manifest with a Composite; `-` is the standard input [default: the Composite in the namespace].
    file: Option<PathBuf>,
    #[command(flatten)]
    look: LookArgs,
}

pub(crate) fn run(args: &PlanArgs, report: Report) -> Result<u8, CliError> {
    let plan = runtime()?.block_on(plan(args, report))?;
    if args.look.json {
        print_json(&plan)?;
    } else {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = write_plan(&mut text, &plan);
        print(&text)?;
    }
    Ok(args.look.exit_code(!plan.is_empty()))
}

async fn plan(args: &PlanArgs, report: Report) -> Result<Plan, CliError> {
    let file = args.file.as_deref().map(composite_in).transpose()?;
    let kubernetes = args.look.connect().await?;
    let namespace = args.look.namespace.clone();
    let namespace = namespace.or_else(|| file.as_ref().and_then(ResourceExt::namespace));
    let namespace = namespace.or_else(|| kubernetes.as_ref().map(|(_, home)| home.clone()));
    let Some(namespace) = namespace else {
        return Err(Error::Setting(
            "which namespace? Name it in the manifest or with `--namespace`".to_owned(),
        )
        .into());
    };
    let client = kubernetes.map(|(client, _)| client);
    let present = match &client {
        Some(client) => composites(client.clone(), &namespace).await?,
        None => Vec::new(),
    };
    let Some((composite, others)) = chosen(file, present) else {
        return Err(Error::Composite {
            name: format!("namespace {namespace}"),
            why: "it has no Composite that stays, and no file is given".to_owned(),
        }
        .into());
    };
    let spec = composite.declared();
    spec.validate().map_err(|error| Error::Composite {
        name: format!("the Composite {}", composite.name_any()),
        why: error.to_string(),
    })?;
    let config_map = match client {
        Some(client) => args.look.config_map(client, &namespace).await?,
        None => None,
    };
    let consul = args.look.consul.clone().client()?;
    let wanted = Wanted { composite: &composite, declaration: declaration(&namespace, spec) };
    let planned = wanted.plan(args, report, &consul, config_map.as_ref()).await;
    consul.logout().await?;
    let mut plan = planned?;
    for other in others {
        let cause = format!("{} is older, and the oldest of a namespace counts", composite.name_any());
        let (kind, name) = (COMPOSITE.to_owned(), format!("{namespace}/{}", other.name_any()));
        plan.leave(Left {
            kind,
            name,
            path: Vec::new(),
            standing: Standing::Invalid,
            causes: vec![cause],
            waits_for: Vec::new(),
        });
    }
    Ok(plan)
}

/// A Composite and what it declares in its namespace.
struct Wanted<'a> {
    composite: &'a Composite,
    declaration: Declaration,
}

impl Wanted<'_> {
    async fn plan(
        &self,
        args: &PlanArgs,
        report: Report,
        consul: &consul::Client,
        config_map: Option<&ConfigMap>,
    ) -> Result<Plan, CliError> {
        let declared = self.declaration.keys();
        let claimant = Claimant {
            namespace: self.declaration.operator_namespace.clone(),
            name: self.composite.name_any(),
        };
        let remembered = self.composite.status.as_ref().map(|status| &status.owned_keys);
        let owned = remembered.map(|keys| ownable(&claimant.namespace, keys)).unwrap_or_default();
        let read: Vec<_> =
            to_read(&claimant.namespace, &owned_before(&owned, &declared)).into_iter().collect();
        let found = consul.read_trees(&read).await?;
        let Resolution { changes, conflicts, .. } =
            resolve(&claimant, &declared, &owned, &BTreeSet::new(), &found);
        for Conflict { key, declared, held, holder } in conflicts {
            report.warn(&format!("{key} stays `{held}`, as {holder} declares it, whose claim is older; here it is declared as `{declared}`"));
        }
        let id = self.declaration.composite_id();
        let mut plan = Plan::new(id);
        changes.plan(&mut plan);
        if args.look.consul_only {
            return Ok(plan);
        }
        let listed = consul.list(&prefix(id), Read::Default).await?;
        let entries = after(&listed.entries, &changes);
        let provider = args.look.cloud_provider.as_str();
        let (payload, issues) = transform(&entries, provider, published(config_map).as_ref());
        warn(&issues, report);
        let name = format!("{}/{}", self.declaration.operator_namespace, args.look.config_map);
        let mut operation = match ownership(config_map, &args.look.managed_by) {
            Ownership::Absent => {
                PlannedOperation::new(Action::Create, CONFIG_MAP, &name).because("it is not there")
            }
            Ownership::Ours => {
                let reason = "it does not say what Consul will say";
                PlannedOperation::new(Action::Modify, CONFIG_MAP, &name).because(reason)
            }
            foreign @ (Ownership::HandedOver { .. } | Ownership::Controlled { .. }) => {
                let causes = vec![foreign.to_string()];
                let kind = CONFIG_MAP.to_owned();
                plan.leave(Left {
                    kind,
                    name,
                    path: Vec::new(),
                    standing: Standing::External,
                    causes,
                    waits_for: Vec::new(),
                });
                return Ok(plan);
            }
        };
        operation.detail = data_changes(config_map.and_then(payload_of), &payload);
        if !operation.detail.is_empty() {
            // It is published when the keys are there.
            operation.after = (0..plan.operations.len()).collect();
            plan.push(operation);
        }
        Ok(plan)
    }
}

/// The Composite to plan for, and those that do not count beside it. One from a file takes the place of the one with
/// its name, whose keys and age it inherits; if there is none, it is the youngest.
fn chosen(
    file: Option<Composite>,
    mut present: Vec<Composite>,
) -> Option<(Arc<Composite>, Vec<Arc<Composite>>)> {
    if let Some(mut file) = file {
        let same = present.iter().position(|composite| composite.name_any() == file.name_any());
        match same.map(|at| present.remove(at)) {
            Some(before) => {
                file.status = before.status;
                file.metadata.creation_timestamp = before.metadata.creation_timestamp;
            }
            None => file.metadata.creation_timestamp = Some(Time(Timestamp::now())),
        }
        present.push(file);
    }
    let sorted = sort_composites(present.into_iter().map(Arc::new).collect());
    Some((sorted.winner?, sorted.others))
}

async fn composites(client: Client, namespace: &str) -> Result<Vec<Composite>, CliError> {
    let all: Api<Composite> = Api::namespaced(client, namespace);
    Ok(patient(all.list(&kube::api::ListParams::default())).await?.items)
}

/// The one Composite in a manifest.
fn composite_in(path: &Path) -> Result<Composite, CliError> {
    let wrong = |why: String| CliError::from(Error::Export { path: path.to_owned(), why });
    let text = String::from_utf8(read(path)?).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
    let documents: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(&text).map_err(|error| wrong(error.to_string()))?;
    let mut found =
        documents.into_iter().filter(|document| document.get("kind").is_some_and(|kind| kind == "Composite"));
    match (found.next(), found.next()) {
        (Some(one), None) => {
            serde_json::from_value(one).map_err(|error| wrong(format!("no Composite: {error}")))
        }
        (None, _) => Err(wrong("it holds no Composite".to_owned())),
        (Some(_), Some(_)) => {
            Err(wrong("it holds several Composites, and one is planned at a time".to_owned()))
        }
    }
}
