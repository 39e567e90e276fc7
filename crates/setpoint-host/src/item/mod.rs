//! The items of a host: what a manifest declares.
//!
//! An item has a name of its own and, where it has one, a path: another path is the same item in another
//! place. All paths are below one allowed root and relative to it.

mod access;
mod attribute;
mod command;
mod content;
mod directory;
mod environment;
mod file;
mod need;
mod path;
mod process;
mod ready;
mod run;
mod symlink;

pub use access::{Access, Mode, ModeError};
pub use attribute::{WholeAttribute, attributes};
pub use command::Command;
pub use content::Content;
pub(crate) use content::hex;

pub use directory::Directory;
pub use file::File;
pub(crate) use need::with_need;
pub use need::{Because, Need, Tie};
pub use path::{PathError, RootPath};
pub use process::Process;
pub use ready::{Address, AddressError, Readiness, Ready};
pub use run::{Run, StopSignal, Wait, WaitError};
pub use symlink::Symlink;

use setpoint_graph::ItemTypes;

/// The types of all host items, by kind: what a graph of them is written and read with.
///
/// ```
/// let kinds: Vec<String> = setpoint_host::item_types().kinds().map(ToString::to_string).collect();
/// assert_eq!(kinds, ["command", "directory", "file", "process", "symlink"]);
/// ```
pub fn item_types() -> ItemTypes {
    let mut types = ItemTypes::new();
    types
        .register::<Directory>()
        .register::<File>()
        .register::<Symlink>()
        .register::<Process>()
        .register::<Command>();
    types
}
