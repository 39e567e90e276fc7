//! Users and groups by name, and what is managed of a path's permissions.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::fs::{Found, FsError};
use crate::item::{Access, Mode};

/// Looks up users and groups, each once.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: Mutex<HashMap<String, u32>>,
    groups: Mutex<HashMap<String, u32>>,
}

impl Accounts {
    /// The number of a user, where one is named.
    pub(crate) fn uid(&self, name: Option<&str>) -> Result<Option<u32>, FsError> {
        lookup(&self.users, "user", name, |name| {
            nix::unistd::User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
        })
    }

    /// The number of a group, where one is named.
    pub(crate) fn gid(&self, name: Option<&str>) -> Result<Option<u32>, FsError> {
        lookup(&self.groups, "group", name, |name| {
            nix::unistd::Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw())
        })
    }

    /// What was found of all that the item manages.
    pub(crate) fn found(&self, managed: &Access, found: &Found) -> Access {
        let owner = managed.owner.as_ref().map(|name| match self.uid(Some(name)) {
            Ok(Some(uid)) if uid == found.uid => name.clone(),
            _ => {
                let user = nix::unistd::User::from_uid(found.uid.into()).ok().flatten();
                user.map_or_else(|| found.uid.to_string(), |user| user.name)
            }
        });
        let group = managed.group.as_ref().map(|name| match self.gid(Some(name)) {
            Ok(Some(gid)) if gid == found.gid => name.clone(),
            _ => {
                let group = nix::unistd::Group::from_gid(found.gid.into()).ok().flatten();
                group.map_or_else(|| found.gid.to_string(), |group| group.name)
            }
        });
        Access { mode: managed.mode.map(|_| Mode::new(found.mode)), owner, group }
    }
}

fn lookup(
    known: &Mutex<HashMap<String, u32>>,
    what: &'static str,
    name: Option<&str>,
    find: impl FnOnce(&str) -> Option<u32>,
) -> Result<Option<u32>, FsError> {
    let Some(name) = name else { return Ok(None) };
    if let Ok(number) = name.parse() {
        return Ok(Some(number));
    }
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&number) = known.get(name) {
        return Ok(Some(number));
    }
    let number = find(name).ok_or_else(|| FsError::NoAccount { what, name: name.to_owned() })?;
    known.insert(name.to_owned(), number);
    Ok(Some(number))
}
