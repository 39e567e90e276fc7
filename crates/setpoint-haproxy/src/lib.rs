//! HAProxy configuration: lossless parser, typed model, printer, comparator.
//!
//! ```text
//! bytes ──parse──▶ Document ──model──▶ Model ─┐
//!                     ▲                       ├──compare──▶ operations, in the plan envelope
//!                     └────────apply──────────┴───────────────┘
//! ```
//!
//! Everything is pure: bytes and values in, bytes and values out. What is not understood is kept and reported.
//!
//! ```
//! use setpoint_haproxy::text::{Document, SectionKind};
//!
//! let text = b"backend web\n    server s1 10.0.0.1:80 check # the old one\n";
//! let document = Document::parse(text);
//! let section = &document.sections()[0];
//! assert_eq!((section.kind(), section.name().as_deref()), (SectionKind::Backend, Some(&b"web"[..])));
//! let words: Vec<_> = section.lines().next().unwrap().words().map(|word| word.text.into_owned()).collect();
//! assert_eq!(words, [&b"server"[..], b"s1", b"10.0.0.1:80", b"check"]);
//! assert_eq!(document.print(), text);
//! ```

pub mod api;
pub mod check;
pub mod compare;
pub mod edit;
pub mod keywords;
pub mod model;
pub mod schema;
pub mod table;
pub mod text;
