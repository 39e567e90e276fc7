//! Helm, to prove that a chart becomes what it should, and that a release comes and goes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
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
    let helm = Helm { program: part::program("helm", "helm-chart")?, kubeconfig: None };
    Ok(helm.run(&[&"template", &chart, &release, &namespace], Some(values)))
}

/// Helm in front of a cluster. What fails says why.
#[derive(Clone, Debug)]
pub struct Helm {
    program: PathBuf,
    kubeconfig: Option<PathBuf>,
}

impl Helm {
    /// Helm in front of the cluster that a file tells how to reach.
    pub fn of(kubeconfig: &Path) -> Result<Self, Missing> {
        Ok(Self { program: part::program("helm", "helm-chart")?, kubeconfig: Some(kubeconfig.to_owned()) })
    }

    /// Installs a chart as a release.
    pub fn install(
        &self,
        chart: &Path,
        release: &str,
        namespace: &str,
        values: &Value,
    ) -> Result<(), String> {
        self.run(&[&"install", &chart, &release, &namespace], Some(values)).map(drop)
    }

    /// Upgrades a release to a chart; values that are not given stay as they are.
    pub fn upgrade(
        &self,
        chart: &Path,
        release: &str,
        namespace: &str,
        values: &Value,
    ) -> Result<(), String> {
        self.run(&[&"upgrade", &chart, &release, &namespace], Some(values)).map(drop)
    }

    /// Uninstalls a release; returns when its hooks have done their work.
    pub fn uninstall(&self, release: &str, namespace: &str) -> Result<(), String> {
        self.run(&[&"uninstall", &release, &namespace], None).map(drop)
    }

    fn run(&self, args: &[&dyn AsRef<OsStr>], values: Option<&Value>) -> Result<String, String> {
        let folder = Workdir::new("helm");
        let mut command = Command::new(&self.program);
        command.args(args.iter().map(AsRef::as_ref));
        if let Some(values) = values {
            command.arg(folder.write("values.yaml", values.to_string()));
        }
        // What it has found out about a cluster is remembered in the home directory.
        command.env("HOME", folder.path());
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let output = command.output().expect("the program can be started");
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
    }
}
