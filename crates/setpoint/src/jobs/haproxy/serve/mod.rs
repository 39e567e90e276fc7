//! `setpoint haproxy serve`: the Dataplane API of a HAProxy on this machine.

mod original;
mod settings;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use setpoint_dataplane_api::{Address, Api, Dialect, Listener, Storage, Users};
use setpoint_haproxy::model::{Context, Version};
use setpoint_haproxy::text::Document;
use setpoint_instance::cli::Socket;
use setpoint_instance::instance::{Instance, Settings as InstanceSettings};
use setpoint_instance::process::{
    CommandLine, Identity, Launch, configuration_files, master_of, running_with,
};
use setpoint_instance::reload::{Method, ReloadError, processes};
use tokio::runtime::Handle;
use tokio::sync::Notify;

pub(crate) use self::settings::ServeArgs;
pub(super) use self::settings::Settings;
use super::error::Error;
use crate::error::CliError;
use crate::report::Report;
use crate::service::running::Running;
use crate::service::{Signals, allow_many_files, log_to_stderr, runtime, threads};

/// The socket in the folder of an instance through which its owner reaches the API.
pub(super) const OWNER_SOCKET: &str = "api.sock";
/// How long HAProxy may take to start.
const START_WITHIN: Duration = Duration::from_mins(1);
/// How long another HAProxy on the same configuration may take to end.
const ANOTHER_WITHIN: Duration = Duration::from_secs(3);

pub(crate) fn run(args: &ServeArgs, report: Report) -> Result<u8, CliError> {
    log_to_stderr(report, None, &["audit"]);
    let settings = args.resolve(report)?;
    // One thread changes and reloads, others serve connections: who reads waits for nobody.
    let threads = threads()?;
    runtime()?.block_on(serve(&settings, report, threads.handle()))
}

async fn serve(given: &Settings, report: Report, threads: &Handle) -> Result<u8, CliError> {
    let version = given.dialect()?;
    let dialect = Dialect::new(version).map_err(Error::from)?;
    let addresses = given.addresses()?;
    let instance = instance_settings(given, version)?;
    let first = instance.files.first().cloned().unwrap_or_default();
    // All that can be wrong is known before HAProxy is started.
    let [maps, certificates, general] = given.folders(first.parent().unwrap_or(Path::new("/")))?;
    let users = users(given, &instance, report)?;
    let mut listeners = Vec::new();
    for address in addresses {
        warn_of_strangers(&address, report);
        // A socket is watched by the runtime that it is made on.
        let _threads = threads.enter();
        listeners.push(Listener::bind(address).await.map_err(Error::from)?);
    }
    let (instance, found) = adopt(given, instance, report).await?;
    let instance = Instance::open(instance).map_err(Error::from)?;
    can_ask(&instance)?;
    start_if_needed(&instance, found, report).await?;
    for file in instance.in_place() {
        report.warn(&format!(
            "{} is a mount of its own: it is written in place, from a journal",
            file.display()
        ));
    }
    for listener in &listeners {
        report.info(&format!(
            "the Dataplane API {version} of {} is served on {}",
            first.display(),
            listener.url()
        ));
    }
    match owners(&instance, threads).await {
        Ok(listener) => listeners.push(listener),
        Err(error) => report.warn(&format!("`setpoint haproxy sync --local` can't use this: {error}")),
    }
    // HAProxy says by itself how many it needs.
    let _ = allow_many_files();
    let storage = Storage::new(maps, certificates, general);
    storage.remove_drafts();
    let api = Api::new(instance.clone(), dialect, users, storage, given.options());
    let api = Arc::new(api.with_changes_on(Handle::current()));
    let mut signals = Signals::new()?;
    let mut running = Running::start("haproxy serve", given.observe, report, || 0)?;
    running.passed(&format!("serving {}", first.display()));
    let (stop, ended) = (Arc::new(Notify::new()), Notify::new());
    let stopped = Arc::clone(&stop).notified_owned();
    let served = threads.spawn(setpoint_dataplane_api::serve(listeners, api, stopped));
    tokio::join!(
        async {
            signals.next().await;
            running.stopping();
            stop.notify_one();
            // It ends by itself, or has panicked.
            let _ = served.await;
            ended.notify_one();
        },
        // What is under way is completed.
        instance.run_until(ended.notified()),
    );
    // What waits for a reload does not wait for the next start.
    instance.finish().await;
    Ok(0)
}

/// Listens where `--local` looks for who has an instance in hand.
async fn owners(instance: &Instance, threads: &Handle) -> Result<Listener, Error> {
    let _threads = threads.enter();
    let path = instance.settings().folder.join(OWNER_SOCKET);
    Ok(Listener::bind(Address::Owner(path)).await?)
}

/// Refuses a HAProxy that nobody could ask whether it has reloaded.
pub(super) fn can_ask(instance: &Instance) -> Result<(), Error> {
    let settings = instance.settings();
    if settings.by_process && instance.worker().socket().path() == settings.master_socket {
        let why = "HAProxy's master has no socket, and its configuration no `stats socket` with `level admin`: nobody could tell whether a reload succeeded";
        let name = if settings.reload == Method::Signal { "reload-signal" } else { "reload-command" };
        return Err(Error::Setting { name, why: why.to_owned() });
    }
    Ok(())
}

/// What the instance is told about itself.
pub(super) fn instance_settings(given: &Settings, version: Version) -> Result<InstanceSettings, Error> {
    let program = given.haproxy.clone().unwrap_or_else(|| PathBuf::from("/usr/sbin/haproxy"));
    let haproxy = version_of(&program)?;
    if given.reload_command.is_some() && given.reload_signal {
        let why = "HAProxy is reloaded by a command already: leave one of them out".to_owned();
        return Err(Error::Setting { name: "reload-signal", why });
    }
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let files = files_in(&given.config.iter().map(absolute).collect::<Vec<_>>())?;
    let first = files.first().cloned().unwrap_or_default();
    let default = InstanceSettings::new(program, first, haproxy);
    let settings = InstanceSettings {
        files,
        reload_delay: given.reload_delay()?,
        drain: given.drain()?,
        context: Context::new(version).with_haproxy(haproxy),
        master_socket: given.master_socket.as_ref().map_or(default.master_socket, absolute),
        reload: match &given.reload_command {
            Some(command) => Method::Command(command.split_ascii_whitespace().map(Into::into).collect()),
            None if given.reload_signal => Method::Signal,
            None => default.reload,
        },
        open_transactions: given.open_transactions.unwrap_or(default.open_transactions),
        backups: given.backups.unwrap_or(default.backups),
        backups_folder: given.backups_dir.as_ref().map_or(default.backups_folder, absolute),
        ..default
    };
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.folder);
    made.map_err(|source| Error::Make { path: settings.folder.clone(), source })?;
    Ok(settings)
}

/// The files of a configuration: those in a folder are what HAProxy reads of it.
fn files_in(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        let found = configuration_files(path)
            .map_err(|source| Error::Configuration { path: path.clone(), source })?;
        if found.is_empty() {
            let why =
                format!("HAProxy reads nothing of the folder {}: its files end with .cfg", path.display());
            return Err(Error::Setting { name: "config", why });
        }
        files.extend(found);
    }
    Ok(files)
}

/// Passwords that go over a network in plain are everybody's.
fn warn_of_strangers(address: &Address, report: Report) {
    if let Address::Tcp(address) = address
        && !address.ip().is_loopback()
    {
        report.warn(&format!(
            "passwords can be read on the way to {address}: serve it with --tls-listen and --tls-certificate"
        ));
    }
}

/// Finds out which version a program of HAProxy is.
pub(super) fn version_of(program: &Path) -> Result<Version, Error> {
    let output = std::process::Command::new(program)
        .arg("-v")
        .output()
        .map_err(|source| Error::Program { program: program.to_owned(), source })?;
    let failed = |why: String| Error::Version { program: program.to_owned(), why };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let word = text.split_ascii_whitespace().skip_while(|word| *word != "version").nth(1);
    let word = word.ok_or_else(|| failed(format!("it printed {text:?}")))?;
    word.parse().map_err(|error: setpoint_haproxy::model::UnknownVersion| failed(error.to_string()))
}

/// What is known of a HAProxy before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It runs.
    Running,
    /// It does not, and somebody else sees to it.
    Elsewhere,
    /// It does not, and is to be started here.
    Missing,
}

/// Looks for the HAProxy that runs. What is known of it then is part of the settings.
pub(super) async fn adopt(
    given: &Settings,
    mut settings: InstanceSettings,
    report: Report,
) -> Result<(InstanceSettings, Found), Error> {
    let (master, until) = (Socket::new(&settings.master_socket), Instant::now() + ANOTHER_WITHIN);
    let answered = loop {
        match processes(&master).await {
            // A master that is just reloading drops its connections.
            Err(error)
                if error.is_passing()
                    && settings.master_socket.exists()
                    && !running_with(&settings.files).is_empty()
                    && Instant::now() < until =>
            {
                tokio::time::sleep(ANOTHER_WITHIN / 30).await;
            }
            answered => break answered,
        }
    };
    // Whoever reloads it in another way may have no use for the socket.
    let is_asked_otherwise = given.reload_signal || given.reload_command.is_some();
    let may_lack_socket = is_asked_otherwise && given.master_socket.is_none();
    let process = may_lack_socket.then(|| master_of(&settings.files)).flatten();
    let found = match (answered, process) {
        (Ok(found), _) => {
            if found.are_ours {
                use_process(&mut settings, found.master.pid, report)?;
            } else {
                use_contained(&settings, found.master.pid, report)?;
            }
            Found::Running
        }
        (Err(_), Some(process)) => {
            use_process(&mut settings, process.pid(), report)?;
            settings.by_process = true;
            Found::Running
        }
        (Err(error @ ReloadError::NoMaster { .. }), None) if given.master_socket.is_some() => {
            return Err(Error::Master(error));
        }
        (Err(_), None) if given.master_socket.is_some() => {
            report.warn(&format!(
                "no HAProxy answers on {}: changes are written, and take effect when it does",
                settings.master_socket.display()
            ));
            Found::Elsewhere
        }
        (Err(_), None) => {
            nobody_runs(&settings.files, until).await?;
            if given.reload_command.is_some() {
                // What reloads HAProxy starts it, too.
                report.warn(&format!(
                    "no HAProxy runs with {}: changes are written, and take effect when it does",
                    names_of(&settings.files)
                ));
                settings.by_process = true;
                Found::Elsewhere
            } else {
                Found::Missing
            }
        }
    };
    Ok((settings, found))
}

/// Makes sure that no HAProxy runs with these files: a second one beside it would take a part of its connections. A check, or a worker
/// whose master was killed, is gone in a moment.
async fn nobody_runs(files: &[PathBuf], until: Instant) -> Result<(), Error> {
    while let Some(pid) = running_with(files).first().map(|other| other.pid()) {
        if Instant::now() >= until {
            return Err(Error::Runs { pid });
        }
        tokio::time::sleep(ANOTHER_WITHIN / 10).await;
    }
    Ok(())
}

fn names_of(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Takes over from a HAProxy that runs how it was started.
fn use_process(settings: &mut InstanceSettings, master: u32, report: Report) -> Result<(), Error> {
    report.info(&format!("HAProxy runs as process {master} and is used as it is"));
    if let Some(line) = Identity::of(master).and_then(Identity::command_line) {
        settings.files = files_of(&line, std::mem::take(&mut settings.files), report)?;
        settings.working_directory = line.working_directory;
        settings.environment = Some(line.environment);
    }
    Ok(())
}

/// Uses a HAProxy in a container: what has its process id here is something else, which neither says how HAProxy was started nor
/// gets a signal.
fn use_contained(settings: &InstanceSettings, master: u32, report: Report) -> Result<(), Error> {
    if settings.reload == Method::Signal {
        return Err(Error::Setting {
            name: "reload-signal",
            why: ReloadError::Elsewhere(master).to_string(),
        });
    }
    report.info(&format!(
        "HAProxy runs in a container, as process {master} there, and is used as it is; it is taken to run in {}, with the \
         environment of this program",
        settings.working_directory.display()
    ));
    Ok(())
}

/// The files that a HAProxy was started with, which have to be those that were named, and may be more.
fn files_of(line: &CommandLine, given: Vec<PathBuf>, report: Report) -> Result<Vec<PathBuf>, Error> {
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let path = line.configuration.first().cloned().unwrap_or_default();
    let held = line.files().map_err(|source| Error::Configuration { path, source })?;
    let is_same = |a: &[PathBuf], b: &[PathBuf]| a.iter().map(real).eq(b.iter().map(real));
    if held.is_empty() || is_same(&held, &given) {
        return Ok(given);
    }
    let first = given.first().map(real);
    let is_read = |file: &PathBuf| held.iter().any(|held| real(held) == real(file));
    if held.first().map(real) != first || !given.iter().all(is_read) {
        let why = format!("HAProxy runs with {}, and not with {}", names_of(&held), names_of(&given));
        return Err(Error::Setting { name: "config", why });
    }
    report.info(&format!("HAProxy runs with {}: all of them are served", names_of(&held)));
    Ok(held)
}

/// Asks HAProxy about the configuration, and starts it unless it runs.
pub(super) async fn start_if_needed(instance: &Instance, found: Found, report: Report) -> Result<(), Error> {
    let settings = instance.settings();
    if let Err(messages) = instance.verify().await {
        let refused = Error::Refused { files: names_of(&settings.files), alerts: alerts(&messages) };
        if found == Found::Missing {
            return Err(refused);
        }
        report.warn(&format!("{refused}\nno change can be made until that is mended in the file, or by a push of the whole text"));
    }
    if found != Found::Missing {
        return Ok(());
    }
    let launch = Launch {
        program: settings.program.clone(),
        configuration: settings.files.clone(),
        working_directory: settings.working_directory.clone(),
        environment: Vec::new(),
        master_socket: settings.master_socket.clone(),
        log: settings.folder.join("haproxy.log"),
        within: START_WITHIN,
    };
    let launched = launch.start().await?;
    report.info(&format!(
        "HAProxy is started as process {}; it goes on when this ends",
        launched.identity().pid()
    ));
    Ok(())
}

/// What HAProxy has against a configuration, a line for each error: `file:line: what`, where it names a line.
fn alerts(messages: &str) -> String {
    const SHOWN: usize = 20;
    let alerts = messages.lines().filter_map(|line| {
        let (_, text) = line.strip_prefix("[ALERT]")?.split_once(" : ")?;
        let text = text.strip_prefix("config : ").unwrap_or(text);
        let placed = text.strip_prefix("parsing [").and_then(|text| text.split_once("] : "));
        Some(placed.map_or_else(|| text.to_owned(), |(place, text)| format!("{place}: {text}")))
    });
    let alerts: Vec<String> = alerts.take(SHOWN).map(|line| format!("  {line}")).collect();
    if alerts.is_empty() { format!("  {}", messages.trim()) } else { alerts.join("\n") }
}

/// Who may use the API: the users that are named, or one whose password is made here.
fn users(given: &Settings, settings: &InstanceSettings, report: Report) -> Result<Users, CliError> {
    let list = given.userlist.as_deref();
    if let Some(file) = &given.users {
        return Ok(Users::of(&super::read(file, report)?, list).map_err(Error::from)?);
    }
    if !given.user.is_empty() {
        let users = given.user.iter().map(|user| (user.name.as_str(), user.password.as_str(), user.insecure));
        return Ok(Users::named(users).map_err(Error::from)?);
    }
    if list.is_some() {
        let read = |file: &PathBuf| super::read(file, report);
        let texts = settings.files.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let sections = texts.iter().flat_map(|text| text.sections().iter().cloned()).collect();
        return Ok(Users::of(&Document::from_sections(sections), list).map_err(Error::from)?);
    }
    let path = settings.folder.join("password");
    let password = match fs::read_to_string(&path) {
        Ok(password) if !password.trim().is_empty() => password.trim().to_owned(),
        _ => {
            let password = new_password().map_err(|source| Error::Make { path: path.clone(), source })?;
            let written = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&path);
            let written = written.and_then(|mut file| writeln!(file, "{password}"));
            written.map_err(|source| Error::Make { path: path.clone(), source })?;
            password
        }
    };
    report.info(&format!("user admin may use the API; the password is in {}", path.display()));
    Ok(Users::named([("admin", password.as_str(), true)]).map_err(Error::from)?)
}

/// 32 letters and digits that nobody can guess: the system makes them, and not a generator whose other numbers are shown.
fn new_password() -> std::io::Result<String> {
    use rustix::rand::{GetRandomFlags, getrandom};
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut password = String::new();
    while password.len() < 32 {
        let mut bytes = [0_u8; 64];
        let count = getrandom(&mut bytes[..], GetRandomFlags::empty())?;
        // Of 64 numbers two are none of a letter: each letter is as likely as another.
        let letters = bytes.iter().take(count).filter_map(|byte| LETTERS.get(usize::from(byte & 63)));
        password.extend(letters.take(32 - password.len()).map(|letter| char::from(*letter)));
    }
    Ok(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_made_of_32_letters_and_digits_and_is_another_each_time() {
        let passwords: Vec<String> = (0..50).map(|_| new_password().unwrap()).collect();
        for password in &passwords {
            assert!(
                password.len() == 32 && password.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "{password}"
            );
        }
        let different: std::collections::BTreeSet<_> = passwords.iter().collect();
        assert_eq!(different.len(), passwords.len());
        let letters: std::collections::BTreeSet<_> =
            passwords.iter().flat_map(|password| password.bytes()).collect();
        assert_eq!(letters.len(), 62, "1,600 letters lack one of 62 once in three thousand million runs");
    }

    #[test]
    fn what_haproxy_has_against_a_configuration_is_shown_by_file_and_line() {
        let messages = "[NOTICE]   (7) : haproxy version is 3.4.7\n\
            [ALERT]    (7) : config : parsing [/etc/h.cfg:3] : unknown keyword 'x' in 'global' section\n\
            [ALERT]    (7) : config : Error(s) found in configuration file : /etc/h.cfg\n";
        assert_eq!(
            alerts(messages),
            "  /etc/h.cfg:3: unknown keyword 'x' in 'global' section\n  Error(s) found in configuration file : /etc/h.cfg"
        );
        assert_eq!(alerts("it was too late\n"), "  it was too late");
    }
}
