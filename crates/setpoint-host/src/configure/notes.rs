//! What is noted of items: in their state, and in the journal before something is done that a killed run could tell nobody of.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use setpoint_engine::OpCx;

use crate::fs::{FileType, FsError, Number};
use crate::item::RootPath;
use crate::process::Started;

/// What is noted of a directory, a file or a link.
///
/// A path does not say which file it leads to: the directory around it may be another one tomorrow. So a directory is known by
/// its own number, and what is in a directory by the number of that and its name there. A file has no number of its own here:
/// whoever rewrites it, Setpoint or an editor, makes a new one in the place of the old.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PathNote {
    /// The number of the directory that it is known by. None where the file system keeps no numbers, and of what an earlier
    /// version made: it is known by its path alone.
    pub(crate) known_by: Option<Number>,
    /// How many file systems were mounted on the way to it: with fewer, its path leads to the bare directory below.
    pub(crate) mounts: usize,
    /// What was made for it, and is about to come to its place: forgotten when what came of the run is saved.
    pub(crate) made: Option<Made>,
    /// Where it was about to be moved, one after the other: forgotten when what came of the run is saved, and nothing failed.
    pub(crate) moved: Vec<Move>,
    /// Digests of what Setpoint wrote in the place of something that was there before, or was about to write: the last of them
    /// when what came of the run is saved.
    pub(crate) wrote: Vec<String>,
    /// What was about to be set aside: forgotten like a move.
    pub(crate) aside: Option<Aside>,
    /// What was there before, and is back in its place: nothing of the item is left.
    pub(crate) released: Option<Number>,
    /// What was there before, by its name among what is kept: it is put back in the end.
    pub(crate) original: Option<String>,
    /// Whether it is about to be taken over, and may not have been replaced: forgotten like what was made.
    pub(crate) adopting: bool,
}

/// What was about to be set aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Aside {
    /// Which one it is.
    pub(crate) number: Number,
    /// Where it was.
    pub(crate) from: RootPath,
}

/// What was made for an item: a creation that was cut off has come to its end if, and only if, that is what is there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Made {
    /// This one.
    This(Number),
    /// It could only be made in its place, before anyone could know it.
    Unseen(Unseen),
}

/// The word for what could only be made in its place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unseen {
    InPlace,
}

/// One rename.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Move {
    pub(crate) from: RootPath,
    pub(crate) to: RootPath,
    /// Which one it is, whatever it is called.
    pub(crate) number: Number,
    /// The directory that it comes into, of what is known by that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) into: Option<Number>,
}

impl PathNote {
    /// What is noted of the item that is operated on.
    pub(crate) fn of(cx: &OpCx) -> Self {
        cx.noted().unwrap_or_default()
    }

    /// Writes it down.
    pub(crate) async fn write(&self, cx: &OpCx) -> Result<(), FsError> {
        let noted = cx.note(self).await;
        noted.map_err(|error| FsError::Unnoted { item: cx.item().to_string(), why: error.to_string() })
    }

    /// The directory that what is at a path has to be in; none if that is not known. `holder` says which one is there.
    ///
    /// It was moved into one directory after the other, and is carried along where those move: an earlier one may have been at
    /// this path. So the one that is there counts, if it is one of them.
    pub(crate) fn within(&self, path: &RootPath, holder: impl FnOnce() -> Option<Number>) -> Option<Number> {
        if self.moved.is_empty() {
            return self.known_by;
        }
        let holder = holder();
        let is_there = |within: &Number| holder.is_some_and(|holder| within.is(holder));
        let all = self.moved.iter().rev().filter_map(|one| one.into).chain(self.known_by);
        all.into_iter().find(is_there).or_else(|| {
            let moved = self.moved.iter().rev().find(|one| one.to == *path);
            moved.map_or(self.known_by, |one| one.into)
        })
    }

    /// The number of a directory; none if it is not known.
    pub(crate) fn directory(&self) -> Option<Number> {
        let made = match self.made {
            Some(Made::This(number)) => Some(number),
            _ => None,
        };
        self.known_by.or_else(|| self.moved.last().map(|last| last.number)).or(made)
    }

    /// What is left to note when what is at a path has come to its end.
    pub(crate) fn settled(
        &self,
        kind: FileType,
        path: &RootPath,
        holder: impl FnOnce() -> Option<Number>,
    ) -> Self {
        let known_by = if kind == FileType::Directory { self.known_by } else { self.within(path, holder) };
        let wrote = self.wrote.last().cloned().into_iter().collect();
        Self { known_by, mounts: self.mounts, wrote, original: self.original.clone(), ..Self::default() }
    }

    fn is_short(&self) -> bool {
        *self == Self { known_by: self.known_by, ..Self::default() }
    }
}

/// All of it, as it is written while something is done, and of what is not settled with its number alone.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unsettled {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    known_by: Option<Number>,
    #[serde(default, skip_serializing_if = "is_none_mounted")]
    mounts: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    made: Option<Made>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    moved: Vec<Move>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    wrote: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    aside: Option<Aside>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    released: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    adopting: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields so")]
fn is_none_mounted(mounts: &usize) -> bool {
    *mounts == 0
}

impl Serialize for PathNote {
    /// Most are settled, and one of each item is kept in memory: those are a short text.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_short() {
            return self.known_by.serialize(serializer);
        }
        let Self { known_by, mounts, made, moved, wrote, aside, released, original, adopting } = self.clone();
        let unsettled =
            Unsettled { known_by, mounts, made, moved, wrote, aside, released, original, adopting };
        unsettled.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PathNote {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PathNoteVisitor)
    }
}

struct PathNoteVisitor;

impl<'de> Visitor<'de> for PathNoteVisitor {
    type Value = PathNote;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what is noted of something that has a place")
    }

    fn visit_unit<E: de::Error>(self) -> Result<PathNote, E> {
        Ok(PathNote::default())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PathNote, E> {
        Ok(PathNote { known_by: Some(text.parse().map_err(E::custom)?), ..PathNote::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PathNote, A::Error> {
        let Unsettled { known_by, mounts, made, moved, wrote, aside, released, original, adopting } =
            Unsettled::deserialize(MapAccessDeserializer::new(map))?;
        Ok(PathNote { known_by, mounts, made, moved, wrote, aside, released, original, adopting })
    }
}

/// What is noted of a command before something is done. It is forgotten when what came of the run is saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PassingNote {
    /// Its `apply` was about to be run: what `check` finds from then on is our doing.
    Applying,
    /// Its `apply` or `undo` runs, as this process.
    Running(Started),
}

/// What is noted of a process for as long as it is there. It is saved with what came of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LastingNote {
    /// The process that runs for it.
    Started(Started),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settled_note_is_a_short_text_and_all_notes_are_read_back() {
        let number: Number = "7@5.6".parse().unwrap();
        let path = |text: &str| RootPath::new(text).unwrap();
        let settled = PathNote { known_by: Some(number), ..PathNote::default() };
        assert_eq!(serde_json::to_string(&settled).unwrap(), "\"7@5.6\"");
        let moved = vec![Move { from: path("a"), to: path("b"), number, into: Some(number) }];
        for note in [
            PathNote::default(),
            PathNote { made: Some(Made::Unseen(Unseen::InPlace)), ..settled.clone() },
            PathNote { made: Some(Made::This(number)), ..PathNote::default() },
            PathNote { moved, ..settled.clone() },
            PathNote {
                aside: Some(Aside { number, from: path("a") }),
                released: Some(number),
                ..settled.clone()
            },
            PathNote { wrote: vec!["digest".to_owned()], ..settled.clone() },
            PathNote { mounts: 1, ..settled.clone() },
            PathNote { original: Some("name".to_owned()), adopting: true, ..settled.clone() },
            settled,
        ] {
            let value = serde_json::to_value(&note).unwrap();
            assert_eq!(PathNote::deserialize(&value).unwrap(), note, "{value}");
        }
        let other = serde_json::to_value(&PassingNote::Applying).unwrap();
        assert!(PathNote::deserialize(&other).is_err());
    }
}
