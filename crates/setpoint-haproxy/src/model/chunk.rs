//! What a stretch of lines says, kept with the lines: an edit of a long section reads a few of them and not all.

use std::sync::Arc;

use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

use super::read::{LineContent, LineReader, OwnLine};
use super::{Context, Object, ObjectKind, TextOnly};
use crate::text::Chunk;

/// What the lines of a chunk say. Lines are numbered from the beginning of the chunk.
#[derive(Debug)]
pub(crate) struct ChunkModel {
    fingerprint: u64,
    pub(crate) own: Vec<OwnLine>,
    pub(crate) children: Vec<Object>,
    pub(crate) unmodelled: Vec<u32>,
    /// How many children there are of each kind.
    counts: Vec<(ObjectKind, u32)>,
    /// Hashes of the kinds and names of children, sorted.
    names: Vec<u64>,
    pub(crate) text_only: Option<TextOnly>,
}

impl ChunkModel {
    /// How many children there are of a kind.
    pub(crate) fn count(&self, kind: ObjectKind) -> u32 {
        self.counts.iter().find(|(held, _)| *held == kind).map_or(0, |(_, count)| *count)
    }

    /// Returns whether a child may be among them whose kind and name have a hash.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        self.names.binary_search(&hash).is_ok()
    }
}

/// Returns a hash of a kind and a name.
pub(crate) fn name_hash(kind: ObjectKind, name: &str) -> u64 {
    let mut hasher = FxHasher::default();
    (kind, name).hash(&mut hasher);
    hasher.finish()
}

/// Reads what the lines of a chunk say; `header` is the line of it that opens the section, if one does.
pub(crate) fn chunk_model(
    chunk: &Chunk,
    kind: ObjectKind,
    header: Option<u32>,
    cx: &Context,
    fingerprint: u64,
) -> Arc<ChunkModel> {
    let read = || Arc::new(read_chunk(chunk, kind, header, cx, fingerprint));
    let kept = chunk.model().get_or_init(read);
    if kept.fingerprint == fingerprint { Arc::clone(kept) } else { read() }
}

fn read_chunk(
    chunk: &Chunk,
    kind: ObjectKind,
    header: Option<u32>,
    cx: &Context,
    fingerprint: u64,
) -> ChunkModel {
    let mut read = ChunkModel {
        fingerprint,
        own: Vec::new(),
        children: Vec::new(),
        unmodelled: Vec::new(),
        counts: Vec::new(),
        names: Vec::new(),
        text_only: None,
    };
    let reader = LineReader::new(kind, cx);
    let mut tokens = Vec::with_capacity(16);
    for line in chunk.lines(0) {
        tokens.clear();
        if header.is_some_and(|header| line.number() < header) {
            continue;
        }
        match reader.line(&line, header == Some(line.number()), &mut tokens) {
            Ok(LineContent::Blank) => {}
            Ok(LineContent::Setting(own)) => read.own.push(own),
            Ok(LineContent::Child(child, _)) => read.children.push(child),
            Ok(LineContent::Unmodelled) if header == Some(line.number()) => {
                read.text_only = Some(TextOnly::Broken);
            }
            Ok(LineContent::Unmodelled) => read.unmodelled.push(line.number()),
            Err(reason) => read.text_only = read.text_only.or(Some(reason)),
        }
    }
    for child in &read.children {
        match read.counts.iter_mut().find(|(kind, _)| *kind == child.kind) {
            Some((_, count)) => *count += 1,
            None => read.counts.push((child.kind, 1)),
        }
    }
    let names = read.children.iter().filter_map(|child| Some(name_hash(child.kind, child.name()?)));
    read.names = names.collect();
    read.names.sort_unstable();
    read
}
