//! The units of systemd: what they run is there and understands its arguments, and the manual that they name is there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::program::Installed;
use super::{Checker, ensure};
use crate::error::DistError;
use crate::image::ENTRY_POINT;
use crate::program;

/// Where the package has its units.
const FOLDER: &str = "usr/lib/systemd/system";
/// Units of systemd itself that ours refer to.
const TARGETS: [&str; 8] = [
    "basic.target",
    "local-fs.target",
    "multi-user.target",
    "network-online.target",
    "network.target",
    "shutdown.target",
    "sysinit.target",
    "system.slice",
];

/// systemd's own checker.
const SYSTEMD: &str = "/usr/bin/systemd-analyze";

/// Looks at all units below a root, and returns how many there are, and who has looked at them beside us.
pub(super) fn check(installed: &Installed<'_>, checker: Checker) -> Result<String, DistError> {
    let folder = installed.root.join(FOLDER);
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(DistError::file("read", &folder))? {
        let path = entry.map_err(DistError::file("read", &folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).map_err(DistError::file("read", &path))?;
        let unit = Unit::parse(&text).map_err(|why| super::wrong(format!("{name}: {why}")))?;
        check_unit(&name, &unit, installed)?;
        names.push(name);
    }
    ensure(!names.is_empty(), || "the package has no units".to_owned())?;
    let asked = match checker {
        Checker::Nobody => "",
        Checker::Systemd if ask_systemd(Path::new(SYSTEMD), &folder, &names)? => {
            ", which systemd understands"
        }
        Checker::Systemd => ", and systemd was not asked: this machine has no systemd-analyze",
    };
    Ok(format!("{} units{asked}", names.len()))
}

fn check_unit(name: &str, unit: &Unit<'_>, installed: &Installed<'_>) -> Result<(), DistError> {
    let starts = unit.values("Service", "ExecStart");
    ensure(starts.len() == 1, || format!("{name} does not say what it runs"))?;
    let words: Vec<String> = starts
        .iter()
        .flat_map(|line| line.split_whitespace())
        .map(|word| word.replace("%i", "trial"))
        .collect();
    let (program, arguments) =
        words.split_first().ok_or_else(|| super::wrong(format!("{name} runs nothing")))?;
    ensure(program == ENTRY_POINT, || format!("{name} runs {program}"))?;
    // Whatever stands before it is understood, or there is no help.
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(["--help"]).collect();
    program::run(&mut installed.command(&arguments))?;
    for page in unit.values("Unit", "Documentation").iter().flat_map(|line| line.split_whitespace()) {
        let Some((page, _)) = page.strip_prefix("man:").and_then(|page| page.split_once('(')) else {
            continue;
        };
        let path = installed.root.join(format!("usr/share/man/man1/{page}.1.gz"));
        ensure(path.exists(), || format!("{name} names the page {page}, which is not there"))?;
    }
    ensure(!unit.values("Install", "WantedBy").is_empty(), || format!("{name} can't be enabled"))
}

/// Lets systemd's own checker read the units, and returns whether this machine has it.
fn ask_systemd(checker: &Path, folder: &Path, names: &[String]) -> Result<bool, DistError> {
    if !checker.exists() {
        return Ok(false);
    }
    let scratch = tempfile::tempdir().map_err(DistError::file("make", Path::new("a temporary folder")))?;
    let units = scratch.path().join(FOLDER);
    let program = scratch.path().join(ENTRY_POINT.trim_start_matches('/'));
    for folder in [&*units, program.parent().unwrap_or(scratch.path())] {
        fs::create_dir_all(folder).map_err(DistError::file("make", folder))?;
    }
    let executable = fs::Permissions::from_mode(0o755);
    let made = fs::write(&program, "#!/bin/sh\n").and_then(|()| fs::set_permissions(&program, executable));
    made.map_err(DistError::file("write", &program))?;
    for target in TARGETS {
        let path = units.join(target);
        fs::write(&path, "[Unit]\nDescription=here for its name\n")
            .map_err(DistError::file("write", &path))?;
    }
    for name in names {
        let (from, to) = (folder.join(name), units.join(name));
        fs::copy(&from, &to).map_err(DistError::file("write", &to))?;
        let instance = name.replace("@.", "@trial.");
        let mut command = Command::new(checker);
        command
            .args(["verify", "--man=no"])
            .arg(format!("--root={}", scratch.path().display()))
            .arg(instance);
        let output = program::output(&mut command)?;
        // It exits with 0 in spite of keys that it does not know, but says so. Where it can't work at all, as in some roots
        // without mounts, it does not speak of our unit.
        let found = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure(!found.contains("setpoint-"), || format!("systemd does not like {name}: {found}"))?;
    }
    Ok(true)
}

/// A unit as it is written: sections with keys and values.
struct Unit<'a>(Vec<(&'a str, &'a str, &'a str)>);

impl<'a> Unit<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let mut section = None;
        let mut entries = Vec::new();
        for line in
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
        {
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                if !["Unit", "Service", "Install"].contains(&name) {
                    return Err(format!("a service has no section `{name}`"));
                }
                section = Some(name);
            } else {
                let (key, value) = line.split_once('=').ok_or_else(|| format!("`{line}` is no setting"))?;
                let section = section.ok_or_else(|| format!("`{line}` is in no section"))?;
                entries.push((section, key, value));
            }
        }
        Ok(Self(entries))
    }

    fn values(&self, section: &str, key: &str) -> Vec<&'a str> {
        let wanted = |entry: &&(&str, &str, &str)| entry.0 == section && entry.1 == key;
        self.0.iter().filter(wanted).map(|entry| entry.2).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checker_that_is_not_there_is_not_asked() {
        let folder = tempfile::tempdir().unwrap();
        let asked = ask_systemd(&folder.path().join("systemd-analyze"), folder.path(), &[]).unwrap();
        assert!(!asked);
    }

    #[test]
    fn a_unit_is_read_and_what_is_none_is_refused() {
        let unit = Unit::parse("# ours\n[Unit]\nAfter=a.target\n[Service]\nExecStart=/bin/a -b=c\n").unwrap();
        assert_eq!(unit.values("Service", "ExecStart"), ["/bin/a -b=c"]);
        assert_eq!(unit.values("Unit", "ExecStart"), [""; 0]);
        for (text, why) in [
            ("After=a", "`After=a` is in no section"),
            ("[Unit]\nAfter", "`After` is no setting"),
            ("[Servce]\n", "a service has no section `Servce`"),
        ] {
            assert_eq!(Unit::parse(text).map(|_| ()).unwrap_err(), why);
        }
    }
}
