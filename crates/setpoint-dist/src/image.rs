//! The image: an OCI image layout, made of files alone.
//!
//! ```text
//! oci-layout
//! index.json ──▶ blobs/sha256/… manifest ─┬─▶ config: user, entry point, labels
//!                                         └─▶ layers: the libraries, the binary
//! ```
//!
//! A static binary is alone in the image; for a dynamic one, a layer below it holds the loader and the libraries that
//! `ldd` names, where it looks for them. There are no authorities of TLS in it: clusters bring theirs, and those of Consul
//! are named with `--consul-ca-file`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::checksums::{self, Hashing, Sum};
use crate::date;
use crate::deb::zipper;
use crate::elf::Elf;
use crate::error::DistError;
use crate::json;
use crate::pack::Packing;
use crate::program;
use crate::tree::{Content, Tree};

/// Who runs the program: nobody whom a host knows.
pub(crate) const USER: u32 = 65532;
/// What is run.
pub(crate) const ENTRY_POINT: &str = "/usr/bin/setpoint";

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// One layer that was written.
struct Layer {
    /// Of the archive as it is unpacked.
    content: Sum,
    /// Of the file.
    blob: Sum,
    about: &'static str,
}

/// Writes the layout into `folder`, which is made, and the same as one archive to `archive`.
pub(crate) fn write(
    packing: &Packing<'_>,
    elf: &Elf,
    folder: &Path,
    archive: &Path,
) -> Result<(), DistError> {
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs).map_err(DistError::file("make", &blobs))?;
    let mut layers = vec![layer(packing, &base(elf, packing.binary)?, &blobs, "users and libraries")?];
    let mut program = Tree::default();
    program.file(ENTRY_POINT.trim_start_matches('/'), 0o755, Content::Of(packing.binary.to_path_buf()));
    layers.push(layer(packing, &program, &blobs, "setpoint")?);

    let config = blob(&blobs, &config(packing, elf, &layers))?;
    let layer = |layer: &Layer| descriptor(LAYER, &layer.blob);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(CONFIG, &config),
        "layers": layers.iter().map(layer).collect::<Vec<_>>(),
        "annotations": labels(packing),
    });
    let mut named = descriptor(MANIFEST, &blob(&blobs, &manifest)?);
    if let Some(named) = named.as_object_mut() {
        named.insert("platform".into(), json!({"architecture": elf.machine.as_str(), "os": "linux"}));
        let version = packing.release.version.to_string();
        named.insert("annotations".into(), json!({"org.opencontainers.image.ref.name": version}));
    }
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]});
    for (name, value) in [("index.json", index), ("oci-layout", json!({"imageLayoutVersion": "1.0.0"}))] {
        let path = folder.join(name);
        fs::write(&path, json::line(&value)).map_err(DistError::file("write", &path))?;
    }
    write_archive(folder, archive, packing.release.epoch)
}

/// The layout as one archive, as `oci-archive:` of other tools takes it.
fn write_archive(folder: &Path, archive: &Path, epoch: u64) -> Result<(), DistError> {
    let mut tree = Tree::default();
    for path in checksums::files(folder)? {
        tree.file(&path, 0o644, Content::Of(folder.join(&path)));
    }
    let failed = || DistError::file("write", archive);
    let out = BufWriter::new(File::create(archive).map_err(failed())?);
    tree.write_tar(out, "", epoch).map_err(failed())
}

/// What every program finds: the names of two users, a place for temporary files, and the libraries it needs.
fn base(elf: &Elf, binary: &Path) -> Result<Tree, DistError> {
    let mut tree = Tree::default();
    let users =
        format!("root:x:0:0:root:/:/sbin/nologin\nsetpoint:x:{USER}:{USER}:Setpoint:/:/sbin/nologin\n");
    tree.file("etc/passwd", 0o644, Content::Bytes(users.into_bytes()));
    let groups = format!("root:x:0:\nsetpoint:x:{USER}:\n");
    tree.file("etc/group", 0o644, Content::Bytes(groups.into_bytes()));
    tree.directory("tmp", 0o1777);
    if !elf.is_static() {
        for library in libraries(binary)? {
            let path = library.to_string_lossy();
            tree.file(path.trim_start_matches('/'), 0o755, Content::Of(library.clone()));
        }
    }
    Ok(tree)
}

/// The loader and the libraries of a program, as `ldd` finds them.
fn libraries(binary: &Path) -> Result<Vec<PathBuf>, DistError> {
    let listed = program::run(Command::new("ldd").arg(binary))?;
    read_ldd(&listed).map_err(|why| DistError::Binary { path: binary.to_path_buf(), why })
}

fn read_ldd(listed: &str) -> Result<Vec<PathBuf>, String> {
    let mut paths = Vec::new();
    for line in listed.lines().map(str::trim) {
        let (name, found) = line.split_once(" => ").unwrap_or((line, line));
        if found == "not found" {
            return Err(format!("it needs {name}, which is not on this machine"));
        }
        // What the kernel provides has no path.
        if found.starts_with('/') {
            paths.push(PathBuf::from(found.split(" (").next().unwrap_or(found)));
        }
    }
    Ok(paths)
}

fn layer(packing: &Packing<'_>, tree: &Tree, blobs: &Path, about: &'static str) -> Result<Layer, DistError> {
    let unfinished = blobs.join("layer");
    let write = || -> io::Result<(Sum, Sum)> {
        let out = Hashing::new(BufWriter::new(File::create(&unfinished)?));
        let mut content = Hashing::new(zipper(out, packing.compression.level()));
        tree.write_tar(&mut content, "", packing.release.epoch)?;
        let (zipped, content) = content.finish();
        let (mut out, blob) = zipped.finish()?.finish();
        out.flush()?;
        Ok((content, blob))
    };
    let (content, blob) = write().map_err(DistError::file("write", &unfinished))?;
    let path = blobs.join(&blob.sha256);
    fs::rename(&unfinished, &path).map_err(DistError::file("write", &path))?;
    Ok(Layer { content, blob, about })
}

/// Writes a value where its hash says.
fn blob(blobs: &Path, value: &Value) -> Result<Sum, DistError> {
    let bytes = json::line(value);
    let mut hash = Hashing::new(Vec::new());
    hash.write_all(&bytes).map_err(DistError::file("write", blobs))?;
    let (bytes, sum) = hash.finish();
    let path = blobs.join(&sum.sha256);
    fs::write(&path, bytes).map_err(DistError::file("write", &path))?;
    Ok(sum)
}

fn descriptor(kind: &str, sum: &Sum) -> Value {
    json!({"mediaType": kind, "digest": format!("sha256:{}", sum.sha256), "size": sum.size})
}

fn config(packing: &Packing<'_>, elf: &Elf, layers: &[Layer]) -> Value {
    let created = date::rfc3339(packing.release.epoch);
    let history =
        |layer: &Layer| json!({"created": created, "created_by": "cargo xtask dist", "comment": layer.about});
    json!({
        "created": created,
        "architecture": elf.machine.as_str(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Entrypoint": [ENTRY_POINT],
            "Cmd": ["--help"],
            "WorkingDir": "/",
            "Labels": labels(packing),
        },
        "rootfs": {
            "type": "layers",
            "diff_ids": layers.iter().map(|layer| format!("sha256:{}", layer.content.sha256)).collect::<Vec<_>>(),
        },
        "history": layers.iter().map(history).collect::<Vec<_>>(),
    })
}

fn labels(packing: &Packing<'_>) -> Value {
    let release = packing.release;
    let mut labels = json!({
        "org.opencontainers.image.title": "setpoint",
        "org.opencontainers.image.description": "Keeps systems in the state that was declared for them.",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": release.version.to_string(),
        "org.opencontainers.image.created": date::rfc3339(release.epoch),
    });
    if let (Some(labels), Some(commit)) = (labels.as_object_mut(), &release.commit) {
        labels.insert("org.opencontainers.image.revision".into(), json!(commit));
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_where_ldd_says() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                      \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f11)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f12)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(read_ldd(listed).unwrap(), expected);
        let missing = "\tlibodd.so.1 => not found\n";
        assert_eq!(read_ldd(missing).unwrap_err(), "it needs libodd.so.1, which is not on this machine");
    }
}
