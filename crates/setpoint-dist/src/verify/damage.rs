//! Takes packages and images apart, lets a test change them, and puts them together again with hashes that are right.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tar::Header;

use crate::checksums::Hashing;
use crate::deb::{write_ar, zipper};
use crate::program;
use crate::tree::Content;

/// One entry of an archive.
pub(super) struct Item {
    pub(super) path: String,
    pub(super) header: Header,
    pub(super) bytes: Vec<u8>,
}

/// All that an image is made of.
pub(super) struct Image {
    pub(super) index: Value,
    pub(super) manifest: Value,
    pub(super) config: Value,
    pub(super) layers: Vec<Vec<Item>>,
}

pub(super) fn find<'a>(items: &'a mut [Item], path: &str) -> &'a mut Item {
    items.iter_mut().find(|item| item.path == path).unwrap_or_else(|| panic!("no {path}"))
}

pub(super) fn remove(items: &mut Vec<Item>, path: &str) {
    find(items, path);
    items.retain(|item| item.path != path);
}

/// Adds an entry that is like another but for its path.
pub(super) fn add(items: &mut Vec<Item>, path: &str, like: &str) {
    let like = find(items, like);
    let (mut header, bytes) = (like.header.clone(), like.bytes.clone());
    header.set_path(path).unwrap();
    items.push(Item { path: path.to_owned(), header, bytes });
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut zipped = zipper(Vec::new(), 1);
    zipped.write_all(bytes).unwrap();
    zipped.finish().unwrap()
}

fn read_tar(bytes: &[u8]) -> Vec<Item> {
    let mut archive = tar::Archive::new(bytes);
    let item = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.unwrap();
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = path.trim_start_matches("./").trim_end_matches('/').to_owned();
        let (header, mut bytes) = (entry.header().clone(), Vec::new());
        entry.read_to_end(&mut bytes).unwrap();
        Item { path, header, bytes }
    };
    archive.entries().unwrap().map(item).collect()
}

fn write_tar(items: Vec<Item>) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for Item { mut header, bytes, .. } in items {
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        archive.append(&header, &bytes[..]).unwrap();
    }
    archive.into_inner().unwrap()
}

/// Changes the control part and the files of a package.
pub(super) fn edit_package(package: &Path, edit: impl Fn(&mut Vec<Item>, &mut Vec<Item>)) {
    let part = |option| read_tar(&program::bytes(Command::new("dpkg-deb").arg(option).arg(package)).unwrap());
    let (mut control, mut data) = (part("--ctrl-tarfile"), part("--fsys-tarfile"));
    edit(&mut control, &mut data);
    let zipped = |items| Content::Bytes(gzip(&write_tar(items)));
    let members = [
        ("debian-binary", Content::Bytes(b"2.0\n".to_vec())),
        ("control.tar.gz", zipped(control)),
        ("data.tar.gz", zipped(data)),
    ];
    write_ar(fs::File::create(package).unwrap(), &members, 0).unwrap();
}

/// Changes an image.
pub(super) fn edit_image(folder: &Path, edit: &dyn Fn(&mut Image)) {
    let blobs = folder.join("blobs/sha256");
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        fs::read(blobs.join(digest)).unwrap()
    };
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
    let index = json(&fs::read(folder.join("index.json")).unwrap());
    let manifest = json(&blob(&index["manifests"][0]));
    let config = json(&blob(&manifest["config"]));
    let layer = |descriptor: &Value| {
        let mut bytes = Vec::new();
        GzDecoder::new(&blob(descriptor)[..]).read_to_end(&mut bytes).unwrap();
        read_tar(&bytes)
    };
    let layers = manifest["layers"].as_array().unwrap().iter().map(layer).collect();
    let mut image = Image { index, manifest, config, layers };
    edit(&mut image);

    fs::remove_dir_all(&blobs).unwrap();
    fs::create_dir(&blobs).unwrap();
    let hash = |bytes: &[u8]| {
        let mut hash = Hashing::new(std::io::sink());
        hash.write_all(bytes).unwrap();
        hash.finish().1
    };
    let store = |bytes: &[u8], descriptor: &mut Value| {
        let sum = hash(bytes);
        fs::write(blobs.join(&sum.sha256), bytes).unwrap();
        descriptor["digest"] = json!(format!("sha256:{}", sum.sha256));
        descriptor["size"] = json!(sum.size);
    };
    let Image { mut index, mut manifest, mut config, layers } = image;
    for (place, items) in layers.into_iter().enumerate() {
        let bytes = write_tar(items);
        config["rootfs"]["diff_ids"][place] = json!(format!("sha256:{}", hash(&bytes).sha256));
        store(&gzip(&bytes), &mut manifest["layers"][place]);
    }
    store(config.to_string().as_bytes(), &mut manifest["config"]);
    store(manifest.to_string().as_bytes(), &mut index["manifests"][0]);
    fs::write(folder.join("index.json"), index.to_string()).unwrap();
}
