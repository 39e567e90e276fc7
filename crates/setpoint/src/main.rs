//! The `setpoint` command.

fn main() {}
