//! What the demo declares.

/// A small site.
pub(super) const FIRST: &str = "\
name: demo
directories:
  site:
  notes:
files:
  front: {path: site/index.html, content: \"<h1>Hello</h1>\\n\"}
  style: {path: site/main.css, content: \"h1 { color: teal }\\n\"}
  todo: {path: notes/todo.txt, content: \"water the plants\\n\"}
symlinks:
  start: {path: start.html, target: site/index.html}
";

/// The same site, moved, with another front page and a page more.
pub(super) const SECOND: &str = "\
name: demo
directories:
  site: {path: public}
  notes:
files:
  front: {path: public/index.html, content: \"<h1>Hello, world</h1>\\n\"}
  style: {path: public/main.css, content: \"h1 { color: teal }\\n\"}
  about: {path: public/about.html, content: \"<p>About us</p>\\n\"}
  todo: {path: notes/todo.txt, content: \"water the plants\\n\"}
symlinks:
  start: {path: start.html, target: public/index.html}
";
