//! Graphviz, to prove that what is exported for it is what it reads.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::part::{self, Missing};

/// Draws a graph in the DOT language as SVG; the inner error is what Graphviz has against it.
pub fn svg(dot: &str) -> Result<Result<String, String>, Missing> {
    let program = part::program("graphviz", "dot")?;
    let mut child = Command::new(program)
        .arg("-Tsvg")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dot can be started");
    let input = child.stdin.take();
    // Written from aside: dot may start to draw, and to print, before it has read all.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || input.map(|mut input| input.write_all(dot.as_bytes())));
        child.wait_with_output()
    });
    let output = output.expect("dot ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) })
}
