//! Which process it is: a process id and when it started, because ids come back.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};

/// One process, and no later one with its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pid: Pid,
    /// In ticks since the system started.
    start: u64,
}

/// When a process started: what tells it from a later one with its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// In ticks since the system started: of a process that this program sees.
    At(u64),
    /// In seconds since 1970, to a second or two: of a process that only HAProxy sees, in a container, say.
    About(u64),
}

/// How a running HAProxy was started: what a check has to repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The program.
    pub program: PathBuf,
    /// What follows `-f`, in order: files and folders, as they were written.
    pub configuration: Vec<PathBuf>,
    /// Where it was started, or where `-C` sent it.
    pub working_directory: PathBuf,
    /// The environment it was started with.
    pub environment: Vec<(OsString, OsString)>,
}

impl Identity {
    /// Looks at a process; none if there is none, or if it has ended and nobody has collected its end.
    pub fn of(pid: u32) -> Option<Self> {
        let fields = status(pid)?;
        let threads: u64 = fields.get(17)?.parse().ok()?;
        // The state is that of the first thread: while others run, the process does, with its sockets.
        if matches!(fields.first()?.as_str(), "Z" | "X" | "x") && threads <= 1 {
            return None;
        }
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        Some(Self { pid, start: fields.get(19)?.parse().ok()? })
    }

    /// The process that started it, or that took it over; none if it has ended.
    pub fn parent(self) -> Option<u32> {
        status(self.pid())?.get(1)?.parse().ok()
    }

    /// Its process id.
    pub fn pid(self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// When it started, in ticks since the system did.
    pub fn start(self) -> u64 {
        self.start
    }

    /// When it started, by the clock of the system; none if the system does not tell. It is right to some hundredths of a second.
    pub fn started_at(self) -> Option<SystemTime> {
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
        let ticks = u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
        let start = Duration::try_from_secs_f64(precise(self.start)? / f64::from(ticks)).ok()?;
        let age = Duration::try_from_secs_f64(uptime).ok()?.saturating_sub(start);
        SystemTime::now().checked_sub(age)
    }

    /// Returns whether this very process still runs.
    pub fn is_running(self) -> bool {
        Self::of(self.pid()) == Some(self)
    }

    /// Returns whether it sees processes by the ids that this program sees them by; also if that is not known, of another user's
    /// process. Those in a container have ids of their own.
    pub(crate) fn shares_process_ids(self) -> bool {
        let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/pid")).ok();
        let theirs = namespace(&self.pid().to_string());
        theirs.is_none() || theirs == namespace("self")
    }

    /// Sends it a signal, if it still runs.
    pub fn signal(self, signal: Signal) -> std::io::Result<()> {
        if !self.is_running() {
            return Err(std::io::Error::new(std::io::ErrorKind::NotFound, "the process has ended"));
        }
        kill_process(self.pid, signal).map_err(Into::into)
    }

    /// How it was started, as the system tells; none if it has ended or is another user's. That it is a HAProxy is for who calls to
    /// know.
    pub fn command_line(self) -> Option<CommandLine> {
        let at = |name: &str| format!("/proc/{}/{name}", self.pid());
        let program = fs::read_link(at("exe")).ok()?;
        let directory = fs::read_link(at("cwd")).ok()?;
        let arguments = split(&fs::read(at("cmdline")).ok()?);
        let environment = split(&fs::read(at("environ")).ok()?);
        let environment = environment.into_iter().filter_map(|variable| {
            let bytes = variable.into_vec();
            let place = bytes.iter().position(|&byte| byte == b'=')?;
            let (name, value) = bytes.split_at_checked(place)?;
            Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.get(1..)?.to_vec())))
        });
        let (configuration, change) = configuration_in(arguments.get(1..)?);
        let working_directory = change.map_or(directory.clone(), |change| directory.join(change));
        let environment = environment.collect();
        self.is_running().then_some(CommandLine { program, configuration, working_directory, environment })
    }
}

/// What the system says of a process, without its id and its name: its state, its parent and so on.
fn status(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the last bracket may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_ascii_whitespace().map(str::to_owned).collect())
}

/// A number of ticks, which is far below what would be rounded.
fn precise(ticks: u64) -> Option<f64> {
    let (seconds, rest) = (u32::try_from(ticks / 1000).ok()?, u32::try_from(ticks % 1000).ok()?);
    Some(f64::from(seconds) * 1000.0 + f64::from(rest))
}

/// The parts of a file of `/proc` that are separated by NUL.
fn split(bytes: &[u8]) -> Vec<OsString> {
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    bytes.split(|&byte| byte == 0).map(|part| OsString::from_vec(part.to_vec())).collect()
}

/// What follows `-f`, and `--` to the end; and what follows `-C`.
fn configuration_in(arguments: &[OsString]) -> (Vec<PathBuf>, Option<PathBuf>) {
    let (mut files, mut directory) = (Vec::new(), None);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("-f") => files.extend(arguments.next().map(PathBuf::from)),
            Some("-C") => directory = arguments.next().map(PathBuf::from),
            // These take a value, which may look like an option.
            Some("-p" | "-S" | "-L" | "-n" | "-m" | "-N" | "-x" | "-cc") => {
                arguments.next();
            }
            Some("--") => files.extend(arguments.by_ref().map(PathBuf::from)),
            _ => {}
        }
    }
    (files, directory)
}

impl CommandLine {
    /// The files that are read, in order: those in a folder are what HAProxy takes of it, sorted by name.
    pub fn files(&self) -> std::io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in &self.configuration {
            files.extend(configuration_files(&self.working_directory.join(entry))?);
        }
        Ok(files)
    }
}

/// The files that HAProxy reads of what follows `-f`: the file itself, or those of a folder, sorted by name.
pub fn configuration_files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if path.is_dir() { in_folder(path) } else { Ok(vec![path.to_owned()]) }
}

/// What HAProxy reads of a folder: files whose names end with `.cfg` and don't begin with a dot.
fn in_folder(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.extension().is_some_and(|extension| extension == "cfg") && !is_hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_files_of_a_command_line_are_found_among_its_options() {
        let (files, directory) =
            configuration_in(&words("-W -S m.sock,level,admin -f a.cfg -C /etc -p -f -f b -sf 1 2 -- c d"));
        assert_eq!(files, ["a.cfg", "b", "c", "d"].map(PathBuf::from));
        assert_eq!(directory, Some("/etc".into()));
    }

    #[test]
    fn a_later_process_with_the_same_id_is_another() {
        let me = Identity::of(std::process::id()).unwrap();
        assert!(me.is_running());
        let earlier = Identity { start: me.start - 1, ..me };
        assert!(!earlier.is_running() && earlier.signal(Signal::KILL).is_err());
    }

    #[test]
    fn the_time_at_which_a_process_started_is_known() {
        let before = SystemTime::now();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let started = Identity::of(child.id()).and_then(Identity::started_at).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let slack = Duration::from_millis(100);
        assert!(started + slack > before && started < SystemTime::now() + slack, "{started:?} {before:?}");
    }

    #[test]
    fn of_a_folder_only_what_ends_with_cfg_is_read_in_the_order_of_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["20.cfg", "10.cfg", ".05.cfg", "README", "30.cfg~"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("x.cfg")).unwrap();
        let names: Vec<_> = in_folder(folder.path())
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["10.cfg", "20.cfg"]);
    }

    #[test]
    fn a_draft_beside_a_file_of_a_folder_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("10.cfg");
        fs::write(&file, "old").unwrap();
        let draft = setpoint_files::Draft::prepare(&file, b"new").unwrap();
        assert_eq!(in_folder(folder.path()).unwrap(), [file]);
        drop(draft);
    }
}
