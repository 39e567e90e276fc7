//! Starts parts for a person to play with.
fn main() {}
