//! What items of several kinds are made of.
//!
//! An item has a name of its own and, where it has one, a path: another path is the same item in another
//! place. All paths are below one allowed root and relative to it.

mod access;
mod attribute;
mod content;
pub(crate) mod environment;
pub(crate) mod need;
mod path;
mod quote;
mod ready;
mod run;
mod source;

pub use access::{Access, Mode, ModeError};
pub use attribute::{WholeAttribute, attributes};
pub(crate) use content::hex;
pub use content::{Content, bytes_read};
pub(crate) use quote::{quoted, quoted_list};
pub(crate) use source::RegularFile;

pub use need::{Because, Dependence, Need};
pub use path::{PathError, RootPath};
pub use ready::{Address, AddressError, Readiness, Ready};
pub use run::{Invocation, StopSignal, Wait, WaitError};
