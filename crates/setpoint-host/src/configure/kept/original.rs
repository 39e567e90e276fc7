//! What was there before an item, as it is written into a copy.

use std::ffi::CString;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use setpoint_engine::OpError;

use crate::fs::{Attached, FileType, Found, Xattr};
use crate::item::{Content, RootPath};

/// What was there.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Original {
    /// A file.
    File {
        /// What it held; none of one that is too large to be kept, and was not replaced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// The digest of what it held, where that is not kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        large: Option<Content>,
        mode: u32,
        uid: u32,
        gid: u32,
        /// Where it was; none of one that an earlier version kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RootPath>,
        /// Its extended attributes, with what is in them as the content is written.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attributes: Vec<(String, String)>,
        /// The digest of what Setpoint wrote in its place, of one whose item the state has forgotten since.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wrote: Option<String>,
    },
    /// A symbolic link.
    Link {
        target: String,
        /// Its user and group; none of one that an earlier version kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<(u32, u32)>,
        /// As of a file.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attributes: Vec<(String, String)>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RootPath>,
        /// As of a file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wrote: Option<String>,
    },
    /// A directory, of which only the permissions are changed.
    Directory {
        mode: u32,
        uid: u32,
        gid: u32,
        /// Where it was; none of one that an earlier version kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<RootPath>,
    },
}

impl Original {
    /// A file with this content, at this path.
    pub(crate) fn file(path: &RootPath, bytes: &[u8], found: Found, attributes: &[Xattr]) -> Self {
        Self::with_content(path, Some(STANDARD.encode(bytes)), None, found, attributes)
    }

    /// A file that is too large to be kept, and is not replaced: what it holds is known by its digest.
    pub(crate) fn large_file(path: &RootPath, holds: Content, found: Found, attributes: &[Xattr]) -> Self {
        Self::with_content(path, None, Some(holds), found, attributes)
    }

    fn with_content(
        path: &RootPath,
        content: Option<String>,
        large: Option<Content>,
        found: Found,
        attributes: &[Xattr],
    ) -> Self {
        let Found { mode, uid, gid, .. } = found;
        let attributes = written(attributes);
        Self::File { content, large, mode, uid, gid, path: Some(path.clone()), attributes, wrote: None }
    }

    /// A link that points there, at this path.
    pub(crate) fn link(path: &RootPath, target: String, attached: &Attached) -> Self {
        let (owner, attributes) = (attached.owner, written(&attached.attributes));
        Self::Link { target, owner, attributes, path: Some(path.clone()), wrote: None }
    }

    /// The attributes of what is kept.
    pub(crate) fn attributes(kept: &[(String, String)]) -> Result<Vec<Xattr>, OpError> {
        let read = |(name, value): &(String, String)| {
            Ok((CString::new(name.as_str()).map_err(damaged)?, decoded(value)?))
        };
        kept.iter().map(read).collect()
    }

    /// Where it was; none of what an earlier version kept.
    pub(crate) fn path(&self) -> Option<&RootPath> {
        match self {
            Self::File { path, .. } | Self::Link { path, .. } | Self::Directory { path, .. } => path.as_ref(),
        }
    }

    /// The same, as it was at another path.
    pub(crate) fn moved_to(mut self, to: &RootPath) -> Self {
        let (Self::File { path, .. } | Self::Link { path, .. } | Self::Directory { path, .. }) = &mut self;
        *path = Some(to.clone());
        self
    }

    /// The digest of what Setpoint wrote in its place, where the state has forgotten the item.
    pub(crate) fn wrote(&self) -> Option<&str> {
        match self {
            Self::File { wrote, .. } | Self::Link { wrote, .. } => wrote.as_deref(),
            Self::Directory { .. } => None,
        }
    }

    /// The same, with the digest of what Setpoint wrote in its place.
    pub(super) fn with_wrote(mut self, digest: &str) -> Self {
        if let Self::File { wrote, .. } | Self::Link { wrote, .. } = &mut self {
            *wrote = Some(digest.to_owned());
        }
        self
    }

    pub(super) fn kind(&self) -> FileType {
        match self {
            Self::File { .. } => FileType::File,
            Self::Link { .. } => FileType::Symlink,
            Self::Directory { .. } => FileType::Directory,
        }
    }

    /// Returns whether what it held is not kept: it has to be before it is replaced.
    pub(crate) fn is_partial(&self) -> bool {
        matches!(self, Self::File { content: None, .. })
    }

    /// What a kept file held.
    pub(crate) fn content(content: Option<&str>, large: Option<&Content>) -> Result<Content, OpError> {
        match (content, large) {
            (Some(content), _) => decoded(content).map(Content::from),
            (None, Some(large)) => Ok(large.clone()),
            (None, None) => Err(damaged("it has no content")),
        }
    }
}

/// Attributes, as they are written.
fn written(attributes: &[Xattr]) -> Vec<(String, String)> {
    let written = |(name, value): &Xattr| (name.to_string_lossy().into_owned(), STANDARD.encode(value));
    attributes.iter().map(written).collect()
}

pub(super) fn decoded(text: &str) -> Result<Vec<u8>, OpError> {
    STANDARD.decode(text).map_err(damaged)
}

pub(super) fn damaged(why: impl std::fmt::Display) -> OpError {
    OpError::untouched(format!("what was kept is damaged: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_version_kept_is_read() {
        let file: Original =
            serde_json::from_str(r#"{"file":{"content":"b3Vycw==","mode":420,"uid":0,"gid":0}}"#).unwrap();
        let Original::File { content, large, .. } = &file else { panic!("{file:?}") };
        let content = Original::content(content.as_deref(), large.as_ref()).unwrap();
        assert_eq!((content, file.is_partial()), (Content::from("ours"), false));
        let directory: Original =
            serde_json::from_str(r#"{"directory":{"mode":448,"uid":0,"gid":0}}"#).unwrap();
        assert_eq!(directory.path(), None);
        let link: Original = serde_json::from_str(r#"{"link":{"target":"there"}}"#).unwrap();
        assert!(matches!(link, Original::Link { owner: None, .. }), "{link:?}");
    }
}
