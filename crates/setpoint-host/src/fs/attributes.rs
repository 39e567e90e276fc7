//! Extended attributes: access control lists, security labels, and what users put there.
//!
//! A file that is rewritten is a new file in the place of the old one; what was attached to the old one is attached to it
//! again.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::Dir;

/// What says something about the old content, and would be wrong, or too much, for another one. The kernel takes a file's
/// capabilities away when it is written to.
const ABOUT_CONTENT: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];

/// The kernel has no longer value, and no longer list of names.
const MOST: usize = 64 << 10;

/// Brings the attributes of the file that a directory has under a name to a new file. Fails with the name of one that can't
/// be kept.
pub(super) fn keep(dir: &Dir<'_>, name: &str, new: &OwnedFd) -> Result<(), (String, Errno)> {
    // Without opening the old file, which its owner may not be allowed to read.
    let old = format!("/proc/self/fd/{}/{name}", dir.as_fd().as_raw_fd());
    let names = match list(&old) {
        Ok(names) => names,
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(("all of them".to_owned(), errno)),
    };
    for name in names.split_inclusive(|&byte| byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if ABOUT_CONTENT.contains(&name.to_bytes()) {
            continue;
        }
        let failed = |errno| (name.to_string_lossy().into_owned(), errno);
        let value = match get(|buffer| rustix::fs::lgetxattr(old.as_str(), name, buffer)) {
            Ok(value) => value,
            // It was taken away meanwhile.
            Err(Errno::NODATA) => continue,
            Err(errno) => return Err(failed(errno)),
        };
        // A label that the system gives to every new file there needs no privilege to be kept.
        if get(|buffer| rustix::fs::fgetxattr(new, name, buffer)).as_ref() == Ok(&value) {
            continue;
        }
        rustix::fs::fsetxattr(new, name, &value, XattrFlags::empty()).map_err(failed)?;
    }
    Ok(())
}

/// The names of all attributes, each with a NUL behind it.
fn list(path: &str) -> Result<Vec<u8>, Errno> {
    get(|buffer| rustix::fs::llistxattr(path, buffer))
}

/// Gets something of a length that nobody knows before.
fn get(ask: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; 1024];
    loop {
        match ask(&mut bytes) {
            Ok(length) => {
                bytes.truncate(length);
                return Ok(bytes);
            }
            Err(Errno::RANGE) if bytes.len() < MOST => bytes.resize(bytes.len() * 2, 0),
            Err(errno) => return Err(errno),
        }
    }
}
