//! Many namespaces, and several composites, in one process.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use serde_json::{Value, json};
use setpoint_composite::publish::payload_of;
use setpoint_consul as consul;
use setpoint_testutils::kubernetes::History;
use setpoint_testutils::{Acl, Consul, need, wait};

use crate::world::{LIMIT, NAME, ORDERED, World};

/// How many composites there are, and how many namespaces each has.
const SIZE: (usize, usize) = (4, 16);
/// How many connections Consul takes from one client; by default it would be 200.
const CONNECTIONS: usize = 50;

/// What the process has used of its memory at most, in KiB.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn many_namespaces_are_served_with_few_connections_and_none_is_forgotten() {
    let world = need!(World::new().await);
    let limits = json!({ "limits": { "http_max_conns_per_client": CONNECTIONS } });
    let consul = need!(Consul::start_with(Acl::Off, &limits).await);
    let id = |composite: usize| format!("{}-{composite}", world.name());
    let name = |composite: usize, member: usize| match member {
        0 => id(composite),
        _ => format!("{}-{member:02}", id(composite)),
    };
    let all: Vec<(usize, String)> = (0..SIZE.0)
        .flat_map(|composite| (0..SIZE.1).map(move |member| (composite, name(composite, member))))
        .collect();
    for (composite, namespace) in &all {
        world.make_namespace(namespace).await;
        let baseline = id(*composite);
        let spec = if *namespace == baseline {
            json!({ "originNamespace": namespace })
        } else {
            json!({ "originNamespace": namespace, "baseline": { "originNamespace": baseline } })
        };
        world.declare(namespace, "composite", spec).await;
    }
    let history = History::begin(&world.client, &name(SIZE.0 - 1, SIZE.1 - 1)).await;
    let names: Vec<_> = all.iter().map(|(_, namespace)| namespace.as_str()).collect();
    // One of the composites is left without a connection of its own.
    let watches = (SIZE.0 - 1).to_string();
    let arguments = ["--namespace", &names.join(","), "--consul-watches", &watches];
    let operator = world.operate_on(&consul, "one", &arguments);

    let publishes = async |more: &[&str]| {
        let mut missing: BTreeSet<&str> = names.iter().copied().collect();
        let found = wait::within(LIMIT, async || {
            for (composite, namespace) in &all {
                let own = (1..SIZE.1).map(|member| name(*composite, member));
                let mut origins: Vec<_> = own.chain(more.iter().map(|one| (*one).to_owned())).collect();
                origins.sort();
                let satellites: Vec<Value> =
                    origins.into_iter().map(|origin| json!({ "origin": origin })).collect();
                let expected = json!({ "baseline": { "origin": id(*composite) }, "satellites": satellites });
                let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), namespace);
                if let Ok(Some(map)) = maps.get_opt(NAME).await
                    && let Some(Ok(payload)) = payload_of(&map).map(serde_json::from_str::<Value>)
                    && payload["composite"] == expected
                {
                    missing.remove(namespace.as_str());
                }
            }
            missing.is_empty().then_some(())
        });
        if found.await.is_none() {
            operator.process.fail(&format!("these do not publish {more:?}: {missing:?}"));
        }
    };
    publishes(&[]).await;
    for composite in 0..SIZE.0 {
        let key = format!("composite/{}/structure/added/compositeRole", id(composite));
        consul.put(&key, "satellite").await.unwrap();
    }
    publishes(&["added"]).await;

    // What somebody removes is put back, wherever it is: all references, and a part of each structure.
    let kept = |key: &String| !key.contains("/added/");
    let before: BTreeSet<String> = keys(&consul).await.into_iter().filter(kept).collect();
    // Each has a role, the claim of it, and a reference.
    assert_eq!(before.len(), 3 * all.len());
    consul.delete_tree("config/").await.unwrap();
    for composite in 0..SIZE.0 {
        consul
            .delete_tree(&format!("composite/{}/structure/{}", id(composite), name(composite, 1)))
            .await
            .unwrap();
    }
    let mut last = BTreeSet::new();
    let back = wait::within(LIMIT, async || {
        last = keys(&consul).await.into_iter().filter(kept).collect();
        (last == before).then_some(())
    });
    if back.await.is_none() {
        operator.process.fail(&format!("not put back: {:?}", before.difference(&last)));
    }
    publishes(&["added"]).await;
    history.versions_that_never_go_back(NAME, &ORDERED).await;
    // The limit of the Deployment, for a program that was not even optimised.
    let peak = peak(operator.process.id());
    assert!(peak < 128 * 1024, "{peak} KiB");
}

/// All keys in Consul that Composites may have.
async fn keys(consul: &Consul) -> Vec<String> {
    let client = consul::Client::new(consul::Settings::new(consul.url())).unwrap();
    let mut keys = Vec::new();
    for prefix in ["composite/", "config/"] {
        let listed = client.list(prefix, consul::Read::Consistent).await.unwrap();
        keys.extend(listed.entries.into_iter().map(|entry| entry.key));
    }
    keys
}
