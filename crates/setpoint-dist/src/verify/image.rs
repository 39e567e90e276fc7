//! The image: every hash is followed, the layers are unpacked, and its entry point is run as its user.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::program::{Installed, Way};
use super::{Sources, ensure, wrong};
use crate::checksums::{self, Hashing, Sum};
use crate::error::DistError;
use crate::image::ENTRY_POINT;

/// Follows the index to the layers, unpacks them, and runs the program in them.
pub(super) fn check(folder: &Path, sources: &Sources<'_>) -> Result<String, DistError> {
    let layout = read(&folder.join("oci-layout"))?;
    ensure(layout["imageLayoutVersion"] == "1.0.0", || format!("oci-layout says {layout}"))?;
    let index = read(&folder.join("index.json"))?;
    let manifests = list(&index["manifests"]);
    let [manifest] = manifests else {
        return Err(wrong(format!("index.json lists {} manifests", manifests.len())));
    };
    let architecture = &manifest["platform"]["architecture"];
    let manifest = read(&blob(folder, manifest)?)?;
    let config = read(&blob(folder, &manifest["config"])?)?;
    ensure(config["architecture"] == *architecture, || "index and config name two architectures".to_owned())?;

    let (layers, contents) = (list(&manifest["layers"]), list(&config["rootfs"]["diff_ids"]));
    ensure(layers.len() == contents.len(), || "manifest and config have not as many layers".to_owned())?;
    let scratch = tempfile::tempdir().map_err(DistError::file("make", Path::new("a temporary folder")))?;
    for (layer, content) in layers.iter().zip(contents) {
        let path = blob(folder, layer)?;
        let open = || File::open(&path).map(GzDecoder::new).map_err(DistError::file("read", &path));
        let mut hash = Hashing::new(io::sink());
        io::copy(&mut open()?, &mut hash).map_err(DistError::file("unpack", &path))?;
        let sum = hash.finish().1.sha256;
        ensure(content == &format!("sha256:{sum}"), || {
            format!("a layer holds {sum}, and config says {content}")
        })?;
        let mut archive = tar::Archive::new(open()?);
        archive.set_preserve_permissions(true);
        archive.unpack(scratch.path()).map_err(DistError::file("unpack", &path))?;
    }

    let settings = &config["config"];
    ensure(list(&settings["Entrypoint"]) == [ENTRY_POINT], || {
        format!("the entry point is {}", settings["Entrypoint"])
    })?;
    let user = settings["User"].as_str().unwrap_or_default();
    let user: u32 = user.split(':').next().and_then(|user| user.parse().ok()).unwrap_or_default();
    ensure(user != 0, || "the image runs as root".to_owned())?;
    let installed = Installed { root: scratch.path(), way: Way::Inside(user) };
    let version = installed.try_out(sources)?;
    installed.try_names()?;
    Ok(format!("{} layers unpacked; {version} ran in them as user {user}", layers.len()))
}

/// Compares the archive with the folder.
pub(super) fn check_archive(folder: &Path, archive: &Path) -> Result<String, DistError> {
    let failed = || DistError::file("read", archive);
    let mut found = BTreeMap::new();
    let mut entries = tar::Archive::new(File::open(archive).map_err(failed())?);
    for entry in entries.entries().map_err(failed())? {
        let mut entry = entry.map_err(failed())?;
        if entry.header().entry_type().is_file() {
            let path = entry.path().map_err(failed())?.to_string_lossy().into_owned();
            let mut hash = Hashing::new(io::sink());
            io::copy(&mut entry, &mut hash).map_err(failed())?;
            found.insert(path, hash.finish().1.sha256);
        }
    }
    let mut expected = BTreeMap::new();
    for path in checksums::files(folder)? {
        expected.insert(path.clone(), checksums::of_file(&folder.join(path))?);
    }
    for (path, sum) in &expected {
        ensure(found.get(path) == Some(sum), || format!("the archive does not hold {path} of the folder"))?;
    }
    let extra = found.keys().find(|path| !expected.contains_key(*path));
    ensure(extra.is_none(), || format!("the archive holds {extra:?}, which the folder does not"))?;
    Ok(format!("{} files, as in the folder", found.len()))
}

/// The path of what a descriptor names, whose size and hash are as it says.
pub(super) fn blob(folder: &Path, descriptor: &Value) -> Result<std::path::PathBuf, DistError> {
    let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
    let digest = digest.ok_or_else(|| wrong(format!("{descriptor} names no blob")))?;
    let path = folder.join("blobs/sha256").join(digest);
    let mut file = File::open(&path).map_err(DistError::file("read", &path))?;
    let mut hash = Hashing::new(io::sink());
    io::copy(&mut file, &mut hash).map_err(DistError::file("read", &path))?;
    let Sum { sha256, size } = hash.finish().1;
    ensure(sha256 == digest && descriptor["size"] == size, || {
        format!("blob {digest} has the hash {sha256} and {size} bytes, and its descriptor says {descriptor}")
    })?;
    Ok(path)
}

pub(super) fn read(path: &Path) -> Result<Value, DistError> {
    let bytes = fs::read(path).map_err(DistError::file("read", path))?;
    serde_json::from_slice(&bytes).map_err(|error| DistError::input(path.to_string_lossy(), &error))
}

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
