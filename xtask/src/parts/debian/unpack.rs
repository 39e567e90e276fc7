//! Packages become a folder whose programs use its own libraries and none of the system's.

use std::fmt::Write;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::command;
use super::super::diagnosis::Problem;
use super::super::table::DebianRecipe;
use super::apt::{Apt, Package};
use super::needed;

/// The folder of an entry that packages are unpacked into.
pub(super) const ROOT: &str = "root";

/// Fills `folder`, which will be moved to `place`: `root/` with the packages, `bin/` with the programs.
pub(crate) fn make(
    apt: &Apt,
    recipe: &DebianRecipe,
    packages: &[Package],
    folder: &Path,
    place: &Path,
) -> Result<(), Problem> {
    let root = folder.join(ROOT);
    unpack(apt, packages, &root)?;
    let tools = folder.join("tools");
    let patchelf = ["patchelf".to_owned()];
    let wanted: Vec<_> =
        apt.resolve(&patchelf)?.into_iter().filter(|package| needed(package, &patchelf)).collect();
    unpack(apt, &wanted, &tools)?;

    let loader = loader_in(&root)?;
    let libraries = library_folders(&root);
    forget_paths(&libraries, &tools)?;
    fs::create_dir_all(folder.join("bin")).map_err(|error| Problem::from_io("can't make", folder, &error))?;
    for program in &recipe.programs {
        let program = program_in(&root, program)?;
        let mut set = through_loader(&tools, Path::new("usr/bin/patchelf"))?;
        set.arg("--set-interpreter").arg(moved(&loader, folder, place));
        set.arg("--force-rpath")
            .arg("--set-rpath")
            .arg(joined(&libraries, |path| moved(path, folder, place)));
        set.arg(&program);
        command::run_quietly("pointing a program to its libraries", &mut set)?;
        link(&program, recipe, folder, place)
            .map_err(|error| Problem::from_io("can't link", &program, &error))?;
    }
    if let Some((program, arguments)) = recipe.configure.split_first() {
        let mut configure = through_loader(&root, Path::new(program))?;
        configure.args(arguments);
        for (name, value) in &recipe.environment {
            configure.env(name, root.join(value.replace("{triplet}", &triplet())));
        }
        command::run_quietly("configuring the packages", &mut configure)?;
    }
    fs::remove_dir_all(&tools).map_err(|error| Problem::from_io("can't remove", &tools, &error))
}

fn unpack(apt: &Apt, packages: &[Package], root: &Path) -> Result<(), Problem> {
    let archives = root.with_extension("archives");
    for folder in [root, &archives] {
        fs::create_dir_all(folder).map_err(|error| Problem::from_io("can't make", folder, &error))?;
    }
    apt.download(packages, &archives)?;
    let entries =
        fs::read_dir(&archives).map_err(|error| Problem::from_io("can't read", &archives, &error))?;
    for archive in entries.filter_map(Result::ok).map(|entry| entry.path()) {
        let doing = format!("unpacking {}", archive.file_name().unwrap_or_default().to_string_lossy());
        command::run_quietly(&doing, Command::new("dpkg-deb").arg("-x").arg(&archive).arg(root))?;
    }
    fs::remove_dir_all(&archives).map_err(|error| Problem::from_io("can't remove", &archives, &error))
}

/// Takes the library path from libraries that have one: it names folders of an installed system, and keeps the
/// program's own path from being used for what the library needs.
fn forget_paths(folders: &[PathBuf], tools: &Path) -> Result<(), Problem> {
    let patchelf = || through_loader(tools, Path::new("usr/bin/patchelf"));
    for folder in folders {
        for library in
            fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path())
        {
            let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !name.contains(".so") || library.is_symlink() || name.starts_with("ld-linux") {
                continue;
            }
            // What is no library, such as a linker script, has no path either.
            let path = patchelf()?.arg("--print-rpath").arg(&library).output();
            if path.is_ok_and(|output| output.status.success() && !output.stdout.trim_ascii().is_empty()) {
                command::run_quietly(
                    "freeing a library from the system's paths",
                    patchelf()?.arg("--remove-rpath").arg(&library),
                )?;
            }
        }
    }
    Ok(())
}

/// The folder name of the architecture's libraries.
fn triplet() -> String {
    format!("{}-linux-gnu", std::env::consts::ARCH)
}

/// The dynamic loader inside unpacked packages.
fn loader_in(root: &Path) -> Result<PathBuf, Problem> {
    let folders = ["usr/lib", "lib"].map(|lib| root.join(lib).join(triplet()));
    folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .filter_map(Result::ok)
        .find(|entry| entry.file_name().to_string_lossy().starts_with("ld-linux"))
        .map(|entry| entry.path())
        .ok_or_else(|| Problem::unavailable("the packages hold no dynamic loader for this architecture"))
}

/// The folders that hold shared libraries: the architecture's, and those right inside it.
fn library_folders(root: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for library in ["usr/lib", "lib"].map(|lib| root.join(lib).join(triplet())) {
        let mut inner: Vec<_> = fs::read_dir(&library)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| path.is_dir() && !path.is_symlink() && holds_libraries(path))
            .collect();
        inner.sort();
        if library.is_dir() {
            folders.push(library);
        }
        folders.extend(inner);
    }
    folders
}

fn holds_libraries(folder: &Path) -> bool {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .any(|entry| entry.file_name().to_string_lossy().contains(".so"))
}

/// Where a program is inside unpacked packages, with or without a merged `/usr`.
fn program_in(root: &Path, program: &str) -> Result<PathBuf, Problem> {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let places =
        [program.to_owned(), format!("usr/{program}"), format!("usr/bin/{name}"), format!("usr/sbin/{name}")];
    places.iter().map(|place| root.join(place)).find(|path| path.is_file()).ok_or_else(|| {
        Problem::unavailable(format!("the packages hold no `{program}`; correct its path in parts.toml"))
    })
}

/// A command that runs a program of unpacked packages before it has been pointed to its libraries.
fn through_loader(root: &Path, program: &Path) -> Result<Command, Problem> {
    let program = program_in(root, &program.to_string_lossy())?;
    let mut command = Command::new(loader_in(root)?);
    command.arg("--library-path").arg(joined(&library_folders(root), Path::to_path_buf)).arg(program);
    Ok(command)
}

/// Puts a program into `bin/`: as a link, or as a script where it needs environment variables.
fn link(program: &Path, recipe: &DebianRecipe, folder: &Path, place: &Path) -> io::Result<()> {
    let name = program.file_name().unwrap_or_default();
    let at = folder.join("bin").join(name);
    if recipe.environment.is_empty() {
        let inside = program.strip_prefix(folder).unwrap_or(program);
        return symlink(Path::new("..").join(inside), at);
    }
    let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let mut script = "#!/bin/sh\n".to_owned();
    for (variable, value) in &recipe.environment {
        let value = place.join(ROOT).join(value.replace("{triplet}", &triplet()));
        let _ = writeln!(script, "export {variable}={}", quoted(&value));
    }
    let _ = writeln!(script, "exec {} \"$@\"", quoted(&moved(program, folder, place)));
    fs::write(&at, script)?;
    fs::set_permissions(&at, fs::Permissions::from_mode(0o755))
}

fn moved(path: &Path, from: &Path, to: &Path) -> PathBuf {
    path.strip_prefix(from).map_or_else(|_| path.to_path_buf(), |inside| to.join(inside))
}

fn joined(paths: &[PathBuf], change: impl Fn(&Path) -> PathBuf) -> String {
    paths.iter().map(|path| change(path).display().to_string()).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn recipe(environment: &[(&str, &str)]) -> DebianRecipe {
        DebianRecipe {
            packages: vec!["tool".into()],
            version: None,
            programs: vec!["bin/tool".into()],
            environment: environment
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            scratch: Vec::new(),
            configure: Vec::new(),
        }
    }

    fn write(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_program_is_found_with_and_without_a_merged_usr() {
        let folder = tempfile::tempdir().unwrap();
        for (there, asked) in
            [("bin/old", "bin/old"), ("usr/bin/new", "bin/new"), ("usr/sbin/moved", "bin/moved")]
        {
            write(&folder.path().join(there), "");
            assert_eq!(program_in(folder.path(), asked).unwrap(), folder.path().join(there));
        }
        let problem = program_in(folder.path(), "bin/absent").unwrap_err();
        assert!(problem.why.contains("`bin/absent`"), "{}", problem.why);
    }

    #[test]
    fn libraries_are_searched_in_the_architectures_folders_and_right_inside_them() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path.replace('T', &triplet()));
        for file in
            ["usr/lib/T/libc.so.6", "lib/T/ld-linux.so.2", "usr/lib/T/inner/libx.so", "usr/lib/T/data/readme"]
        {
            write(&at(file), "");
        }
        assert_eq!(library_folders(root.path()), ["usr/lib/T", "usr/lib/T/inner", "lib/T"].map(at));
        assert_eq!(loader_in(root.path()).unwrap(), at("lib/T/ld-linux.so.2"));
        assert!(loader_in(&at("usr")).is_err());
    }

    #[test]
    fn a_program_that_needs_variables_is_started_with_them() {
        let folder = tempfile::tempdir().unwrap();
        // The quote is meant: the cache may be in any folder.
        let (making, place) = (folder.path().join("making"), folder.path().join("it's here"));
        let program = making.join("root/usr/bin/tool");
        write(&program, "#!/bin/sh\necho \"$HOME_OF_TOOL $1\"\n");
        fs::create_dir(making.join("bin")).unwrap();
        link(&program, &recipe(&[("HOME_OF_TOOL", "usr/lib/tool")]), &making, &place).unwrap();
        fs::rename(&making, &place).unwrap();
        let output = Command::new(place.join("bin/tool")).arg("works").output().unwrap();
        let expected = format!("{} works\n", place.join("root/usr/lib/tool").display());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }

    #[test]
    fn a_program_that_needs_none_is_a_link_that_can_be_moved() {
        let folder = tempfile::tempdir().unwrap();
        let (making, place) = (folder.path().join("making"), folder.path().join("place"));
        let program = making.join("root/usr/bin/tool");
        write(&program, "#!/bin/sh\necho works\n");
        fs::create_dir(making.join("bin")).unwrap();
        link(&program, &recipe(&[]), &making, &place).unwrap();
        fs::rename(&making, &place).unwrap();
        let output = Command::new(place.join("bin/tool")).output().unwrap();
        assert_eq!(output.stdout, b"works\n");
    }
}
