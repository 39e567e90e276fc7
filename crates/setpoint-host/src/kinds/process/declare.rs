//! When a process is ready, as manifests say it.

use crate::item::{Address, AddressError, Because, Readiness, Ready, RootPath, Wait, quoted};
use crate::manifest::{Build, Data, Node};

/// What `ready` says: checked but for what its texts come to.
pub(super) fn ready(build: &mut Build<'_, '_, '_>) -> Option<Ready> {
    let Data::Map(pairs) = &build.node("ready")?.data else { return None };
    let mut timeout = Wait::from_millis(30_000);
    let mut condition = None;
    for (key, node) in pairs {
        match key.scalar()? {
            "port" => condition = port(build, node).map(Readiness::Port),
            "file" => condition = file(build, node).map(Readiness::File),
            "command" => condition = build.run_in(node).map(Readiness::Command),
            "log" => condition = build.text_in(node).map(Readiness::Log),
            _ => timeout = node.scalar()?.parse().ok()?,
        }
    }
    Some(Ready { condition: condition?, timeout })
}

fn port<'a>(build: &mut Build<'_, 'a, '_>, node: &'a Node<'a>) -> Option<Address> {
    let text = build.text_in(node)?;
    let address: Result<Address, AddressError> = text.parse();
    if let Err(error) = &address {
        build.report_at(node, &format!("{}: {error}", quoted(&text)), None);
    }
    address.ok()
}

fn file<'a>(build: &mut Build<'_, 'a, '_>, node: &'a Node<'a>) -> Option<RootPath> {
    let text = build.text_in(node)?;
    let path = build.path_in(node, &text)?;
    build.needs_what_is_around(&path, Because::Inside);
    Some(path)
}
