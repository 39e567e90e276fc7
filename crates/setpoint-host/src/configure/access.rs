//! Users and groups by name, and what is managed of a path's permissions.
//!
//! Names are looked up in `/etc/passwd` and `/etc/group`, and nowhere else: a statically linked program can't load the
//! modules of the name service switch, and one that is not should not behave differently. Accounts of a directory
//! service are given by number.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::fs::{Found, FsError};
use crate::item::{Access, Mode};

/// Where users are listed.
const USERS: &str = "/etc/passwd";
/// Where groups are listed.
const GROUPS: &str = "/etc/group";

/// Looks up users and groups, each once.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    users: Mutex<HashMap<String, u32>>,
    groups: Mutex<HashMap<String, u32>>,
}

impl Accounts {
    /// The number of a user, where one is named.
    pub(crate) fn uid(&self, name: Option<&str>) -> Result<Option<u32>, FsError> {
        lookup(&self.users, "user", name, |name| number_of(&list(USERS), name))
    }

    /// The number of a group, where one is named.
    pub(crate) fn gid(&self, name: Option<&str>) -> Result<Option<u32>, FsError> {
        lookup(&self.groups, "group", name, |name| number_of(&list(GROUPS), name))
    }

    /// What is wrong with the accounts that an item names; none if they are known here, or none is named.
    pub(crate) fn unknown(&self, managed: &Access) -> Option<FsError> {
        let user = self.uid(managed.owner.as_deref()).err();
        user.or_else(|| self.gid(managed.group.as_deref()).err())
    }

    /// What was found of all that the item manages.
    pub(crate) fn found(&self, managed: &Access, found: &Found) -> Access {
        self.of_managed(managed, found.mode, found.uid, found.gid)
    }

    /// A mode, a user and a group, as far as the item manages them.
    pub(crate) fn of_managed(&self, managed: &Access, mode: u32, uid: u32, gid: u32) -> Access {
        let owner = managed.owner.as_ref().map(|name| match self.uid(Some(name)) {
            Ok(Some(known)) if known == uid => name.clone(),
            _ => name_of(&list(USERS), uid).unwrap_or_else(|| uid.to_string()),
        });
        let group = managed.group.as_ref().map(|name| match self.gid(Some(name)) {
            Ok(Some(known)) if known == gid => name.clone(),
            _ => name_of(&list(GROUPS), gid).unwrap_or_else(|| gid.to_string()),
        });
        Access { mode: managed.mode.map(|_| Mode::new(mode)), owner, group }
    }
}

fn lookup(
    known: &Mutex<HashMap<String, u32>>,
    what: &'static str,
    name: Option<&str>,
    find: impl FnOnce(&str) -> Option<u32>,
) -> Result<Option<u32>, FsError> {
    let Some(name) = name else { return Ok(None) };
    match name.parse() {
        // The system takes it for none.
        Ok(u32::MAX) => return Err(FsError::NoAccount { what, name: name.to_owned() }),
        Ok(number) => return Ok(Some(number)),
        Err(_) => {}
    }
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&number) = known.get(name) {
        return Ok(Some(number));
    }
    let number = find(name).ok_or_else(|| FsError::NoAccount { what, name: name.to_owned() })?;
    known.insert(name.to_owned(), number);
    Ok(Some(number))
}

/// The text of a list of accounts; where there is none, there are no accounts.
fn list(path: impl AsRef<Path>) -> String {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The names and numbers of a list: lines of `name:password:number:…`.
fn accounts(list: &str) -> impl Iterator<Item = (&str, u32)> {
    list.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        Some((name, number.parse().ok()?))
    })
}

fn number_of(list: &str, name: &str) -> Option<u32> {
    accounts(list).find(|(other, _)| *other == name).map(|(_, number)| number)
}

fn name_of(list: &str, number: u32) -> Option<String> {
    accounts(list).find(|(_, other)| *other == number).map(|(name, _)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "root:x:0:0:root:/root:/bin/bash\n# a comment\n\n+::::::\nbroken:x\nodd:x:many:\n\
                        daemon:x:1:1::/usr/sbin:/usr/sbin/nologin\ntoor:x:0:0::/:/bin/sh\n";

    #[test]
    fn accounts_are_found_by_name_and_by_number_and_the_first_of_a_number_wins() {
        assert_eq!(number_of(LIST, "daemon"), Some(1));
        assert_eq!(number_of(LIST, "toor"), Some(0));
        assert_eq!(name_of(LIST, 0).as_deref(), Some("root"));
    }

    #[test]
    fn lines_that_are_no_accounts_are_passed_over() {
        for name in ["", "+", "broken", "odd", "# a comment", "nobody"] {
            assert_eq!(number_of(LIST, name), None, "{name}");
        }
        assert_eq!(name_of(LIST, 7), None);
        assert_eq!(number_of(&list("/nonexistent/passwd"), "root"), None);
    }

    #[test]
    fn a_user_and_a_group_that_every_host_has_are_found() {
        let accounts = Accounts::default();
        assert_eq!(accounts.uid(Some("root")).unwrap(), Some(0));
        assert_eq!(accounts.gid(Some("root")).unwrap(), Some(0));
        assert_eq!(accounts.uid(Some("1234")).unwrap(), Some(1234));
        assert!(accounts.uid(Some("4294967295")).is_err() && accounts.gid(Some("4294967295")).is_err());
        assert!(accounts.uid(Some("no-such-user")).is_err());
    }
}
