//! A whole controller: it keeps the greetings in a directory as they are declared.
//!
//! A greeting that somebody edits or deletes is put right within ten seconds. This one ends once all is as it should be.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::time::Duration;

use setpoint_core::{
    CancellationToken, Configurator, Controller, DefaultRegistry, Engine, Graph, Item, Kind, Name, Observed,
    OpCx, OpError,
};

#[derive(Debug, PartialEq)]
struct Greeting(&'static str, String);

impl Item for Greeting {
    const KIND: Kind = Kind::from_static("greeting");
    fn name(&self) -> Name {
        Name::from_static(self.0)
    }
}

/// Greetings are files of this directory.
struct Greetings(PathBuf);

impl Configurator<Greeting> for Greetings {
    async fn create(&self, _: &OpCx, new: &Greeting) -> Result<(), OpError> {
        // A file that was there before is somebody else's: nothing was changed, so nothing is cleaned up.
        let created = File::create_new(self.0.join(new.0));
        let mut file = created.map_err(|error| OpError::untouched(error.to_string()))?;
        Ok(file.write_all(new.1.as_bytes())?)
    }
    async fn modify(&self, _: &OpCx, _: &Greeting, new: &Greeting) -> Result<(), OpError> {
        Ok(fs::write(self.0.join(new.0), &new.1)?)
    }
    async fn delete(&self, _: &OpCx, old: &Greeting) -> Result<(), OpError> {
        match fs::remove_file(self.0.join(old.0)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
    async fn read(&self, _: &OpCx, item: &Greeting) -> Result<Observed<Greeting>, OpError> {
        match fs::read_to_string(self.0.join(item.0)) {
            Ok(text) => Ok(Observed::Present(Greeting(item.0, text))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Observed::Absent),
            Err(error) => Err(error.into()),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let engine = Engine::new(DefaultRegistry::new().with(Greetings(directory.path().into())));
    let mut intended = Graph::new("greetings");
    intended.put_item(Greeting("world", "Hello, world!".into()))?;

    let stop = CancellationToken::new();
    let converged = stop.clone();
    Controller::new(engine, intended)
        .with_drift_interval(Some(Duration::from_secs(10)))
        .observed_by(move |pass, _| {
            if pass.is_converged() {
                converged.cancel();
            }
        })
        .run(stop)
        .await;
    assert_eq!(fs::read_to_string(directory.path().join("world"))?, "Hello, world!");
    Ok(())
}
