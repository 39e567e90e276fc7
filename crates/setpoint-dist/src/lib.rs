//! Packs a binary of Setpoint for those who install it, and tries what it packed.
//!
//! ```text
//!                       ┌─▶ deb:   setpoint_VERSION_ARCH.deb
//! binary ─┬─▶ elf ──────┤
//!         │             └─▶ image: an OCI image layout, as a folder and as one archive
//!         └─▶ documents: manual pages, completions
//! cargo tree ──▶ sbom ──▶ CycloneDX                          all of them ──▶ checksums ──▶ SHA256SUMS
//! ```
//!
//! [`Staging`] is where all of it is packed before it comes to its folder at once.
//!
//! Any binary is packed, static or not, optimised or not: tests pack the one that they have built. A dynamic one makes a
//! package that depends on the C library, and an image that holds the libraries it needs. The same binary always gives the
//! same bytes: entries are sorted, belong to root, and are of the release's time.
//!
//! [`verify`] installs the package into a root of its own, unpacks the image, and runs both.

pub mod checksums;
mod date;
mod deb;
mod documents;
mod elf;
mod error;
mod image;
mod json;
mod pack;
mod program;
mod release;
mod sbom;
mod staging;
mod tree;
pub mod verify;

pub use documents::Documents;
pub use elf::{Elf, Machine};
pub use error::DistError;
pub use pack::{Artefacts, Compression, Packing};
pub use release::{Release, Version};
pub use sbom::{Bill, Component};
pub use staging::Staging;
