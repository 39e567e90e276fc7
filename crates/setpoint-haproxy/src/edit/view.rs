//! What stands in a section, read chunk by chunk.

use std::sync::Arc;

use super::error::EditError;
use super::key::{ChildKey, SectionKey};
use crate::model::{
    ChunkModel, Context, Fold, Object, ObjectKind, OwnLine, TextOnly, chunk_model, modelled_kind, name_hash,
};
use crate::text::Section;

/// What stands in a section.
pub(super) struct View<'s> {
    pub(super) section: &'s Section,
    pub(super) kind: ObjectKind,
    /// The chunks, each with the number of its first line.
    chunks: Vec<(u32, Arc<ChunkModel>)>,
}

/// A child and the line it stands on.
pub(super) struct Found {
    pub(super) object: Object,
    pub(super) line: u32,
}

impl<'s> View<'s> {
    pub(super) fn new(section: &'s Section, key: &SectionKey, cx: &Context) -> Result<Self, EditError> {
        let text_only = |why: TextOnly| EditError::TextOnly { section: key.clone(), why };
        let kind = modelled_kind(section).map_err(text_only)?;
        let fingerprint = cx.fingerprint();
        let mut header = section.header().map(|line| line.number());
        let mut base = 0;
        let mut chunks = Vec::new();
        for chunk in section.chunks() {
            let model = chunk_model(chunk, kind, header.take(), cx, fingerprint);
            if let Some(why) = model.text_only {
                return Err(text_only(why));
            }
            chunks.push((base, model));
            base += chunk.line_count();
        }
        Ok(Self { section, kind, chunks })
    }

    /// How many children there are of a kind.
    pub(super) fn count(&self, kind: ObjectKind) -> u32 {
        self.chunks.iter().map(|(_, chunk)| chunk.count(kind)).sum()
    }

    /// All children of a kind, in the order of the text.
    pub(super) fn all(&self, kind: ObjectKind) -> impl Iterator<Item = (u32, &Object)> {
        let chunks = self.chunks.iter().filter(move |(_, chunk)| chunk.count(kind) > 0);
        chunks.flat_map(move |(base, chunk)| {
            let children = chunk.children.iter().filter(move |child| child.kind == kind);
            children.map(move |child| (base + child.line, child))
        })
    }

    /// A child by its name or its place.
    pub(super) fn child(&self, kind: ObjectKind, key: &ChildKey) -> Option<Found> {
        let (line, object) = match key {
            ChildKey::Name(name) => self.named(kind, name).next()?,
            ChildKey::Index(index) => self.nth(kind, *index)?,
        };
        Some(Found { object: object.clone(), line })
    }

    /// The children of a kind and name, in the order of the text.
    pub(super) fn named<'v>(
        &'v self,
        kind: ObjectKind,
        name: &'v str,
    ) -> impl Iterator<Item = (u32, &'v Object)> {
        let hash = name_hash(kind, name);
        let chunks = self.chunks.iter().filter(move |(_, chunk)| chunk.may_have(hash));
        chunks.flat_map(move |(base, chunk)| {
            let of_name = move |child: &&Object| child.kind == kind && child.name() == Some(name);
            chunk.children.iter().filter(of_name).map(move |child| (base + child.line, child))
        })
    }

    /// The line of the first ACL of a name: several lines make up one, and HAProxy knows it from the first.
    pub(super) fn first_acl(&self, name: &str) -> Option<u32> {
        self.named(ObjectKind::Acl, name).next().map(|(line, _)| line)
    }

    /// The n-th child of a kind.
    pub(super) fn nth(&self, kind: ObjectKind, index: u32) -> Option<(u32, &Object)> {
        let mut left = index;
        for (base, chunk) in &self.chunks {
            let count = chunk.count(kind);
            if left < count {
                let mut children = chunk.children.iter().filter(|child| child.kind == kind);
                let child = children.nth(usize::try_from(left).ok()?)?;
                return Some((base + child.line, child));
            }
            left -= count;
        }
        None
    }

    /// The line of the first child of which the kind fits.
    pub(super) fn first_of(&self, fits: impl Fn(ObjectKind) -> bool) -> Option<u32> {
        let mut children = self
            .chunks
            .iter()
            .flat_map(|(base, chunk)| chunk.children.iter().map(move |child| (base, child)));
        children.find(|(_, child)| fits(child.kind)).map(|(base, child)| base + child.line)
    }

    /// The lines that say something of the section itself, the header first.
    pub(super) fn own(&self) -> impl Iterator<Item = (u32, &OwnLine)> {
        self.chunks.iter().flat_map(|(base, chunk)| chunk.own.iter().map(move |own| (base + own.line, own)))
    }

    /// What the section says of itself, and the lines of it that the model has no place for.
    pub(super) fn settings(&self) -> (Object, Vec<u32>) {
        let mut fold = Fold::new(self.kind);
        let mut beside = Vec::new();
        for (line, own) in self.own() {
            if !fold.own(OwnLine { line, ..own.clone() }) {
                beside.push(line);
            }
        }
        (fold.object, beside)
    }
}
