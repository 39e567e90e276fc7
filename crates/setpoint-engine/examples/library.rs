//! The engine as a library: services, some of which need others.

use setpoint_engine::{Configurator, DefaultRegistry, Engine, OpCx, OpError, Selection};
use setpoint_graph::{Deps, Graph, Item, ItemRef, Kind, Name};

#[derive(Debug, PartialEq)]
struct Service(&'static str, &'static [&'static str]);

impl Item for Service {
    const KIND: Kind = Kind::from_static("service");
    fn name(&self) -> Name {
        Name::from_static(self.0)
    }
    fn dependencies(&self, deps: &mut Deps) {
        for other in self.1 {
            deps.requires(ItemRef::of::<Self>(*other)).because("it connects to it at its start");
        }
    }
}

struct Services;

impl Configurator<Service> for Services {
    async fn create(&self, _: &OpCx, _new: &Service) -> Result<(), OpError> {
        Ok(()) // Start it. An error is retried by policy, and stays visible until it is gone.
    }
    async fn delete(&self, _: &OpCx, _old: &Service) -> Result<(), OpError> {
        Ok(()) // Stop it.
    }
}

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::new(DefaultRegistry::new().with(Services));
    let mut intended = Graph::new("services");
    intended.put_item(Service("web", &["db", "cache"]))?;
    intended.put_item(Service("db", &[]))?;

    // Nothing exists yet: no current graph. What is done is remembered in it.
    let mut current = None;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let status = runtime.block_on(engine.reconcile(&mut current, Some(&intended), &Selection::all()))?;
    assert_eq!(status.log()[0].to_string(), "create service/db");
    assert_eq!(status.pending(), 1, "web waits for the cache");

    intended.put_item(Service("cache", &[]))?;
    let plan = engine.plan(current.as_ref(), Some(&intended), &Selection::all(), jiff::Timestamp::now())?;
    let expected = "services: 2 to create
  + service/cache: it is intended and not there
  + service/web: it is intended and not there
";
    assert_eq!(plan.to_string(), expected);
    Ok(())
}
