//! Helm, to prove that a chart becomes what it should.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::part::{self, Missing};
use crate::workdir::Workdir;

/// Renders a chart, with what it defines first; the inner error is what Helm has against it.
pub fn render(
    chart: &Path,
    release: &str,
    namespace: &str,
    values: &Value,
) -> Result<Result<String, String>, Missing> {
    let program = part::program("helm", "helm-chart")?;
    let folder = Workdir::new("helm");
    let file = folder.write("values.yaml", values.to_string());
    let output = Command::new(program).arg(chart).args([release, namespace]).arg(file).output();
    let output = output.expect("the program can be started");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) })
}
