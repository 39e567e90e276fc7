//! Tells the linker how the command is put together.
//!
//! A program that can stand anywhere in memory holds a list of all addresses that have to be set right when it starts. Packed,
//! that list has a few kilobytes instead of almost two megabytes. The C library reads packed lists from version 2.36 on: what is
//! built on a machine with an older one, or for another system, keeps the long list.

use std::process::Command;

/// The first version of glibc that reads packed lists.
const READS_PACKED: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_for_this_system = std::env::var("HOST").is_ok_and(|host| std::env::var("TARGET") == Ok(host));
    if is_for_this_system && glibc().is_some_and(|version| version >= READS_PACKED) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Returns the version of glibc on this machine; none if it has another library.
fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
