//! Development commands of the workspace: `cargo xtask --help`.

fn main() {}
