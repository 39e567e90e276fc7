//! The folder that a release is put into.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};
use setpoint_dist::checksums;

/// Makes the folder, and removes an older release from it. A folder that holds anything else is left alone.
pub(crate) fn prepare(folder: &Path) -> Result<()> {
    let failed = || format!("can't prepare {}", folder.display());
    fs::create_dir_all(folder).with_context(failed)?;
    let entries =
        fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).with_context(failed)?;
    for entry in &entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !(name == checksums::NAME || name.starts_with("setpoint-") || name.starts_with("setpoint_")) {
            bail!(
                "{} holds {name}, which is no part of a release; name another folder with `--out`",
                folder.display()
            );
        }
    }
    for entry in entries {
        let path = entry.path();
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.with_context(|| format!("can't remove {}", path.display()))?;
    }
    Ok(())
}

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
    fn an_older_release_makes_room_and_anything_else_is_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("new/dist");
        prepare(&folder).unwrap();
        fs::create_dir(folder.join("setpoint-1.oci")).unwrap();
        fs::write(folder.join("setpoint-1.oci/index.json"), "{}").unwrap();
        fs::write(folder.join("setpoint_1_amd64.deb"), "").unwrap();
        fs::write(folder.join(checksums::NAME), "").unwrap();
        prepare(&folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);

        fs::write(folder.join("setpoint-2"), "").unwrap();
        fs::write(folder.join("thesis.tex"), "precious").unwrap();
        let error = prepare(&folder).unwrap_err().to_string();
        assert!(error.contains("thesis.tex") && error.contains("--out"), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }

    #[test]
    fn sizes_are_written_for_people() {
        assert_eq!(human_size(812), "812 B");
        assert_eq!(human_size(1_590), "1.5 kB");
        assert_eq!(human_size(26_049_000), "26.0 MB");
    }
}
