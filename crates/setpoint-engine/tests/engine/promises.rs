//! Promises of the engine that other tests pass by: waking, limits, orders, pauses, and what is never shown.

use std::time::Duration;

use futures::FutureExt as _;
use setpoint_engine::{
    Configurator, DefaultRegistry, Engine, Observed, OpCx, OpError, Operation, RetryPolicy, Selection,
};
use setpoint_graph::{Attributes, Deps, Graph, Item, Kind, Name};

use crate::world::{Behaviour, Bench, log, thing};

#[tokio::test(start_paused = true)]
async fn giving_up_on_an_operation_wakes_who_waits_already() {
    let mut bench = Bench::new();
    bench.engine =
        bench.engine.clone().with_timeout(Some(Duration::from_mins(5))).with_grace(Duration::from_mins(1));
    bench.world.next("A", Operation::Create, Behaviour::Background);
    bench.put(thing("A"));
    bench.run().await;
    tokio::time::sleep(Duration::from_mins(6)).await;
    let status = bench.run().await;
    let mut waiting = Box::pin(status.wait_for_background());
    assert!(waiting.as_mut().now_or_never().is_none(), "it is asked to stop, and still runs");
    tokio::time::sleep(Duration::from_mins(2)).await;
    let given_up = bench.run().await;
    assert!(log(&given_up)[0].contains("did not stop"), "{:?}", log(&given_up));
    assert!(waiting.now_or_never().is_some(), "who waited before it was given up is woken");
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_an_item_is_not_changed_while_changing_that_failed() {
    let mut bench = Bench::new();
    bench.engine = bench.world.engine().with_retry(RetryPolicy::never());
    bench.put(thing("A")).put(thing("B").after("A"));
    bench.run().await;
    bench.world.next("A", Operation::Modify, Behaviour::Fail(OpError::new("no")));
    bench.put(thing("A").value(1)).put(thing("B").value(1).after("A"));
    assert_eq!(log(&bench.run().await), ["modify A (no)"]);
    assert_eq!(bench.world.lock().exists["B"].value, 0, "it waits");
    bench.put(thing("A").value(2));
    assert_eq!(log(&bench.run().await), ["modify A", "modify B"]);
}

#[tokio::test(start_paused = true)]
async fn the_pause_of_a_contested_item_begins_with_its_repair_and_not_with_the_drift() {
    let mut bench = Bench::new();
    bench.world.lock().can_read = true;
    bench.put(thing("A").value(1));
    bench.run().await;
    let drift = async |bench: &mut Bench| {
        bench.world.lock().exists.insert("A".into(), thing("A").value(9));
        bench.engine.refresh(bench.current.as_mut().unwrap(), &Selection::all()).await;
        log(&bench.run().await).len()
    };
    // The third change in a row makes it contested. It comes eight seconds after the second repair.
    assert_eq!(drift(&mut bench).await, 1);
    assert_eq!(drift(&mut bench).await, 1);
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(drift(&mut bench).await, 0, "it is backed off from");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(log(&bench.run().await).len(), 0, "nine seconds after the repair");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(log(&bench.run().await), ["modify A"], "eleven seconds after the repair");
}

/// Something whose reading never ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Opaque;

impl Item for Opaque {
    const KIND: Kind = Kind::from_static("opaque");

    fn name(&self) -> Name {
        Name::new("only")
    }
}

struct Unreadable;

impl Configurator<Opaque> for Unreadable {
    async fn create(&self, _: &OpCx, _: &Opaque) -> Result<(), OpError> {
        Ok(())
    }

    async fn delete(&self, _: &OpCx, _: &Opaque) -> Result<(), OpError> {
        Ok(())
    }

    async fn read(&self, _: &OpCx, _: &Opaque) -> Result<Observed<Opaque>, OpError> {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_verification_that_never_ends_is_given_up_on() {
    let engine = Engine::new(DefaultRegistry::new().with(Unreadable))
        .verifying()
        .with_timeout(Some(Duration::from_mins(1)))
        .with_grace(Duration::from_secs(10));
    let mut intended = Graph::new("test");
    intended.put_item(Opaque).unwrap();
    let mut current = None;
    let all = Selection::all();
    let run = engine.reconcile(&mut current, Some(&intended), &all);
    let status = tokio::time::timeout(Duration::from_mins(5), run).await.expect("the run ends").unwrap();
    let error = status.failures()[0].error.to_string();
    assert!(error.contains("took longer than") || error.contains("took too long"), "{error}");
}

/// Something with a key that is a secret, or not.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    key: &'static str,
    secret: bool,
}

impl Item for Account {
    const KIND: Kind = Kind::from_static("account");

    fn name(&self) -> Name {
        Name::new("shop")
    }

    fn dependencies(&self, _: &mut Deps) {}

    fn attributes(&self, attributes: &mut Attributes) {
        if self.secret {
            attributes.add_sensitive("key", self.key);
        } else {
            attributes.add("key", self.key);
        }
    }
}

struct Accounts;

impl Configurator<Account> for Accounts {
    async fn create(&self, _: &OpCx, _: &Account) -> Result<(), OpError> {
        Ok(())
    }

    async fn modify(&self, _: &OpCx, _: &Account, _: &Account) -> Result<(), OpError> {
        Ok(())
    }

    async fn delete(&self, _: &OpCx, _: &Account) -> Result<(), OpError> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn what_becomes_a_secret_is_masked_on_both_sides_of_a_plan() {
    let engine = Engine::new(DefaultRegistry::new().with(Accounts));
    let mut intended = Graph::new("test");
    let mut current = None;
    intended.put_item(Account { key: "hunter2", secret: false }).unwrap();
    engine.reconcile(&mut current, Some(&intended), &Selection::all()).await.unwrap();
    intended.put_item(Account { key: "hunter3", secret: true }).unwrap();
    let now = jiff::Timestamp::UNIX_EPOCH;
    let plan = engine.plan(current.as_ref(), Some(&intended), &Selection::all(), now).unwrap();
    let shown = format!("{plan}{}", serde_json::to_string(&plan).unwrap());
    assert!(shown.contains("key") && !shown.contains("hunter"), "{shown}");
}
