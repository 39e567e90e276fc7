//! Files of lines that outlive a killed run.
//!
//! What is done to the host and the engine's note of it are two steps. What is needed to tell, after a kill in
//! between, whether it was done is written down here before it is.

use std::fs;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A file of notes, one on each line.
#[derive(Debug)]
pub(super) struct Notes<T> {
    path: PathBuf,
    /// Opened by the first note.
    file: Option<fs::File>,
    of: PhantomData<T>,
}

impl<T: Serialize + DeserializeOwned> Notes<T> {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: None, of: PhantomData }
    }

    pub(super) fn add(&mut self, note: &T) -> io::Result<()> {
        // On a line of its own, also after half a line of a run that was killed.
        let mut line = b"\n".to_vec();
        serde_json::to_writer(&mut line, note)?;
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                if let Some(directory) = self.path.parent() {
                    fs::create_dir_all(directory)?;
                }
                none.insert(fs::OpenOptions::new().append(true).create(true).open(&self.path)?)
            }
        };
        file.write_all(&line)
    }

    /// All notes, in order.
    pub(super) fn read(&self) -> Vec<T> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        // Half a line was never written whole: what it says was not done.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.file = None;
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
