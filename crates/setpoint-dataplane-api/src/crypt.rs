//! Passwords as userlists hold them: plain, or hashed as `crypt` does.

use md5::{Digest, Md5};
use sha_crypt::{PasswordHash, PasswordVerifier, ShaCrypt};
use yescrypt::Yescrypt;

/// The hash of a password, or the password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Secret {
    /// `insecure-password`.
    Plain(String),
    /// `$1$`.
    Md5(String),
    /// `$5$` and `$6$`.
    Sha(String),
    /// `$2a$`, `$2b$`, `$2x$` and `$2y$`.
    Bcrypt(String),
    /// `$y$`.
    Yescrypt(String),
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Reads a hash; an error names one that is not known.
    pub(crate) fn hashed(text: &str) -> Result<Self, String> {
        match text.split('$').nth(1) {
            Some("1") => Ok(Self::Md5(text.to_owned())),
            Some("5" | "6") => Ok(Self::Sha(text.to_owned())),
            Some("2a" | "2b" | "2x" | "2y") => Ok(Self::Bcrypt(text.to_owned())),
            Some("y") => Ok(Self::Yescrypt(text.to_owned())),
            Some(other) if text.starts_with('$') => Err(format!("`${other}$`")),
            _ => Err("DES".to_owned()),
        }
    }

    /// Returns whether a password is this one.
    pub(crate) fn is(&self, password: &str) -> bool {
        match self {
            Self::Plain(held) => same(held.as_bytes(), password.as_bytes()),
            Self::Md5(held) => {
                let salt = held.split('$').nth(2).unwrap_or_default();
                same(held.as_bytes(), md5_crypt(password.as_bytes(), salt.as_bytes()).as_bytes())
            }
            Self::Sha(held) => PasswordHash::new(held.as_str())
                .is_ok_and(|hash| ShaCrypt::default().verify_password(password.as_bytes(), &hash).is_ok()),
            Self::Bcrypt(held) => bcrypt::verify(password, held).unwrap_or(false),
            Self::Yescrypt(held) => PasswordHash::new(held.as_str())
                .is_ok_and(|hash| Yescrypt::default().verify_password(password.as_bytes(), &hash).is_ok()),
        }
    }
}

/// Compares in a time that does not depend on where the first difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// The hash of `crypt` that begins with `$1$`: a thousand rounds of MD5.
fn md5_crypt(password: &[u8], salt: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let salt = salt.get(..salt.len().min(8)).unwrap_or_default();
    let other = Md5::new().chain_update(password).chain_update(salt).chain_update(password).finalize();
    let mut first = Md5::new().chain_update(password).chain_update(b"$1$").chain_update(salt);
    first.update(other.iter().copied().cycle().take(password.len()).collect::<Vec<u8>>());
    let mut bits = password.len();
    while bits > 0 {
        let byte = if bits & 1 == 1 { 0 } else { password.first().copied().unwrap_or_default() };
        first.update([byte]);
        bits >>= 1;
    }
    let mut hash: [u8; 16] = first.finalize().into();
    for round in 0..1000 {
        let mut next = Md5::new();
        next.update(if round % 2 == 1 { password } else { &hash[..] });
        if round % 3 != 0 {
            next.update(salt);
        }
        if round % 7 != 0 {
            next.update(password);
        }
        next.update(if round % 2 == 1 { &hash[..] } else { password });
        hash = next.finalize().into();
    }
    let groups: [([usize; 3], usize); 6] = [
        ([0, 6, 12], 4),
        ([1, 7, 13], 4),
        ([2, 8, 14], 4),
        ([3, 9, 15], 4),
        ([4, 10, 5], 4),
        ([16, 16, 11], 2),
    ];
    let mut text = format!("$1${}$", String::from_utf8_lossy(salt));
    for (places, letters) in groups {
        let byte = |place: usize| usize::from(hash.get(place).copied().unwrap_or_default());
        let mut number = places.iter().fold(0, |number, place| number << 8 | byte(*place));
        for _ in 0..letters {
            text.push(char::from(LETTERS.get(number & 63).copied().unwrap_or(b'.')));
            number >>= 6;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_crypt_are_verified() {
        let hashes = [
            "$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/",
            "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5",
            "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1",
            "$2y$05$saltsaltsaltsaltsaltsekkd1rhQeYdqtmnVO7HhrcaOaDwxQc9C",
            "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$42RgPIrXdXSEEs77lDi/4IqKVqFBAVaHJkzw5uD1r57",
        ];
        for (hash, password) in hashes.into_iter().zip([
            "password",
            "Hello world!",
            "Hello world!",
            "Hello world!",
            "Hello world!",
        ]) {
            let secret = Secret::hashed(hash).unwrap();
            assert!(secret.is(password), "{hash}");
            assert!(!secret.is("other"), "{hash}");
        }
        assert!(Secret::Plain("adminpwd".into()).is("adminpwd") && !Secret::Plain("a".into()).is("b"));
    }

    #[test]
    fn others_are_refused_by_name() {
        assert_eq!(Secret::hashed("$7$abc"), Err("`$7$`".into()));
        assert_eq!(Secret::hashed("abcdefghijklm"), Err("DES".into()));
    }
}
