//! What a binary needs to run: the headers of an ELF file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::DistError;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_VERNEED: u64 = 0x6fff_fffe;
const DT_VERNEEDNUM: u64 = 0x6fff_ffff;
/// No name or table in a header is longer; a file that says otherwise is broken.
const LONGEST: u64 = 1 << 20;

/// A program for a 64-bit Linux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elf {
    /// What runs it.
    pub machine: Machine,
    /// The loader that it asks for; a static program asks for none.
    pub interpreter: Option<String>,
    /// The shared libraries that it asks for by name.
    pub needed: Vec<String>,
    /// The least version of the GNU C library that has all it needs.
    pub glibc: Option<(u32, u32)>,
}

/// A processor, with its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// `x86_64`
    Amd64,
    /// `aarch64`
    Arm64,
    /// `riscv64gc`
    Riscv64,
}

impl Machine {
    /// The processor of a target such as `x86_64-unknown-linux-gnu`.
    pub fn of_target(target: &str) -> Option<Self> {
        match target.split('-').next()? {
            "x86_64" => Some(Self::Amd64),
            "aarch64" => Some(Self::Arm64),
            "riscv64gc" => Some(Self::Riscv64),
            _ => None,
        }
    }

    /// What Debian and OCI call it, which is the same for these.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
            Self::Riscv64 => "riscv64",
        }
    }
}

impl Elf {
    /// Reads the headers of a program.
    pub fn read(path: &Path) -> Result<Self, DistError> {
        let file = File::open(path).map_err(DistError::file("read", path))?;
        let reader = Reader { file, path: path.to_path_buf() };
        reader.elf()
    }

    /// Returns whether the program needs nothing but the kernel.
    pub fn is_static(&self) -> bool {
        self.interpreter.is_none() && self.needed.is_empty()
    }
}

/// A part of the file that is loaded to an address.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

struct Reader {
    file: File,
    path: PathBuf,
}

impl Reader {
    fn elf(&self) -> Result<Elf, DistError> {
        let header = self.bytes(0, 64)?;
        if header.get(..4) != Some(b"\x7fELF") {
            return Err(self.wrong("it is no ELF program"));
        }
        if header.get(4..6) != Some(&[2, 1]) {
            return Err(self.wrong("only 64-bit little-endian programs are packed"));
        }
        let machine = match u16_at(&header, 18) {
            62 => Machine::Amd64,
            183 => Machine::Arm64,
            243 => Machine::Riscv64,
            other => {
                return Err(self.wrong(&format!("no architecture of Debian is known for machine {other}")));
            }
        };
        let segments = self.segments(&header)?;
        let mut elf = Elf { machine, interpreter: None, needed: Vec::new(), glibc: None };
        for segment in &segments {
            match segment.kind {
                PT_INTERP => elf.interpreter = Some(text(&self.bytes(segment.offset, segment.size)?)),
                PT_DYNAMIC => self.dynamic(segment, &segments, &mut elf)?,
                _ => {}
            }
        }
        Ok(elf)
    }

    fn segments(&self, header: &[u8]) -> Result<Vec<Segment>, DistError> {
        let (offset, size, count) = (u64_at(header, 32), u16_at(header, 54), u16_at(header, 56));
        let table = self.bytes(offset, u64::from(size) * u64::from(count))?;
        let segment = |entry: &[u8]| Segment {
            kind: u32_at(entry, 0),
            offset: u64_at(entry, 8),
            address: u64_at(entry, 16),
            size: u64_at(entry, 32),
        };
        Ok(table.chunks_exact(usize::from(size.max(1))).map(segment).collect())
    }

    /// Reads the names of the libraries, and the versions that are asked of them.
    fn dynamic(&self, dynamic: &Segment, segments: &[Segment], elf: &mut Elf) -> Result<(), DistError> {
        let table = self.bytes(dynamic.offset, dynamic.size)?;
        let entries: Vec<(u64, u64)> =
            table.chunks_exact(16).map(|entry| (u64_at(entry, 0), u64_at(entry, 8))).collect();
        let value = |tag| entries.iter().find(|entry| entry.0 == tag).map(|entry| entry.1);
        let offset_of = |address: u64| {
            let holds = |segment: &&Segment| {
                segment.kind == PT_LOAD
                    && (segment.address..segment.address + segment.size).contains(&address)
            };
            segments.iter().find(holds).map(|segment| address - segment.address + segment.offset)
        };
        let Some(strings) = value(DT_STRTAB).and_then(offset_of) else { return Ok(()) };
        for (_, name) in entries.iter().filter(|entry| entry.0 == DT_NEEDED) {
            elf.needed.push(self.string(strings + name)?);
        }
        let (Some(mut at), Some(count)) = (value(DT_VERNEED).and_then(offset_of), value(DT_VERNEEDNUM))
        else {
            return Ok(());
        };
        for _ in 0..count.min(LONGEST) {
            let library = self.bytes(at, 16)?;
            let mut version_at = at + u64::from(u32_at(&library, 8));
            for _ in 0..u16_at(&library, 2) {
                let version = self.bytes(version_at, 16)?;
                let name = self.string(strings + u64::from(u32_at(&version, 8)))?;
                elf.glibc = elf.glibc.max(glibc_version(&name));
                version_at += u64::from(u32_at(&version, 12));
            }
            at += u64::from(u32_at(&library, 12));
        }
        Ok(())
    }

    fn string(&self, offset: u64) -> Result<String, DistError> {
        // Names of libraries and versions are short; the table may end right behind the last.
        let mut bytes = [0; 256];
        let read = self.file.read_at(&mut bytes, offset).map_err(DistError::file("read", &self.path))?;
        Ok(text(bytes.get(..read).unwrap_or_default()))
    }

    fn bytes(&self, offset: u64, size: u64) -> Result<Vec<u8>, DistError> {
        let size = usize::try_from(size.min(LONGEST)).unwrap_or_default();
        let mut bytes = vec![0; size];
        match self.file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.wrong("it is cut off, or no ELF program"))
            }
            Err(error) => Err(DistError::file("read", &self.path)(error)),
        }
    }

    fn wrong(&self, why: &str) -> DistError {
        DistError::Binary { path: self.path.clone(), why: why.to_owned() }
    }
}

/// Reads `GLIBC_2.34`.
fn glibc_version(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The text before the first zero.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_with_libraries_says_which_and_of_which_version() {
        let own = Elf::read(&std::env::current_exe().unwrap()).unwrap();
        assert!(!own.is_static());
        assert!(own.interpreter.unwrap().contains("ld-linux"));
        assert!(own.needed.iter().any(|name| name == "libc.so.6"), "{:?}", own.needed);
        assert!(own.glibc.is_some_and(|version| version >= (2, 17)), "{:?}", own.glibc);
    }

    #[test]
    fn what_is_no_program_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in
            [("text", &b"#!/bin/sh\nexit 0\n"[..]), ("short", b"\x7fELF\x02\x01"), ("empty", b"")]
        {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let error = Elf::read(&path).unwrap_err().to_string();
            assert!(error.starts_with(&format!("can't pack {}: ", path.display())), "{error}");
        }
        let mut foreign = vec![0; 64];
        foreign[..6].copy_from_slice(b"\x7fELF\x02\x01");
        foreign[18] = 8;
        let path = folder.path().join("mips");
        std::fs::write(&path, foreign).unwrap();
        assert!(Elf::read(&path).unwrap_err().to_string().contains("machine 8"));
    }

    #[test]
    fn versions_of_the_c_library_are_compared_as_numbers() {
        assert_eq!(glibc_version("GLIBC_2.34"), Some((2, 34)));
        assert_eq!(glibc_version("GLIBC_2.2.5"), Some((2, 2)));
        assert_eq!(glibc_version("GCC_3.0"), None);
        assert_eq!(glibc_version("GLIBC_PRIVATE"), None);
    }
}
