//! The custom resource `Composite`, its validation and its status.
