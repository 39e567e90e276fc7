//! Who may use the API: the users of a userlist, by Basic authentication.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use setpoint_haproxy::text::{Document, SectionKind};

use crate::answer::Problem;
use crate::crypt::Secret;
use crate::request::Request;

/// The users that may do everything.
#[derive(Debug, Default)]
pub struct Users {
    by_name: BTreeMap<String, Secret>,
    /// Whether everybody may.
    open: bool,
    /// Which credentials were right before, hashed with a key of this process: `crypt` takes milliseconds on purpose.
    right: Mutex<HashSet<u64>>,
    key: RandomState,
}

/// Why there are no users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsersError {
    /// There is no such list.
    #[error("there is no userlist {0}")]
    NoList(String),
    /// A user has a password that can't be verified.
    #[error(
        "the password of user {user} is hashed with {hash}, which is not supported: use SHA-256, SHA-512, bcrypt or yescrypt"
    )]
    Hash {
        /// The user.
        user: String,
        /// The hash.
        hash: String,
    },
    /// The list is empty.
    #[error("userlist {0} has no user with a password")]
    Empty(String),
}

impl Users {
    /// Everybody may use the API: it is guarded by something else.
    pub fn everybody() -> Self {
        Self { open: true, ..Self::default() }
    }

    /// The users of a list in a configuration; of its only list, if none is named.
    pub fn of(configuration: &Document, list: Option<&str>) -> Result<Self, UsersError> {
        let named = list.unwrap_or("of any name");
        let mut lists = configuration.sections().iter().filter(|section| {
            section.kind() == SectionKind::Userlist
                && list.is_none_or(|list| section.name().as_deref() == Some(list.as_bytes()))
        });
        let found = lists.next().ok_or_else(|| UsersError::NoList(named.to_owned()))?;
        let mut by_name = BTreeMap::new();
        for line in found.lines() {
            let words: Vec<String> = line.words().map(|word| word.to_str_lossy().into_owned()).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ["user", user, options @ ..] = words.as_slice() else { continue };
            for pair in options.windows(2) {
                let secret = match pair {
                    ["insecure-password", password] => Secret::Plain((*password).to_owned()),
                    ["password", hash] => Secret::hashed(hash)
                        .map_err(|hash| UsersError::Hash { user: (*user).to_owned(), hash })?,
                    _ => continue,
                };
                by_name.insert((*user).to_owned(), secret);
                break;
            }
        }
        if by_name.is_empty() {
            return Err(UsersError::Empty(named.to_owned()));
        }
        Ok(Self { by_name, ..Self::default() })
    }

    /// Finds out who asks.
    pub(crate) fn who(&self, request: &Request) -> Result<String, Problem> {
        if self.open {
            return Ok("anybody".to_owned());
        }
        let refused =
            |message: &str| Problem::new(401, message).with("www-authenticate", "Basic realm=\"API\"");
        let is_new = request.dialect.is_new();
        let missing = || {
            refused(if is_new {
                "missing or invalid authorization"
            } else {
                "unauthenticated for invalid credentials"
            })
        };
        let header = request.header("authorization").and_then(|header| header.strip_prefix("Basic "));
        let bytes = header.and_then(|header| STANDARD.decode(header.trim()).ok()).ok_or_else(missing)?;
        let text = String::from_utf8(bytes).map_err(|_| missing())?;
        let (user, password) = text.split_once(':').ok_or_else(missing)?;
        let hash = self.key.hash_one((user, password));
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        if right.contains(&hash) {
            return Ok(user.to_owned());
        }
        match self.by_name.get(user) {
            Some(secret) if secret.is(password) => {
                right.insert(hash);
                Ok(user.to_owned())
            }
            _ => Err(refused("unauthorized")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_of_a_list_are_read() {
        let text = b"userlist a\n  user x insecure-password p\n  user y password $1$saltsalt$qjXMvbEw8oaL.CzflDtaK/\n";
        let users = Users::of(&Document::parse(text), Some("a")).unwrap();
        assert_eq!(users.by_name.len(), 2);
        let none = Users::of(&Document::parse(text), Some("b")).unwrap_err();
        assert_eq!(none.to_string(), "there is no userlist b");
        let text = b"userlist a\n  user x password $7$abc\n";
        let error = Users::of(&Document::parse(text), None).unwrap_err().to_string();
        assert!(error.contains("user x") && error.contains("$7$"), "{error}");
    }
}
