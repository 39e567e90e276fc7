//! The loop around the engine, in simulated time.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail by panicking")]

mod controller;
mod world;

#[test]
fn the_example_of_a_controller_does_what_it_says() {
    #[path = "../../examples/controller.rs"]
    mod example;

    example::main().unwrap();
}
