//! The commands that every binary has, whatever jobs are in it.

pub(crate) mod help;
