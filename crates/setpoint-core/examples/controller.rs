//! A whole controller: it keeps greetings in files, as the lines of a file `greetings` declare them.

use std::fs::{self, File};
use std::future::ready;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use setpoint_core::prelude::*;

#[derive(Debug, PartialEq)]
struct Greeting(PathBuf, String);

impl Item for Greeting {
    const KIND: Kind = Kind::from_static("greeting");
    fn name(&self) -> Name {
        Name::new(self.0.to_string_lossy())
    }
}

struct Greetings;

impl Configurator<Greeting> for Greetings {
    async fn create(&self, _: &OpCx, Greeting(path, text): &Greeting) -> OpResult {
        // A file that was there before is somebody else's: nothing was changed, so nothing is cleaned up.
        let mut file = File::create_new(path).map_err(OpError::untouched)?;
        Ok(file.write_all(text.as_bytes())?)
    }
    async fn modify(&self, _: &OpCx, _: &Greeting, Greeting(path, text): &Greeting) -> OpResult {
        Ok(fs::write(path, text)?)
    }
    async fn delete(&self, _: &OpCx, Greeting(path, _): &Greeting) -> OpResult {
        Ok(fs::remove_file(path).optional().map(drop)?)
    }
    async fn read(&self, _: &OpCx, Greeting(path, _): &Greeting) -> OpResult<Observed<Greeting>> {
        let text = fs::read_to_string(path).optional()?;
        Ok(text.map(|text| Greeting(path.clone(), text)).into())
    }
}

fn declared(directory: &Path) -> OpResult<Graph> {
    let mut graph = Graph::new("greetings");
    let text = fs::read_to_string(directory.join("greetings"))?;
    for (name, text) in text.lines().filter_map(|line| line.split_once(' ')) {
        graph.put_item(Greeting(directory.join(name), text.to_owned()))?;
    }
    Ok(graph)
}

pub(crate) fn controller(directory: PathBuf) -> Controller<impl Source> {
    let source = polled(Duration::from_secs(1), move || ready(declared(&directory)));
    Controller::new(Engine::for_items(Greetings), source)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    controller(PathBuf::from(".")).run_until(tokio::signal::ctrl_c()).await;
}
