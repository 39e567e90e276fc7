//! The two intents of the demo: a small site, and the same site after someone has thought again.

use setpoint_graph::{Graph, ItemHandle, Name};

use super::item::{Body, Directory, File, Root};
use super::sandbox::RelPath;
use crate::error::CliError;

/// What both graphs are called.
pub(crate) const NAME: &str = "sandbox";

/// The first intent.
pub(crate) fn first() -> Result<Graph, CliError> {
    graph([
        directory("notes")?,
        directory("site")?,
        directory("site/css")?,
        file("todo", "notes/todo.txt", text("write the front page"))?,
        file("index", "site/index.html", text("<h1>Hello</h1>"))?,
        file("style", "site/css/main.css", text("h1 { color: teal }"))?,
        file("start", "start.html", text("<a href=site>enter</a>"))?,
    ])
}

/// The second intent: `site` is called `public`, the front page has changed, the start page is a link, and
/// there is a page more.
pub(crate) fn second() -> Result<Graph, CliError> {
    graph([
        directory("notes")?,
        directory("public")?,
        directory("public/css")?,
        file("todo", "notes/todo.txt", text("write the front page"))?,
        file("index", "public/index.html", text("<h1>Hello, world</h1>"))?,
        file("style", "public/css/main.css", text("h1 { color: teal }"))?,
        file("start", "start.html", Body::Link("public/index.html".to_owned()))?,
        file("about", "public/about.html", text("<h1>About</h1>"))?,
    ])
}

fn graph(items: impl IntoIterator<Item = ItemHandle>) -> Result<Graph, CliError> {
    let mut graph = Graph::new(NAME);
    graph.put_item(Root)?;
    for item in items {
        graph.put_item(item)?;
    }
    Ok(graph)
}

fn directory(path: &str) -> Result<ItemHandle, CliError> {
    Ok(Directory { path: parse(path)? }.into())
}

fn file(name: &str, path: &str, body: Body) -> Result<ItemHandle, CliError> {
    Ok(File { name: Name::new(name), path: parse(path)?, body }.into())
}

fn text(line: &str) -> Body {
    Body::Text(format!("{line}\n"))
}

fn parse(path: &str) -> Result<RelPath, CliError> {
    RelPath::new(path).ok_or_else(|| CliError::Declaration(format!("{path:?} is no path below the sandbox")))
}
