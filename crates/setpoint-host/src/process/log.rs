//! What processes and commands have written.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The part of a log that its last lines are looked for in.
const LAST_PART: u64 = 4000;
/// How many lines are shown.
const LINES: usize = 5;

/// The last lines that were written to a log since it had a length.
pub(crate) fn last_lines_since(log: &Path, length: u64) -> Vec<String> {
    let mut written = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        let last = file.metadata()?.len().saturating_sub(LAST_PART);
        file.seek(SeekFrom::Start(length.max(last)))?;
        file.take(LAST_PART).read_to_end(&mut written)
    });
    if read.is_ok() { last_lines(&written) } else { Vec::new() }
}

/// The last lines of an output that are not empty.
pub(crate) fn last_lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    last.iter().map(|&line| line.to_owned()).collect()
}
