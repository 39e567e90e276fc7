//! Which file, link or directory something is, whatever it is called and wherever it is.

use std::fmt;
use std::os::fd::AsFd;
use std::str::FromStr;

use rustix::fs::{AtFlags, StatxFlags};
use rustix::io::Errno;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Dir;

/// File systems that give a file another number when they have forgotten the first one: FAT, exFAT, FUSE, CIFS and SMB.
const RENUMBERING: [u64; 5] = [0x4d44, 0x2011_bab0, 0x6573_5546, 0xff53_4d42, 0xfe53_4d42];
/// An overlay keeps the number of a directory when it copies it up, and not when it was born.
const OVERLAY: u64 = 0x794c_7630;

/// Which file, link or directory it is.
///
/// The device is no part of it: devices are numbered anew when a machine starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number {
    ino: u64,
    /// When it came into being, where the file system knows: the number of one that is gone is given again.
    born: Option<(i64, u32)>,
}

impl Number {
    /// Returns whether what was found has this number. Where nothing was noted of its birth, that may be any.
    pub(crate) fn is(self, found: Self) -> bool {
        self.ino == found.ino && (self.born.is_none() || self.born == found.born)
    }
}

/// The number of an entry of a directory.
pub(super) fn number(dir: &Dir<'_>, name: &str) -> Result<Number, Errno> {
    statx(dir, name, AtFlags::SYMLINK_NOFOLLOW).map(|(number, _)| number)
}

/// The number of what a path leads to from an open directory, links included, if that is a directory. An empty path is the
/// directory itself.
pub(super) fn directory(dir: impl AsFd, path: &str) -> Result<Option<Number>, Errno> {
    let flags = if path.is_empty() { AtFlags::EMPTY_PATH } else { AtFlags::empty() };
    statx(dir, path, flags).map(|(number, is_directory)| is_directory.then_some(number))
}

/// The number of an open directory, as it can be noted for good.
pub(super) fn of_directory(dir: impl AsFd) -> Option<Number> {
    let number = directory(&dir, "").ok().flatten()?;
    kept(dir, number)
}

/// The number of an open file, as it can be noted for good.
pub(crate) fn lasting_number(file: impl AsFd) -> Option<Number> {
    let (number, _) = statx(&file, "", AtFlags::EMPTY_PATH).ok()?;
    kept(file, number)
}

/// The number of what an absolute path leads to, links included; none if it leads to nothing, or nobody may look.
pub(crate) fn number_at(path: &str) -> Option<Number> {
    statx(rustix::fs::CWD, path, AtFlags::empty()).ok().map(|(number, _)| number)
}

/// What can be noted for good of a number on the file system of an open directory; none if its numbers change.
pub(super) fn kept(dir: impl AsFd, number: Number) -> Option<Number> {
    #[expect(
        clippy::cast_sign_loss,
        clippy::useless_conversion,
        reason = "the type differs between architectures"
    )]
    let kind = u64::from(rustix::fs::fstatfs(dir).ok()?.f_type as u64) & 0xffff_ffff;
    match kind {
        kind if RENUMBERING.contains(&kind) => None,
        OVERLAY => Some(Number { born: None, ..number }),
        _ => Some(number),
    }
}

/// Which mount a path leads to from an open directory, links included. An empty path is the directory itself.
pub(super) fn mount(dir: impl AsFd, path: &str) -> Result<u64, Errno> {
    let flags = if path.is_empty() { AtFlags::EMPTY_PATH } else { AtFlags::empty() };
    let found = rustix::fs::statx(dir, path, flags, StatxFlags::MNT_ID)?;
    // Linux before 5.8 says on which device it is, and not by which mount.
    let is_known = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
    Ok(if is_known {
        found.stx_mnt_id
    } else {
        rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor)
    })
}

fn statx(dir: impl AsFd, path: &str, flags: AtFlags) -> Result<(Number, bool), Errno> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME | StatxFlags::TYPE;
    let found = rustix::fs::statx(dir, path, flags, wanted)?;
    let born = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    let born = born.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec));
    let kind = rustix::fs::FileType::from_raw_mode(u32::from(found.stx_mode));
    Ok((Number { ino: found.stx_ino, born }, kind.is_dir()))
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.born {
            Some((seconds, nanoseconds)) => write!(f, "{}@{seconds}.{nanoseconds}", self.ino),
            None => write!(f, "{}", self.ino),
        }
    }
}

impl FromStr for Number {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (ino, born) = text.split_once('@').map_or((text, None), |(ino, born)| (ino, Some(born)));
        let born = born.map(|born| {
            let (seconds, nanoseconds) = born.split_once('.').unwrap_or((born, "0"));
            Ok((seconds.parse()?, nanoseconds.parse()?))
        });
        Ok(Self { ino: ino.parse()?, born: born.transpose()? })
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number with the time of birth")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Number, E> {
        text.parse().map_err(E::custom)
    }

    /// As an earlier version noted it.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Number, A::Error> {
        #[derive(Deserialize)]
        struct Earlier {
            ino: u64,
            #[serde(default)]
            born: Option<(i64, u32)>,
        }
        let Earlier { ino, born } = Earlier::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Number { ino, born })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_and_read_back_also_as_an_earlier_version_wrote_it() {
        for number in [Number { ino: 7, born: None }, Number { ino: 7, born: Some((-1, 999)) }] {
            let text = serde_json::to_string(&number).unwrap();
            assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number, "{text}");
        }
        let earlier: Number = serde_json::from_str(r#"{"dev":[0,1],"ino":7,"born":[5,6]}"#).unwrap();
        assert_eq!(earlier, Number { ino: 7, born: Some((5, 6)) });
        assert!(serde_json::from_str::<Number>("\"x\"").is_err());
    }

    #[test]
    fn what_was_noted_without_a_birth_may_have_any() {
        let (noted, found) = (Number { ino: 7, born: None }, Number { ino: 7, born: Some((5, 6)) });
        assert!(noted.is(found) && found.is(found));
        assert!(!found.is(Number { ino: 7, born: Some((5, 7)) }));
        assert!(!noted.is(Number { ino: 8, born: None }));
    }
}
