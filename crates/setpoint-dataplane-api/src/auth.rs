//! Who may use the API: the users of a userlist, by Basic authentication.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use setpoint_haproxy::text::{Document, SectionKind};
use tokio::sync::Semaphore;

use crate::answer::Problem;
use crate::crypt::Secret;
use crate::dialect::Dialect;
use crate::limits::Buckets;
use crate::listen::Peer;

/// So many wrong passwords in a row may come from one address, and so many more in each second after.
const MOST_WRONG: f64 = 30.0;
const WRONG_PER_SECOND: f64 = 0.5;
/// How many passwords are verified at once.
const VERIFYING: usize = 2;

/// The users that may do everything.
#[derive(Debug, Default)]
pub struct Users {
    by_name: BTreeMap<String, Arc<Secret>>,
    /// Whether everybody may.
    open: bool,
    /// Who gave wrong passwords, and how often.
    wrong: Wrong,
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
        let mut users = Vec::new();
        for line in found.lines() {
            let words: Vec<String> = line.words().map(|word| word.to_str_lossy().into_owned()).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ["user", user, options @ ..] = words.as_slice() else { continue };
            let password = options.windows(2).find_map(|pair| match pair {
                ["insecure-password", password] => Some((*password, true)),
                ["password", hash] => Some((*hash, false)),
                _ => None,
            });
            users.extend(
                password.map(|(password, insecure)| ((*user).to_owned(), password.to_owned(), insecure)),
            );
        }
        if users.is_empty() {
            return Err(UsersError::Empty(named.to_owned()));
        }
        Self::named(
            users.iter().map(|(user, password, insecure)| (user.as_str(), password.as_str(), *insecure)),
        )
    }

    /// Users that are named with their passwords, each as it is or hashed.
    pub fn named<'a>(users: impl IntoIterator<Item = (&'a str, &'a str, bool)>) -> Result<Self, UsersError> {
        let mut by_name = BTreeMap::new();
        for (user, password, insecure) in users {
            let secret = if insecure {
                Secret::Plain(password.to_owned())
            } else {
                Secret::hashed(password).map_err(|hash| UsersError::Hash { user: user.to_owned(), hash })?
            };
            by_name.insert(user.to_owned(), Arc::new(secret));
        }
        Ok(Self { by_name, ..Self::default() })
    }

    /// Finds out who asks. Passwords are verified beside all else, two at a time; who gave too many wrong ones has to wait.
    pub(crate) async fn identify(
        &self,
        headers: &HeaderMap,
        dialect: Dialect,
        peer: Peer,
    ) -> Result<String, Problem> {
        if peer == Peer::Owner {
            return Ok("owner".to_owned());
        }
        if self.open {
            return Ok("anybody".to_owned());
        }
        let refused =
            |message: &str| Problem::new(401, message).with("www-authenticate", "Basic realm=\"API\"");
        let missing = || {
            refused(if dialect.is_new() {
                "missing or invalid authorization"
            } else {
                "unauthenticated for invalid credentials"
            })
        };
        let header =
            headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok()?.strip_prefix("Basic "));
        let bytes = header.and_then(|header| STANDARD.decode(header.trim()).ok()).ok_or_else(missing)?;
        let text = String::from_utf8(bytes).map_err(|_| missing())?;
        let (user, password) = text.split_once(':').ok_or_else(missing)?;
        let hash = self.key.hash_one((user, password));
        if self.right.lock().unwrap_or_else(PoisonError::into_inner).contains(&hash) {
            return Ok(user.to_owned());
        }
        if let Some(wait) = self.wrong.buckets.wait(peer, Instant::now()) {
            return Err(Problem::too_often(wait));
        }
        // A user that there is not takes as long as one that there is.
        let known = self.by_name.get(user);
        let Some(secret) = known.or_else(|| self.by_name.values().next()).cloned() else {
            return Err(refused("unauthorized"));
        };
        let password = password.to_owned();
        let permit = self.wrong.verifying.acquire().await;
        let is_right = tokio::task::spawn_blocking(move || secret.is(&password)).await.unwrap_or(false);
        drop(permit);
        if is_right && known.is_some() {
            self.right.lock().unwrap_or_else(PoisonError::into_inner).insert(hash);
            return Ok(user.to_owned());
        }
        let _ = self.wrong.buckets.take(peer, Instant::now());
        tracing::warn!(%peer, "somebody gave a wrong user or password");
        Err(refused("unauthorized"))
    }
}

/// What keeps passwords from being guessed.
#[derive(Debug)]
struct Wrong {
    buckets: Buckets,
    verifying: Semaphore,
}

impl Default for Wrong {
    fn default() -> Self {
        Self { buckets: Buckets::new(MOST_WRONG, WRONG_PER_SECOND), verifying: Semaphore::new(VERIFYING) }
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
