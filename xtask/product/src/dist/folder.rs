//! The sizes of what is in the folder of a release.

use std::fs;
use std::io;
use std::path::Path;

/// The bytes of a file, or of all files below a folder.
pub(crate) fn size(path: &Path) -> io::Result<u64> {
    if !path.is_dir() {
        return Ok(path.metadata()?.len());
    }
    let mut total = 0;
    for entry in fs::read_dir(path)? {
        total += size(&entry?.path())?;
    }
    Ok(total)
}

/// Writes a size the way a person reads it: `812 B`, `1.5 kB`, `26.0 MB`.
pub(crate) fn human_size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", tenths(1_000)),
        _ => format!("{} MB", tenths(1_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_for_people() {
        assert_eq!(human_size(812), "812 B");
        assert_eq!(human_size(1_590), "1.5 kB");
        assert_eq!(human_size(26_049_000), "26.0 MB");
    }
}
