//! What a file holds: any bytes, cheap to clone.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use super::quoted;
use super::source::RegularFile;

/// The content of a file. One of at most 64 KiB is held in memory; a larger one is known by its digest, and read from where
/// it comes from when it is written.
///
/// As data a small one is a text where it is one, else `{"base64": "…"}`; a large one is its digest, its size and its source.
///
/// ```
/// use setpoint_host::Content;
/// assert_eq!(serde_json::to_string(&Content::from("hi"))?, "\"hi\"");
/// assert_eq!(serde_json::to_string(&Content::from(&[0xff_u8][..]))?, "{\"base64\":\"/w==\"}");
/// let large = serde_json::to_value(&Content::from(vec![0; 100_000]))?;
/// assert_eq!(large["size"], 100_000);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Content(Form);

#[derive(Clone)]
enum Form {
    Small(Arc<[u8]>),
    Large(Arc<Large>),
}

/// A content that is known by its digest.
struct Large {
    size: u64,
    sha256: [u8; 32],
    source: Source,
}

/// Where the bytes of a large content are.
enum Source {
    /// In memory: a manifest holds it, or a template gave it.
    Memory(Arc<[u8]>),
    /// In a file.
    File(PathBuf),
    /// Nowhere that anybody remembers.
    Unknown,
}

/// The most that is held in memory, and in the state.
const LARGEST_SMALL: usize = 64 << 10;
/// The largest content in bytes that is shown whole on a single line.
const SHOWN: usize = 120;
/// How much of a large content is read at a time.
const CHUNK: usize = 256 << 10;

/// The bytes of large contents that were read.
static READ: AtomicU64 = AtomicU64::new(0);

/// How many bytes of large contents this program has read so far: while it grows, whoever is busy with one does not hang.
pub fn bytes_read() -> u64 {
    READ.load(Ordering::Relaxed)
}

fn add_read(bytes: usize) {
    READ.fetch_add(bytes as u64, Ordering::Relaxed);
}

impl Content {
    /// Reads a regular file: a small one whole, of a large one only what tells it from others.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        let source = std::path::absolute(path)?;
        Self::from_reader(RegularFile::open(path)?, Source::File(source))
    }

    /// What an open file of about this size holds, of which nobody will ask for the bytes again.
    pub(crate) fn observed(mut file: impl Read, size: u64) -> io::Result<Self> {
        let Some(size) = usize::try_from(size).ok().filter(|&size| size <= LARGEST_SMALL) else {
            return Self::from_reader(file, Source::Unknown);
        };
        // One byte more than there should be: where it is not filled, this was all, and one read is enough.
        let mut bytes = vec![0; size + 1];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read(bytes.get_mut(filled..).unwrap_or_default()) {
                Ok(read) if read == 0 || filled + read == size => {
                    bytes.truncate(filled + read);
                    return Ok(Self(Form::Small(bytes.into())));
                }
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Self::from_reader(bytes.as_slice().chain(file), Source::Unknown)
    }

    fn from_reader(mut file: impl Read, source: Source) -> io::Result<Self> {
        let mut bytes = Vec::new();
        file.by_ref().take(LARGEST_SMALL as u64 + 1).read_to_end(&mut bytes)?;
        if bytes.len() <= LARGEST_SMALL {
            return Ok(Self(Form::Small(bytes.into())));
        }
        let mut hasher = Sha256::new();
        hasher.update(&bytes);
        let mut size = bytes.len() as u64;
        bytes.resize(CHUNK, 0);
        loop {
            let read = match file.read(&mut bytes) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            add_read(read);
            hasher.update(bytes.get(..read).unwrap_or_default());
            size += read as u64;
        }
        Ok(Self(Form::Large(Arc::new(Large { size, sha256: hasher.finalize().into(), source }))))
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        match &self.0 {
            Form::Small(bytes) => bytes.len() as u64,
            Form::Large(large) => large.size,
        }
    }

    /// Gives all bytes, in order, to `write`. Fails where they can't be read any more, or are not those that were declared.
    pub fn for_each_chunk(&self, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let large = match &self.0 {
            Form::Small(bytes) => return write(bytes),
            Form::Large(large) => large,
        };
        let path = match &large.source {
            Source::Memory(bytes) => return write(bytes),
            Source::Unknown => {
                return Err(io::Error::other("only the digest of what it held is remembered"));
            }
            Source::File(path) => path,
        };
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("can't read the source {}: {error}", path.display()))
        };
        let mut file = RegularFile::open(path).map_err(named)?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(named(error)),
            };
            let chunk = buffer.get(..read).unwrap_or_default();
            add_read(read);
            hasher.update(chunk);
            write(chunk)?;
        }
        if <[u8; 32]>::from(hasher.finalize()) != large.sha256 {
            let message = format!("the source {} has changed since it was planned", path.display());
            return Err(io::Error::other(message));
        }
        Ok(())
    }

    /// The content as text, where it is a small one that can be shown.
    pub fn text(&self) -> Option<&str> {
        let Form::Small(bytes) = &self.0 else { return None };
        let text = std::str::from_utf8(bytes).ok()?;
        let shown = |c: char| !c.is_control() || matches!(c, '\n' | '\t' | '\r');
        text.chars().all(shown).then_some(text)
    }

    /// The SHA-256 digest in hexadecimal.
    pub fn sha256(&self) -> String {
        match &self.0 {
            Form::Small(bytes) => hex(&Sha256::digest(bytes)),
            Form::Large(large) => hex(&large.sha256),
        }
    }

    /// A single line that tells this content from others.
    pub(crate) fn line(&self) -> String {
        match self.text() {
            Some(text) if text.len() <= SHOWN => quoted(text),
            Some(_) => format!("{} bytes of text, sha256 {}", self.size(), &self.sha256()[..16]),
            None => format!("{} bytes, sha256 {}", self.size(), &self.sha256()[..16]),
        }
    }
}

impl PartialEq for Content {
    /// Where large ones come from does not matter.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Form::Small(one), Form::Small(other)) => one == other,
            (Form::Large(one), Form::Large(other)) => {
                Arc::ptr_eq(one, other) || one.size == other.size && one.sha256 == other.sha256
            }
            _ => false,
        }
    }
}

impl Eq for Content {}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * i..2 * i + 2)?, 16).ok()?;
    }
    Some(bytes)
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::from(text.as_bytes())
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        Self::from(Arc::from(bytes))
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(Arc::from(bytes))
    }
}

impl From<Arc<[u8]>> for Content {
    fn from(bytes: Arc<[u8]>) -> Self {
        if bytes.len() <= LARGEST_SMALL {
            return Self(Form::Small(bytes));
        }
        let (size, sha256) = (bytes.len() as u64, Sha256::digest(&bytes).into());
        Self(Form::Large(Arc::new(Large { size, sha256, source: Source::Memory(bytes) })))
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Encoded {
    Small {
        base64: String,
    },
    Large {
        sha256: String,
        size: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<PathBuf>,
    },
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let encoded = match &self.0 {
            Form::Small(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => return serializer.serialize_str(text),
                Err(_) => Encoded::Small { base64: STANDARD.encode(bytes) },
            },
            Form::Large(large) => {
                let source = match &large.source {
                    Source::File(path) => Some(path.clone()),
                    Source::Memory(_) | Source::Unknown => None,
                };
                Encoded::Large { sha256: hex(&large.sha256), size: large.size, source }
            }
        };
        encoded.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, {\"base64\": \"…\"} or {\"sha256\": \"…\", \"size\": …}")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content::from(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content, A::Error> {
        use serde::de::Error;
        match Encoded::deserialize(MapAccessDeserializer::new(map))? {
            Encoded::Small { base64 } => STANDARD.decode(base64).map(Content::from).map_err(Error::custom),
            Encoded::Large { sha256, size, source } => {
                let sha256 = from_hex(&sha256).ok_or_else(|| Error::custom("no SHA-256 digest"))?;
                let source = source.map_or(Source::Unknown, Source::File);
                Ok(Content(Form::Large(Arc::new(Large { size, sha256, source }))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(content: &Content) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        content.for_each_chunk(|chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })?;
        Ok(bytes)
    }

    #[test]
    fn any_bytes_survive_as_data() {
        for bytes in [&b""[..], b"text\n", b"\0\xff\xfe", "\u{1}ü".as_bytes()] {
            let content = Content::from(bytes);
            let json = serde_json::to_string(&content).unwrap();
            assert_eq!(serde_json::from_str::<Content>(&json).unwrap(), content);
            assert_eq!(all(&content).unwrap(), bytes);
        }
    }

    #[test]
    fn nobody_waits_for_a_pipe_in_the_place_of_a_source() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("source");
        std::fs::write(&path, vec![0; LARGEST_SMALL + 1]).unwrap();
        let content = Content::from_file(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).unwrap();
        for error in [all(&content).map(drop), Content::from_file(&path).map(drop)] {
            let error = error.unwrap_err().to_string();
            assert!(error.contains("it is no regular file"), "{error}");
        }
    }

    #[test]
    fn two_long_texts_are_told_apart_on_a_line() {
        let (a, b) = ("x".repeat(500), "y".repeat(500));
        assert_ne!(Content::from(a.as_str()).line(), Content::from(b.as_str()).line());
    }

    #[test]
    fn a_large_content_is_known_by_its_digest_and_read_from_its_source() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large");
        for size in [LARGEST_SMALL, LARGEST_SMALL + 1, CHUNK + 1, 3 * CHUNK] {
            let bytes: Vec<u8> = (0..size).map(|i| u8::try_from(i % 251).unwrap()).collect();
            std::fs::write(&path, &bytes).unwrap();
            let content = Content::from_file(&path).unwrap();
            assert_eq!(content, Content::from(bytes.clone()));
            assert_eq!((content.size(), all(&content).unwrap()), (size as u64, bytes));
            let json = serde_json::to_string(&content).unwrap();
            let back: Content = serde_json::from_str(&json).unwrap();
            assert_eq!(back, content);
            assert_eq!(json.len() < 1000, size > LARGEST_SMALL, "{size}");
        }
    }

    #[test]
    fn a_source_that_has_changed_is_not_taken_for_what_was_declared() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("large");
        std::fs::write(&path, vec![1; CHUNK]).unwrap();
        let content = Content::from_file(&path).unwrap();
        std::fs::write(&path, vec![2; CHUNK]).unwrap();
        assert!(all(&content).unwrap_err().to_string().contains("has changed since"));
        std::fs::remove_file(&path).unwrap();
        assert!(all(&content).unwrap_err().to_string().contains("can't read the source"));
    }

    #[test]
    fn a_file_that_grows_or_shrinks_while_it_is_read_is_read_whole() {
        for size in [0, 1, 2, 3, 4, LARGEST_SMALL, LARGEST_SMALL + 1] {
            let content = Content::observed(&b"abc"[..], size as u64).unwrap();
            assert_eq!(content, Content::from("abc"), "{size}");
        }
        let large = vec![7; CHUNK + 9];
        assert_eq!(Content::observed(large.as_slice(), 3).unwrap(), Content::from(large.clone()));
    }

    #[test]
    fn what_has_no_end_is_no_source() {
        assert!(Content::from_file(Path::new("/dev/zero")).is_err());
    }
}
