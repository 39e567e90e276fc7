//! Where recordings are, and how one is read.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

/// Returns the folder of the recordings that are committed with this crate.
pub fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings")
}

/// Reads a recording by its name, such as `3.4.model`; `None` if the folder has none of this name.
///
/// It is `NAME.jsonl`, or compressed `NAME.jsonl.gz`: one JSON object a line.
pub fn read(folder: &Path, name: &str) -> io::Result<Option<String>> {
    let mut text = String::new();
    if let Some(mut file) = open(&folder.join(format!("{name}.jsonl")))? {
        file.read_to_string(&mut text)?;
    } else if let Some(file) = open(&folder.join(format!("{name}.jsonl.gz")))? {
        GzDecoder::new(file).read_to_string(&mut text)?;
    } else {
        return Ok(None);
    }
    Ok(Some(text))
}

/// Opens a file; `None` if there is none.
fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
    }
}
