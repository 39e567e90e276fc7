//! Processes of the host: how they are started, found again, ended, and run to their end.

/// The variable that marks what Setpoint started, in the environment of the process and all it starts.
pub(crate) const TAG: &str = "SETPOINT_PROCESS";
