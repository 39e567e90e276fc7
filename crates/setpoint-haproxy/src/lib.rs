//! HAProxy configuration: a lossless parser, the typed model of the Dataplane API, printers and a comparator. Pure.

pub mod model;
pub mod table;
