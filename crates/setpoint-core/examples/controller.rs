//! A whole controller: it keeps symbolic links as the lines of a file `links` declare them, with a name and a target each.

use std::fs;

use setpoint_core::prelude::*;

#[derive(Debug, PartialEq)]
pub(crate) struct Link(String, std::path::PathBuf);

impl Item for Link {
    const KIND: Kind = Kind::from_static("link");
    fn name(&self) -> Name {
        Name::new(&self.0)
    }
}

pub(crate) struct Links;

impl Configurator<Link> for Links {
    async fn create(&self, _: &OpCx, Link(name, target): &Link) -> OpResult {
        // What was there before is somebody else's: nothing was changed, so nothing is cleaned up.
        std::os::unix::fs::symlink(target, name).map_err(OpError::untouched)
    }
    async fn delete(&self, _: &OpCx, Link(name, _): &Link) -> OpResult {
        Ok(fs::remove_file(name).optional().map(drop)?)
    }
    async fn read(&self, _: &OpCx, Link(name, _): &Link) -> OpResult<Observed<Link>> {
        Ok(fs::read_link(name).optional()?.map(|target| Link(name.clone(), target)).into())
    }
}

pub(crate) async fn declared() -> OpResult<Graph> {
    let link = |line: &str| line.split_once(' ').map(|(name, target)| Link(name.into(), target.into()));
    Ok(Graph::with_items("links", fs::read_to_string("links")?.lines().filter_map(link))?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    Controller::new(Engine::for_items(Links), polled(declared)).run_until(tokio::signal::ctrl_c()).await;
}
