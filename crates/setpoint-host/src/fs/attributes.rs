//! Extended attributes: access control lists, security labels, and what users put there.
//!
//! A file that is rewritten is a new file in the place of the old one; what was attached to the old one is attached to it
//! again.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::io::Errno;

use super::Dir;

/// What says something about the old content, and would be wrong, or too much, for another one. The kernel takes a file's
/// capabilities away when it is written to.
const ABOUT_CONTENT: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];

/// The kernel has no longer value, and no longer list of names.
const MOST: usize = 64 << 10;

/// An attribute of a file.
pub(crate) type Xattr = (CString, Vec<u8>);

/// What a symbolic link has beside what it points to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Attached {
    /// Its user and group; none where that is not known.
    pub(crate) owner: Option<(u32, u32)>,
    pub(crate) attributes: Vec<Xattr>,
}

/// What is attached to the link that a directory has under a name.
pub(super) fn of_link(dir: &Dir<'_>, name: &str) -> Result<Attached, (String, Errno)> {
    let found = super::stat(dir, name).map_err(|errno| ("owner".to_owned(), errno))?;
    let link = path_of(dir, name);
    let list = |buffer: &mut [u8]| rustix::fs::llistxattr(link.as_str(), buffer);
    let attributes = read(list, |name, buffer| rustix::fs::lgetxattr(link.as_str(), name, buffer))?;
    Ok(Attached { owner: Some((found.uid, found.gid)), attributes })
}

/// Attaches to a new link what another one had. Fails with the name of what can't be.
pub(super) fn attach_to_link(dir: &Dir<'_>, name: &str, attached: &Attached) -> Result<(), (String, Errno)> {
    if let Some((uid, gid)) = attached.owner {
        let failed = |errno| ("owner".to_owned(), errno);
        let new = super::stat(dir, name).map_err(failed)?;
        let uid = (uid != new.uid).then(|| Uid::from_raw(uid));
        let gid = (gid != new.gid).then(|| Gid::from_raw(gid));
        if uid.is_some() || gid.is_some() {
            rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
        }
    }
    let link = path_of(dir, name);
    for (name, value) in &attached.attributes {
        // As of files.
        let there = get(|buffer| rustix::fs::lgetxattr(link.as_str(), name.as_c_str(), buffer));
        if there.as_ref() != Ok(value) {
            rustix::fs::lsetxattr(link.as_str(), name.as_c_str(), value, XattrFlags::empty())
                .map_err(|errno| (name.to_string_lossy().into_owned(), errno))?;
        }
    }
    Ok(())
}

/// The path of what a directory has under a name: attributes of a link are only to be had by one.
fn path_of(dir: &Dir<'_>, name: &str) -> String {
    format!("/proc/self/fd/{}/{name}", dir.as_fd().as_raw_fd())
}

/// Brings the attributes of the file that a directory has under a name to a new file. Fails with the name of one that can't
/// be kept.
pub(super) fn keep(dir: &Dir<'_>, name: &str, new: &OwnedFd) -> Result<(), (String, Errno)> {
    // Without opening the old file, which its owner may not be allowed to read.
    let old = path_of(dir, name);
    let list = |buffer: &mut [u8]| rustix::fs::llistxattr(old.as_str(), buffer);
    let value = |name: &CStr, buffer: &mut [u8]| rustix::fs::lgetxattr(old.as_str(), name, buffer);
    if list(&mut []) == Err(Errno::NOENT) && super::stat(dir, name).is_ok() {
        // There is no `/proc`: then it has to be opened.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, name, flags, Mode::empty());
        return set(new, &of(file.map_err(|errno| ("all of them".to_owned(), errno))?)?);
    }
    set(new, &read(list, value)?)
}

/// The attributes of an open file.
pub(super) fn of(file: impl AsFd) -> Result<Vec<Xattr>, (String, Errno)> {
    let list = |buffer: &mut [u8]| rustix::fs::flistxattr(&file, buffer);
    read(list, |name, buffer| rustix::fs::fgetxattr(&file, name, buffer))
}

/// Attaches attributes to a new file. Fails with the name of one that can't be.
pub(super) fn set(new: &OwnedFd, attributes: &[Xattr]) -> Result<(), (String, Errno)> {
    for (name, value) in attributes {
        // A label that the system gives to every new file there needs no privilege to be kept.
        if get(|buffer| rustix::fs::fgetxattr(new, name.as_c_str(), buffer)).as_ref() == Ok(value) {
            continue;
        }
        rustix::fs::fsetxattr(new, name.as_c_str(), value, XattrFlags::empty())
            .map_err(|errno| (name.to_string_lossy().into_owned(), errno))?;
    }
    Ok(())
}

/// Reads attributes, but for those that are about the content.
fn read(
    list: impl Fn(&mut [u8]) -> Result<usize, Errno>,
    value: impl Fn(&CStr, &mut [u8]) -> Result<usize, Errno>,
) -> Result<Vec<Xattr>, (String, Errno)> {
    let names = match get(list) {
        Ok(names) => names,
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOENT) => return Ok(Vec::new()),
        Err(errno) => return Err(("all of them".to_owned(), errno)),
    };
    let mut found = Vec::new();
    for name in names.split_inclusive(|&byte| byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if ABOUT_CONTENT.contains(&name.to_bytes()) {
            continue;
        }
        match get(|buffer| value(name, buffer)) {
            Ok(value) => found.push((name.to_owned(), value)),
            // It was taken away meanwhile.
            Err(Errno::NODATA) => {}
            Err(errno) => return Err((name.to_string_lossy().into_owned(), errno)),
        }
    }
    Ok(found)
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
