//! What the optimised binary has to be: small, and without the names of its functions.

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The most bytes that it may have.
const LARGEST: u64 = 40_000_000;
/// How the number of a section's kind is written that names functions.
const SYMBOLS: u32 = 2;

/// Refuses a binary that is larger than people are promised, or not stripped.
pub fn judge(binary: &Path) -> Result<()> {
    let bytes = std::fs::read(binary).with_context(|| format!("can't read {}", binary.display()))?;
    let fits = fits(bytes.len() as u64).and_then(|()| {
        ensure!(!has_symbols(&bytes).context("it is no program of 64 bits")?, "it is not stripped");
        Ok(())
    });
    fits.with_context(|| format!("{} is not what people are promised", binary.display()))
}

fn fits(size: u64) -> Result<()> {
    ensure!(size <= LARGEST, "it has {size} bytes, and may have {LARGEST}");
    Ok(())
}

/// Returns whether an ELF file names its functions; none if it is no such file.
fn has_symbols(bytes: &[u8]) -> Option<bool> {
    let two = |at: usize| Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let four = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?));
    // 64 bits, the lowest byte first.
    bytes.starts_with(b"\x7fELF\x02\x01").then_some(())?;
    let sections = usize::try_from(u64::from_le_bytes(bytes.get(40..48)?.try_into().ok()?)).ok()?;
    let (size, count) = (two(58)?, two(60)?);
    let mut kinds = (0..count).map(|number| four(sections.checked_add(number * size + 4)?));
    kinds.try_fold(false, |has, kind| Some(has || kind? == SYMBOLS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn a_binary_of_more_than_forty_million_bytes_is_refused() {
        assert!(fits(40_000_000).is_ok());
        let message = fits(40_000_001).unwrap_err().to_string();
        assert_eq!(message, "it has 40000001 bytes, and may have 40000000");
    }

    #[test]
    fn a_binary_that_names_its_functions_is_noticed() {
        // Tests are not stripped, and what Debian installs is.
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(has_symbols(&own), Some(true));
        assert_eq!(has_symbols(&std::fs::read("/bin/sh").unwrap()), Some(false));
        assert_eq!(has_symbols(&own[..100]), None);
        assert_eq!(has_symbols(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn what_is_built_with_release_or_packed_is_stripped() {
        let text = std::fs::read_to_string(workspace::root().join("Cargo.toml")).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        let profiles = &manifest["profile"];
        assert_eq!(profiles["release"]["strip"].as_str(), Some("symbols"));
        assert_eq!(profiles["dist"]["inherits"].as_str(), Some("release"));
        assert!(profiles["dist"].get("strip").is_none());
    }
}
