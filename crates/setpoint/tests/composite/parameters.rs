//! Flags, variables and the file.

use std::process::Output;

use setpoint_testutils::Workdir;

use crate::world::setpoint;

fn run(args: &[&str], variables: &[(&str, &str)]) -> Output {
    setpoint().arg("run").args(args).envs(variables.iter().copied()).output().unwrap()
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Arguments, variables, and what is printed of them.
type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);

#[test]
fn what_is_wrong_with_a_parameter_is_reported_before_anything_is_done() {
    let folder = Workdir::new("parameters");
    let write = |name: &str, text: &str| folder.write(name, text).display().to_string();
    let unknown = write("unknown.toml", "check-intervall = 3\n");
    let wrong = write("wrong.toml", "check-interval = \"soon\"\n");
    let broken = write("broken.toml", "check-interval = \n");
    let cases: [Case<'_>; 13] = [
        (&["--cloud-provider", "Mars"], &[], "`Mars` is no cloud provider"),
        (&[], &[("CLOUD_PROVIDER", "Mars")], "`Mars` is no cloud provider"),
        (&["--check-interval", "0"], &[], "check-interval: must be at least"),
        (&[], &[("CLOUD_COMPOSITE_STRUCTURE_SYNC_CHECK_INTERVAL", "1")], "check-interval: must be at least"),
        (&["--check-interval", "soon"], &[], "`soon` is no time"),
        (&["--consul-wait-time", "11m"], &[], "at most 10 minutes"),
        (&["--config-map", "Composite"], &[], "config-map: must be a name"),
        (&["--lease-renew-deadline", "20s"], &[], "must be shorter than the duration of the lease"),
        (&["--namespace", "a", "--all-namespaces"], &[], "all namespaces are served"),
        (&["--config", &unknown], &[], "there is no parameter `check-intervall`"),
        (&["--config", &wrong], &[], "`soon` is no time"),
        (&["--config", &broken], &[], "can't use"),
        (&["--config", "/nonexistent"], &[], "can't use /nonexistent"),
    ];
    for (args, variables, why) in cases {
        let output = run(args, variables);
        assert_eq!(output.status.code(), Some(64), "{args:?}: {}", stderr_of(&output));
        assert!(stderr_of(&output).contains(why), "{args:?}: {}", stderr_of(&output));
    }
}

#[test]
fn a_flag_stands_above_a_variable_and_a_variable_above_the_file() {
    let folder = Workdir::new("parameters");
    let file = folder.write("operator.toml", "cloud-provider = \"File\"\n").display().to_string();
    let provider = |args: &[&str], variables: &[(&str, &str)]| {
        let text = stderr_of(&run(args, variables));
        ["Flag", "Variable", "File"].into_iter().find(|name| text.contains(&format!("`{name}` is no")))
    };
    let variable = [("CLOUD_PROVIDER", "Variable")];
    assert_eq!(provider(&["--config", &file, "--cloud-provider", "Flag"], &variable), Some("Flag"));
    assert_eq!(provider(&["--config", &file], &variable), Some("Variable"));
    assert_eq!(provider(&["--config", &file], &[]), Some("File"));
}

#[test]
fn without_a_cluster_it_says_what_to_do() {
    let output = run(&["--kubeconfig", "/nonexistent"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr_of(&output).contains("hint: name a configuration with `--kubeconfig FILE`"),
        "{}",
        stderr_of(&output)
    );
}

#[test]
fn a_token_is_never_shown() {
    let secret = "5e790147-dead-4000-8000-00000000beef";
    let help = setpoint().args(["run", "--help"]).env("CONSUL_HTTP_TOKEN", secret).output().unwrap();
    assert!(help.status.success() && !String::from_utf8_lossy(&help.stdout).contains(secret));
    let output = run(&["-vv", "--kubeconfig", "/nonexistent"], &[("CONSUL_HTTP_TOKEN", secret)]);
    assert!(!stderr_of(&output).contains(secret));
}
