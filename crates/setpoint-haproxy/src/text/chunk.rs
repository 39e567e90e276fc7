//! A stretch of lines of a section, shared between the versions of a document.
//!
//! A short section is one chunk. A long one is several, so that an edit copies, parses and models a few lines and not all.

use std::hash::Hasher;
use std::sync::{Arc, OnceLock};

use memchr::memchr;
use rustc_hash::FxHasher;

use super::line::Lines;
use crate::model::ChunkModel;

/// A section of more bytes is divided.
const LARGEST: usize = 6 << 10;
/// How many bytes a chunk has, but for the rest of its last line.
const SIZE: usize = 3 << 10;

/// Some lines of a section.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    bytes: Box<[u8]>,
    hash: u64,
    line_count: u32,
    /// What its lines say, for the context that was asked for first.
    model: OnceLock<Arc<ChunkModel>>,
}

impl Chunk {
    pub(crate) fn new(bytes: &[u8], line_count: u32) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(bytes);
        Self { bytes: bytes.into(), hash: hasher.finish(), line_count, model: OnceLock::new() }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn line_count(&self) -> u32 {
        self.line_count
    }

    /// The lines from a place on; the first of the chunk has a number.
    pub(crate) fn lines(&self, number: u32) -> Lines<'_> {
        Lines::new(&self.bytes, &[], number)
    }

    pub(crate) fn model(&self) -> &OnceLock<Arc<ChunkModel>> {
        &self.model
    }

    pub(crate) fn same_bytes(&self, other: &Self) -> bool {
        self.hash == other.hash && self.bytes == other.bytes
    }
}

/// Divides the bytes of a section, whose lines after the header begin at `body`: the first chunk, and the others.
pub(crate) fn divide(bytes: &[u8], body: usize, line_count: u32) -> (Chunk, Vec<Arc<Chunk>>) {
    if bytes.len() <= LARGEST {
        return (Chunk::new(bytes, line_count), Vec::new());
    }
    let (head, rest) = bytes.split_at(boundary(bytes, body.max(SIZE)));
    (Chunk::new(head, count_lines(head)), divide_lines(rest))
}

/// Divides lines into chunks.
pub(crate) fn divide_lines(mut rest: &[u8]) -> Vec<Arc<Chunk>> {
    let mut chunks = Vec::with_capacity(rest.len() / SIZE + 1);
    while !rest.is_empty() {
        // A rest that is not worth a chunk stays with the last one.
        let end = if rest.len() <= SIZE + SIZE / 2 { rest.len() } else { boundary(rest, SIZE) };
        let (bytes, after) = rest.split_at(end);
        chunks.push(Arc::new(Chunk::new(bytes, count_lines(bytes))));
        rest = after;
    }
    chunks
}

/// The end of the line in which a place is.
fn boundary(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from.saturating_sub(1)..).unwrap_or_default();
    memchr(b'\n', rest).map_or(bytes.len(), |feed| from.saturating_sub(1) + feed + 1)
}

fn count_lines(bytes: &[u8]) -> u32 {
    let feeds = memchr::memchr_iter(b'\n', bytes).count();
    let rest = usize::from(bytes.last().is_some_and(|&byte| byte != b'\n'));
    u32::try_from(feeds + rest).unwrap_or(u32::MAX)
}
