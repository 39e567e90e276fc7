//! One Debian suite, read with an apt configuration of its own: sources, lists, status and cache.
//!
//! The mirror, and how it is reached, are taken from the machine's apt configuration at run time.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::command;
use super::super::diagnosis::Problem;
use super::super::table::Suite;
use super::suites;

/// apt's own program for fetching a file the way apt would.
const HELPER: &str = "/usr/lib/apt/apt-helper";
/// Debian's table of its releases, where the machine has it.
const RELEASES: &str = "/usr/share/distro-info/debian.csv";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A package in one version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its version, epoch included.
    pub(crate) version: String,
}

/// One suite, its package lists read.
#[derive(Debug, Clone)]
pub(crate) struct Apt {
    suite: String,
    configuration: PathBuf,
}

impl Apt {
    /// Reads the package lists of a suite, from the first of the machine's mirrors that has it.
    pub(crate) fn open(lists: &Path, suite: &Suite) -> Result<Self, Problem> {
        let mut problem = None;
        for mirror in mirrors()? {
            let folder = lists.join(&suite.name);
            let apt = Self { suite: suite.name.clone(), configuration: folder.join("apt.conf") };
            write_configuration(&folder, &sources(&mirror, suite))
                .map_err(|error| Problem::from_io("can't configure apt in", &folder, &error))?;
            let doing = format!("reading the package lists of Debian {}", suite.name);
            match command::run_quietly(&doing, apt.get().arg("update")) {
                Ok(_) => return Ok(apt),
                Err(other) => problem = Some(other),
            }
        }
        Err(problem.unwrap_or_else(|| {
            Problem::unavailable("the machine's apt knows no mirror: set one up in its sources")
        }))
    }

    /// The name of the suite.
    pub(crate) fn suite(&self) -> &str {
        &self.suite
    }

    /// The versions of a package that the suite offers.
    pub(crate) fn versions(&self, package: &str) -> Result<Vec<String>, Problem> {
        let doing = format!("looking up {package} in Debian {}", self.suite);
        let text = command::run_quietly(&doing, self.command("apt-cache").args(["madison", package]))?;
        Ok(text
            .lines()
            .filter_map(|line| {
                let mut columns = line.split('|').map(str::trim);
                (columns.next() == Some(package)).then(|| columns.next()).flatten().map(str::to_owned)
            })
            .collect())
    }

    /// The packages, each given by name, by `name=version` or by a pattern, and all that they depend on.
    pub(crate) fn resolve(&self, wanted: &[String]) -> Result<Vec<Package>, Problem> {
        let doing = format!("resolving {} in Debian {}", wanted.join(", "), self.suite);
        let text = command::run_quietly(&doing, self.get().args(["install", "--print-uris"]).args(wanted))?;
        Ok(text.lines().filter_map(package_of_uri).collect())
    }

    /// Downloads packages into a folder, their hashes checked.
    pub(crate) fn download(&self, packages: &[Package], folder: &Path) -> Result<(), Problem> {
        let doing = format!("downloading {} packages of Debian {}", packages.len(), self.suite);
        let names = packages.iter().map(|package| format!("{}={}", package.name, package.version));
        command::run_quietly(&doing, self.get().arg("download").args(names).current_dir(folder)).map(|_| ())
    }

    fn get(&self) -> Command {
        self.command("apt-get")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &self.configuration).env("LC_ALL", "C");
        command
    }
}

/// The suites that the machine's mirrors have and that are not listed, in the order in which they are searched.
pub(crate) fn suites_beyond(lists: &Path, listed: &[Suite]) -> Result<Vec<Suite>, Problem> {
    let folder = lists.join(".names");
    write_configuration(&folder, "")
        .map_err(|error| Problem::from_io("can't configure apt in", &folder, &error))?;
    let series = fs::read_to_string(RELEASES).map(|table| suites::series_in(&table)).unwrap_or_default();
    let mut found: Vec<Suite> = Vec::new();
    for mirror in mirrors()? {
        let fetch = |path: &str| fetch(&folder, &format!("{mirror}/{path}"));
        let others = suites::beyond(listed, &series, fetch);
        found.extend(others.into_iter().filter(|suite| !found.contains(suite)).collect::<Vec<_>>());
    }
    Ok(found)
}

/// A file of a mirror; nothing if it can't be had.
fn fetch(folder: &Path, uri: &str) -> Option<String> {
    let target = folder.join("fetched");
    let mut command = Command::new(HELPER);
    command.arg("download-file").arg(uri).arg(&target);
    command.env("APT_CONFIG", folder.join("apt.conf")).env("LC_ALL", "C");
    command::run_quietly("asking the mirror for its suites", &mut command).ok()?;
    let text = fs::read(&target).ok()?;
    let _ = fs::remove_file(&target);
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The archives that the machine's apt takes packages from, in its own order.
fn mirrors() -> Result<Vec<String>, Problem> {
    let text = command::run_quietly(
        "asking apt for its mirror",
        Command::new("apt-get").args(["--print-uris", "update"]).env("LC_ALL", "C"),
    )?;
    Ok(mirrors_in(&text))
}

/// `'<mirror>/dists/<suite>/InRelease' …`, security archives left out: they hold no whole suite.
fn mirrors_in(text: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    text.lines()
        .filter_map(|line| {
            let (mirror, rest) = line.strip_prefix('\'')?.split_once("/dists/")?;
            let suite = rest.split('/').next()?;
            (rest.contains("/InRelease'") && !suite.ends_with("-security")).then(|| mirror.to_owned())
        })
        .filter(|mirror| seen.insert(mirror.clone()))
        .collect()
}

fn sources(mirror: &str, suite: &Suite) -> String {
    let options = if Path::new(KEYRING).exists() { format!("[signed-by={KEYRING}] ") } else { String::new() };
    let mut sources = String::new();
    for name in std::iter::once(&suite.name).chain(&suite.with) {
        let _ = writeln!(sources, "deb {options}{mirror} {name} main");
    }
    sources
}

fn write_configuration(folder: &Path, sources: &str) -> std::io::Result<()> {
    for name in ["lists/partial", "cache/archives/partial", "configuration"] {
        fs::create_dir_all(folder.join(name))?;
    }
    fs::write(folder.join("status"), "")?;
    fs::write(folder.join("sources.list"), sources)?;
    let at = |name: &str| folder.join(name).display().to_string();
    let settings = [
        ("Dir::Etc::main", "/dev/null".to_owned()),
        ("Dir::Etc::parts", at("configuration")),
        ("Dir::Etc::sourcelist", at("sources.list")),
        ("Dir::Etc::sourceparts", "/dev/null".to_owned()),
        ("Dir::Etc::preferences", "/dev/null".to_owned()),
        ("Dir::Etc::preferencesparts", "/dev/null".to_owned()),
        ("Dir::State::lists", at("lists")),
        ("Dir::State::status", at("status")),
        ("Dir::State::extended_states", at("extended_states")),
        ("Dir::Cache", at("cache")),
        ("Dir::Log", at("log")),
        // A list that could not be fetched is an error, not a warning.
        ("APT::Update::Error-Mode", "any".to_owned()),
        ("APT::Sandbox::User", "root".to_owned()),
        ("APT::Install-Recommends", "false".to_owned()),
        ("APT::Get::Assume-Yes", "true".to_owned()),
        ("Acquire::Languages", "none".to_owned()),
        ("Acquire::Retries", "2".to_owned()),
        ("Acquire::http::Timeout", "60".to_owned()),
        ("Acquire::https::Timeout", "60".to_owned()),
    ];
    let mut text = machine_settings();
    for (name, value) in settings {
        let _ = writeln!(text, "{name} \"{value}\";");
    }
    fs::write(folder.join("apt.conf"), text)
}

/// How the machine reaches its mirror: proxies, certificates, validity. Its hooks are left out.
fn machine_settings() -> String {
    let dump = Command::new("apt-config").arg("dump").env("LC_ALL", "C").output();
    let dump = dump.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    acquire_settings(&dump)
}

fn acquire_settings(dump: &str) -> String {
    dump.lines()
        .filter(|line| line.starts_with("Acquire::") && !line.starts_with("Acquire::IndexTargets"))
        .fold(String::new(), |text, line| text + line + "\n")
}

/// The package of a line `'<uri>' name_version_architecture.deb size hash`.
fn package_of_uri(line: &str) -> Option<Package> {
    let file = line.strip_prefix('\'')?.split_whitespace().nth(1)?.strip_suffix(".deb")?;
    let mut parts = file.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some(Package { name: name.to_owned(), version: version.replace("%3a", ":") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_are_read_from_what_apt_would_update() {
        let text = "'http://mirror.example/debian/dists/bookworm/InRelease' mirror 0 \n\
                    'http://mirror.example/debian/dists/bookworm-updates/InRelease' mirror 0 \n\
                    'http://mirror.example/debian-security/dists/bookworm-security/InRelease' mirror 0 \n\
                    'http://mirror.example/debian/dists/bookworm/main/binary-amd64/Packages.xz' mirror 0 \n\
                    'https://other.example/linux/dists/stable/InRelease' other 0 \n";
        assert_eq!(mirrors_in(text), ["http://mirror.example/debian", "https://other.example/linux"]);
    }

    #[test]
    fn packages_are_read_from_what_apt_would_download() {
        let line =
            "'http://mirror.example/pool/z/zlib1g_1.2.deb' zlib1g_1%3a1.2.13.dfsg-1_amd64.deb 86 SHA256:0";
        let package = Package { name: "zlib1g".into(), version: "1:1.2.13.dfsg-1".into() };
        assert_eq!(package_of_uri(line), Some(package));
        assert_eq!(package_of_uri("Reading package lists..."), None);
    }

    #[test]
    fn the_machines_way_to_its_mirror_is_kept_and_its_hooks_are_not() {
        let dump = "APT \"\";\nAcquire::http::Proxy \"http://proxy.example\";\nAcquire::IndexTargets::deb \"\";\n\
                    APT::Update::Post-Invoke:: \"rm -f x\";\nAcquire::Check-Valid-Until \"false\";\n";
        assert_eq!(
            acquire_settings(dump),
            "Acquire::http::Proxy \"http://proxy.example\";\nAcquire::Check-Valid-Until \"false\";\n"
        );
    }

    #[test]
    fn a_suite_is_read_together_with_those_its_libraries_come_from() {
        let suite = Suite { name: "experimental".into(), with: vec!["sid".into()] };
        let sources = sources("http://mirror.example/debian", &suite);
        let lines: Vec<_> = sources.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with("http://mirror.example/debian experimental main"));
        assert!(lines[1].ends_with("http://mirror.example/debian sid main"));
    }
}
