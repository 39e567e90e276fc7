//! Several instances, of which one works.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;
use setpoint_composite::api::ConditionType;
use setpoint_composite::publish::{Desired, TRANSITIONS_ANNOTATION, Writer, payload_of};
use setpoint_composite::settings::{CloudProvider, Election, Namespaces, Settings};
use setpoint_consul as consul;
use setpoint_kube::lease::{Elector, Timing};
use setpoint_testutils::{Kubernetes, Proxy, need, wait};

use super::world::{LIMIT, NAME, ORDERED, Running, World};

const LEASE: &str = "setpoint-composite";
const RETRY: Duration = Duration::from_millis(200);
/// A lease that nobody loses who is held up by a busy machine.
const LONG: Timing =
    Timing { duration: Duration::from_mins(2), deadline: Duration::from_mins(1), retry: RETRY };
/// A lease that runs out in a test. It is taken by another long after its holder has stopped, so that what lies in between is
/// seen on a busy machine as well.
const SHORT: Timing =
    Timing { duration: Duration::from_secs(15), deadline: Duration::from_secs(5), retry: RETRY };

fn elected(world: &World, instance: &str, timing: Timing) -> Settings {
    let election = Election { namespace: world.name().to_owned(), name: LEASE.to_owned(), timing };
    Settings { election: Some(election), instance: instance.to_owned(), ..world.settings() }
}

fn leases(world: &World) -> Api<Lease> {
    Api::namespaced(world.client.clone(), world.name())
}

async fn led_by(world: &World, instance: &str) -> i32 {
    let found = async || {
        let spec = leases(world).get(LEASE).await.ok()?.spec?;
        (spec.holder_identity.as_deref() == Some(instance))
            .then_some(spec.lease_transitions.unwrap_or_default())
    };
    wait::until(&format!("{instance} to lead"), LIMIT, found).await
}

/// Makes a Composite; what belongs into its ConfigMap, by payload, index and transition count.
async fn wanted(world: &World) -> impl Fn(&str, u64, i32) -> Desired {
    let owner = world.declare("composite", json!({ "originNamespace": world.name() })).await.owner().unwrap();
    move |payload, index, transitions| Desired {
        payload: payload.to_owned(),
        composite: "composite".to_owned(),
        index,
        transitions,
        owner: owner.clone(),
    }
}

/// A client that reaches the API server through a proxy.
pub(crate) async fn client_through(kubernetes: &Kubernetes, proxy: &Proxy) -> Client {
    let file = Kubeconfig::read_from(kubernetes.kubeconfig_file()).unwrap();
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    config.cluster_url = format!("https://{}", proxy.address()).parse().unwrap();
    config.proxy_url = None;
    Client::try_from(config).unwrap()
}

async fn proxy_of(kubernetes: &Kubernetes) -> Proxy {
    Proxy::start(kubernetes.url().trim_start_matches("https://").parse().unwrap()).await
}

#[tokio::test]
async fn of_two_instances_one_works_and_the_other_takes_over_at_once_when_it_ends() {
    let world = need!(World::new().await);
    let ns = world.name();
    let one = world.operate_with(elected(&world, "one", LONG));
    led_by(&world, "one").await;
    let two = world.operate_with(elected(&world, "two", LONG));
    world.declare("composite", json!({ "originNamespace": ns })).await;
    let first = world.settled("composite").await.status.unwrap().published.unwrap();
    assert_eq!(first.by, "one");
    one.stop().await;
    let transitions = led_by(&world, "two").await;
    let stamp = transitions.to_string();
    world.until("the new leader's stamp", |map| map.annotations()[TRANSITIONS_ANNOTATION] == stamp).await;
    let reported = async || {
        let status = world.composites().get("composite").await.ok()?.status?;
        (status.lease_transitions == Some(transitions)).then_some(())
    };
    wait::until("the status to carry it too", LIMIT, reported).await;
    world.consul.put(&format!("composite/{ns}/structure/{ns}-sat/compositeRole"), "satellite").await.unwrap();
    world
        .publishes(json!({ "baseline": { "origin": ns }, "satellites": [{ "origin": format!("{ns}-sat") }] }))
        .await;
    world.history.versions_that_never_go_back(NAME, &ORDERED).await;
    two.stop().await;
}

#[tokio::test]
async fn a_leader_that_is_cut_off_stops_by_itself_before_another_starts() {
    let world = need!(World::new().await);
    let ns = world.name();
    let proxy = proxy_of(world.namespace.kubernetes()).await;
    let through = client_through(world.namespace.kubernetes(), &proxy).await;
    let one = Running::start(through, world.consul_client(), elected(&world, "one", SHORT));
    led_by(&world, "one").await;
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    let two = world.operate_with(elected(&world, "two", SHORT));
    proxy.cut();
    // It stops while the lease is still its own: nobody has taken it yet.
    let stopped = async || {
        let alone = leases(&world).get(LEASE).await.ok()?.spec?.holder_identity? == "one";
        one.metrics.text().contains("setpoint_composite_leader 0").then_some(alone)
    };
    assert!(wait::until("the leader to stop", LIMIT, stopped).await, "it stopped too late");
    // Nothing is said any more of what it does not look after.
    let forgotten = async || {
        let text = one.metrics.text();
        (!text.contains("namespace=\"") && text.contains("setpoint_composite_composites 0")).then_some(())
    };
    wait::until("the metrics to forget all namespaces", LIMIT, forgotten).await;
    led_by(&world, "two").await;
    proxy.heal();
    world.consul.put(&format!("composite/{ns}/structure/{ns}-sat/compositeRole"), "satellite").await.unwrap();
    world
        .publishes(json!({ "baseline": { "origin": ns }, "satellites": [{ "origin": format!("{ns}-sat") }] }))
        .await;
    let versions = world.history.versions_that_never_go_back(NAME, &ORDERED).await;
    let terms: Vec<_> =
        versions.iter().map(|map| map.annotations()[TRANSITIONS_ANNOTATION].clone()).collect();
    assert!(terms.first() < terms.last(), "{terms:?}");
    drop((one, two));
}

#[tokio::test]
async fn a_new_leader_marks_the_config_map_before_consul_has_answered() {
    let world = need!(World::new().await);
    let one = world.operate_with(elected(&world, "one", LONG));
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    world.settled("composite").await;
    one.stop().await;
    let away = consul::Client::new(consul::Settings::new("http://127.0.0.1:1")).unwrap();
    let _two = Running::start(world.client.clone(), away, elected(&world, "two", LONG));
    let stamp = led_by(&world, "two").await.to_string();
    world.until("the new leader's stamp", |map| map.annotations()[TRANSITIONS_ANNOTATION] == stamp).await;
    world.publishes(json!({ "baseline": { "origin": world.name() } })).await;
}

#[tokio::test]
async fn what_a_former_leader_still_writes_is_refused() {
    let world = need!(World::new().await);
    let elector = |name: &str, timing| Elector::new(world.client.clone(), world.name(), LEASE, name, timing);
    let target = world.target();
    let desired = wanted(&world).await;
    let limit = Duration::from_secs(10);
    let former =
        elector("former", Timing { deadline: Duration::from_secs(14), ..SHORT }).campaign(|_| ()).await;
    let old = Writer::new(world.client.clone(), target.clone(), former.fence.clone(), limit);
    old.write(None, &desired("1", 1, former.fence.transitions())).await.unwrap();
    let seen = old.read().await.unwrap();

    // Nobody renews: the lease runs out, and another takes it and makes its mark.
    let present = elector("present", LONG).campaign(|_| ()).await;
    assert!(present.fence.transitions() > former.fence.transitions());
    let new = Writer::new(world.client.clone(), target.clone(), present.fence.clone(), limit);
    new.write(seen.clone(), &desired("1", 1, present.fence.transitions())).await.unwrap();

    let stale = desired("stale", 9, former.fence.transitions());
    assert!(old.write(seen.clone(), &stale).await.unwrap_err().is_fenced(), "its time is over");
    // What was past that check already carries a version that is not there any more.
    let object = stale.object(&target, seen.as_ref().unwrap().resource_version().as_deref());
    for parameters in [PatchParams::apply("core-operator"), PatchParams::apply("core-operator").force()] {
        let error = world.config_maps().patch(NAME, &parameters, &Patch::Apply(&object)).await.unwrap_err();
        assert!(matches!(&error, kube::Error::Api(status) if status.code == 409), "{error}");
    }
    let error =
        world.config_maps().create(&kube::api::PostParams::default(), &stale.object(&target, None)).await;
    assert!(error.is_err(), "what is there can't be created");
    let versions = world.history.versions_that_never_go_back(NAME, &ORDERED).await;
    assert!(versions.iter().all(|map| payload_of(map) == Some("1")), "{versions:?}");
}

#[tokio::test]
async fn a_write_that_passed_its_check_before_the_lease_was_lost_is_refused_by_its_version() {
    let world = need!(World::new().await);
    // Its deadline is far away: to its own clock it leads for a long time yet.
    let elector = Elector::new(world.client.clone(), world.name(), LEASE, "former", LONG);
    let former = elector.campaign(|_| ()).await;
    let target = world.target();
    let desired = wanted(&world).await;
    let writer =
        Writer::new(world.client.clone(), target.clone(), former.fence.clone(), Duration::from_secs(10));
    writer.write(None, &desired("1", 1, 0)).await.unwrap();
    let seen = writer.read().await.unwrap();

    // Another takes the lease and makes its mark, as the same field manager: only the version tells them apart.
    let taken = json!({ "spec": { "holderIdentity": "present", "leaseTransitions": 1 } });
    leases(&world).patch(LEASE, &PatchParams::default(), &Patch::Merge(taken)).await.unwrap();
    let mark = desired("1", 1, 1).object(&target, None);
    let parameters = PatchParams::apply("core-operator");
    world.config_maps().patch(NAME, &parameters, &Patch::Apply(mark)).await.unwrap();

    assert!(former.fence.check().is_ok());
    let refused = writer.write(seen, &desired("stale", 1, 0)).await;
    assert!(refused.unwrap_err().is_fenced());
    assert!(former.fence.check().is_err(), "it knows now");
    assert_eq!(payload_of(&world.config_map().await.unwrap()), Some("1"));
}

#[tokio::test]
async fn a_lease_that_somebody_deleted_is_made_anew_and_the_work_goes_on() {
    let world = need!(World::new().await);
    let ns = world.name();
    // Its count is above 0 when it is deleted, and starts over with the new one.
    world.operate_with(elected(&world, "zero", LONG)).stop_when_leading(&world).await;
    // One that finds its lease gone stops when its deadline is over.
    let _one = world.operate_with(elected(&world, "one", SHORT));
    led_by(&world, "one").await;
    world.declare("composite", json!({ "originNamespace": ns })).await;
    world.settled("composite").await;
    leases(&world).delete(LEASE, &DeleteParams::default()).await.unwrap();
    led_by(&world, "one").await;
    world.consul.put(&format!("composite/{ns}/structure/{ns}-sat/compositeRole"), "satellite").await.unwrap();
    world
        .publishes(json!({ "baseline": { "origin": ns }, "satellites": [{ "origin": format!("{ns}-sat") }] }))
        .await;
}

impl Running {
    async fn stop_when_leading(self, world: &World) {
        led_by(world, "zero").await;
        self.stop().await;
    }
}

/// A release of the operator in the world's namespace, with the defaults but for where it thinks that it is.
fn release(world: &World, name: &str, provider: CloudProvider) -> Settings {
    let namespace = world.name().to_owned();
    Settings {
        namespaces: Namespaces::Only([namespace.clone()].into()),
        election: Some(Election { namespace, name: name.to_owned(), timing: Timing::default() }),
        instance: name.to_owned(),
        cloud_provider: provider,
        ..Settings::default()
    }
}

#[tokio::test]
async fn two_releases_in_one_namespace_do_not_fight() {
    let world = need!(World::new().await);
    let _one = world.operate_with(release(&world, "one", CloudProvider::OnPrem));
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    world.settled("composite").await;
    let before = world.history.versions(NAME).await.len();
    let began = std::time::Instant::now();
    let _two = world.operate_with(release(&world, "two", CloudProvider::Gke));
    let reported = world.condition("composite", ConditionType::Published, "False", "Contested").await;
    assert!(reported.message.contains("keeps changing"), "{}", reported.message);
    world.event("Contested").await;
    // Long enough for hundreds of writes, of which there were 790 in 15 s.
    let repaired = async || (began.elapsed() > Duration::from_secs(15)).then_some(());
    wait::until("15 s", LIMIT, repaired).await;
    let versions = world.history.versions(NAME).await.len() - before;
    assert!(versions <= 20, "{versions} versions in {:?}", began.elapsed());
}

/// The pauses grow while two releases fight, and so does the time until one counts as left alone: the other goes at once.
#[tokio::test]
async fn a_release_that_is_left_alone_again_says_so() {
    let world = need!(World::new().await);
    let _one = world.operate_with(release(&world, "one", CloudProvider::OnPrem));
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    world.settled("composite").await;
    let two = world.operate_with(release(&world, "two", CloudProvider::Gke));
    world.condition("composite", ConditionType::Published, "False", "Contested").await;
    two.stop().await;
    world.condition("composite", ConditionType::Published, "True", "Applied").await;
    world.publishes(json!({ "baseline": { "origin": world.name() } })).await;
}
