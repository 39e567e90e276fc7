//! What each HAProxy says of texts, kept so that each text is judged once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use setpoint_haproxy::model::Version;
use setpoint_haproxy::text::SectionKind;
use setpoint_testutils::part;
use sha2::{Digest, Sha256};
use xtask::workspace;

/// What HAProxy says of one text.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Verdict {
    /// Whether it would start; one that only lacks a listener would.
    pub(super) accepted: bool,
    pub(super) alerts: Vec<Alert>,
}

impl Verdict {
    /// What HAProxy refuses of the text, and not for what this machine lacks: a file, a user, the name of a host.
    pub(super) fn of_text(&self, version: Version) -> Vec<&Alert> {
        self.of_text_and_build().filter(|alert| !alert.is_of_build(version)).collect()
    }

    /// What HAProxy refuses of the text, or for a feature that it is built without.
    pub(super) fn of_text_and_build(&self) -> impl Iterator<Item = &Alert> {
        let lacks_lua = self.alerts.iter().any(|alert| alert.message.contains("error in Lua file"));
        let lacks_spoe =
            self.alerts.iter().any(|alert| alert.message.contains("stat() failed for configuration file"));
        // 3.2 and later then know no sections but the usual ones any more.
        let opens_section = |alert: &Alert| {
            let word = quoted(&alert.message, "unknown keyword '");
            word.is_some_and(|word| SectionKind::from_keyword(word.as_bytes()).is_some())
        };
        let lost = self.alerts.iter().position(opens_section).filter(|_| lacks_spoe);
        // An ACL whose patterns are in a file that is not there is not there for its conditions either.
        let of_machine = self.alerts.iter().filter(|alert| alert.is_of_machine());
        let lacking: BTreeSet<&str> =
            of_machine.filter_map(|alert| quoted(&alert.message, "parsing ACL '")).collect();
        let follows = move |at: usize, alert: &Alert| {
            let acl = quoted(&alert.message, "no such ACL : '");
            acl.is_some_and(|acl| lacking.contains(acl))
                || lacks_spoe && alert.message.contains("error encountered while processing 'spoe'")
                || lost.is_some_and(|lost| lost <= at && alert.message.contains("unknown keyword"))
                || lacks_lua && OF_LUA.iter().any(|what| alert.message.contains(what))
        };
        let alerts = self.alerts.iter().enumerate();
        alerts
            .filter(move |(at, alert)| !alert.is_of_machine() && !follows(*at, alert))
            .map(|(_, alert)| alert)
    }
}

/// Finds what stands between some text and the quote after it.
pub(super) fn quoted<'m>(message: &'m str, before: &str) -> Option<&'m str> {
    message.split_once(before)?.1.split('\'').next()
}

/// One thing that HAProxy refuses.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Alert {
    /// The first line it names, if it names one.
    line: Option<u32>,
    pub(super) message: String,
}

/// What HAProxy says where its build lacks something.
const OF_BUILD: [&str; 6] = [
    "built without",
    "not compiled in",
    "unknown keyword 'wurfl-",
    "sample expression <wurfl-",
    "unknown keyword 'deviceatlas-",
    "unknown keyword 'ssl-engine'",
];

/// What a HAProxy 2.6 says besides, which has no QUIC.
const OF_BUILD_2_6: [&str; 2] = ["unknown keyword 'quic-", "unknown keyword 'tune.quic."];

/// What HAProxy says where not the text is wrong, but the machine lacks something.
const OF_MACHINE: [&str; 29] = [
    "stat() failed for configuration file",
    "No such file or directory",
    "unable to load",
    "unable to stat",
    "unable to open",
    "unable to create",
    "cannot open",
    "Cannot open",
    "can't open",
    "failed to open",
    "error opening file",
    "cannot create the file",
    "Permission denied",
    "could not resolve address",
    "Failed to initialize server(s) addr",
    "cannot find user id",
    "cannot find group id",
    "unknown user name",
    "unknown group name",
    "' unknown user",
    "' unknown group",
    "section without master worker mode",
    "Error(s) found in configuration file",
    "Fatal errors found in configuration",
    "too many fatal errors",
    "cannot raise FD limit",
    "error in Lua file",
    "no certificate or crl found",
    "error encountered while processing 'namespace'",
];

/// What HAProxy says of a rule whose action a Lua file would have registered.
const OF_LUA: [&str; 4] = [
    "unknown service name",
    "expects 'wait-for-handshake'",
    "expects 'ot-group'",
    "expects 'accept', 'reject'",
];

impl Alert {
    #[cfg(test)]
    pub(super) fn new(line: u32, message: &str) -> Self {
        Self { line: Some(line), message: message.to_owned() }
    }

    /// Returns whether it says nothing about the text: a file or a user is missing, or it sums up the messages before it.
    fn is_of_machine(&self) -> bool {
        OF_MACHINE.iter().any(|what| self.message.contains(what)) || self.is_of_name()
    }

    /// Returns whether it is about a feature that HAProxy is built without.
    fn is_of_build(&self, version: Version) -> bool {
        let has = |what: &&str| self.message.contains(what);
        OF_BUILD.iter().any(has) || version == Version::V2_6 && OF_BUILD_2_6.iter().any(has)
    }

    /// Returns the line it is about, if it names one: where several are named, the one that was being parsed.
    pub(super) fn line(&self) -> Option<u32> {
        let place = self.message.split_once("parsing [").and_then(|(_, rest)| rest.split_once(':'));
        let number =
            place.and_then(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
        number.or(self.line)
    }

    /// Returns whether it is about the name of a host, which this machine can't resolve.
    fn is_of_name(&self) -> bool {
        let before = ["invalid address: '", "Check if '"].into_iter();
        let pattern = self.message.strip_suffix("' is not a valid IPv4 or IPv6 address.");
        let names = before.filter_map(|before| quoted(&self.message, before));
        let Some(name) = names.chain(pattern.and_then(|rest| rest.rsplit('\'').next())).next() else {
            return false;
        };
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        name.split('.').all(is_label) && name.bytes().any(|byte| byte.is_ascii_alphabetic())
    }

    /// The message without what stands in the text: words in quotes, numbers and places.
    pub(super) fn kind(&self) -> String {
        let message = match self.message.strip_prefix("parsing [") {
            Some(rest) => rest.split_once(']').map_or(rest, |(_, rest)| rest.trim_start_matches([' ', ':'])),
            None => &self.message,
        };
        let mut kind = String::new();
        for (index, part) in message.lines().next().unwrap_or_default().split('\'').enumerate() {
            kind.push_str(if index % 2 == 0 { part } else { "'…'" });
        }
        let digits = |c: char| c.is_ascii_digit();
        let kind: String = kind.split(digits).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("0");
        kind.chars().take(100).collect()
    }
}

/// What one HAProxy says of some texts, in their order.
pub(super) struct Verdicts {
    by_text: Vec<Verdict>,
}

/// A verdict as it is kept.
#[derive(Deserialize, Serialize)]
struct Kept {
    key: String,
    #[serde(flatten)]
    verdict: Verdict,
}

impl Verdicts {
    /// Asks HAProxy of all texts that it was not asked of before.
    pub(super) fn of(version: Version, texts: &[&[u8]]) -> Result<Self> {
        let folder = workspace::target_directory()?.join("conformance-check");
        std::fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
        let file = folder.join(format!("{version}.jsonl"));
        let mut known: BTreeMap<String, Verdict> = BTreeMap::new();
        for line in std::fs::read_to_string(&file).unwrap_or_default().lines() {
            // A line that was cut off is asked again.
            if let Ok(Kept { key, verdict }) = serde_json::from_str(line) {
                known.insert(key, verdict);
            }
        }
        let keys: Vec<String> = texts.iter().map(|text| key(text)).collect();
        let unknown: BTreeMap<&str, &[u8]> = keys
            .iter()
            .zip(texts)
            .filter(|(key, _)| !known.contains_key(*key))
            .map(|(key, text)| (key.as_str(), *text))
            .collect();
        for (key, verdict) in ask(version, &unknown, &file)? {
            known.insert(key, verdict);
        }
        let verdict = |key: &String| known.get(key).cloned().context("a text was not judged");
        Ok(Self { by_text: keys.iter().map(verdict).collect::<Result<_>>()? })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Verdict> {
        self.by_text.iter()
    }
}

fn key(text: &[u8]) -> String {
    let mut key = String::with_capacity(64);
    for byte in Sha256::digest(text) {
        // Writing to a string can't fail.
        let _ = std::fmt::Write::write_fmt(&mut key, format_args!("{byte:02x}"));
    }
    key
}

/// Asks HAProxy of each text in a process of its own, as many at a time as there are processors.
fn ask(version: Version, texts: &BTreeMap<&str, &[u8]>, kept: &Path) -> Result<Vec<(String, Verdict)>> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let program = part::program(&format!("haproxy-{version}"), "haproxy")
        .context("`cargo xtask parts haproxy` obtains each HAProxy")?;
    let mut file = OpenOptions::new().create(true).append(true).open(kept)?;
    let texts: Vec<(&str, &[u8])> = texts.iter().map(|(key, text)| (*key, *text)).collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            let folder = tempfile::tempdir()?;
            while let Some((key, text)) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let verdict = judge(&program, folder.path(), text)?;
                found
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .push(((*key).to_owned(), verdict));
            }
            Ok(())
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow::anyhow!("a judge panicked"))??;
        }
        anyhow::Ok(())
    })?;
    let found = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    for (key, verdict) in &found {
        let kept = Kept { key: key.clone(), verdict: verdict.clone() };
        writeln!(file, "{}", serde_json::to_string(&kept)?)?;
    }
    Ok(found)
}

fn judge(program: &Path, folder: &Path, text: &[u8]) -> Result<Verdict> {
    let file: PathBuf = folder.join("haproxy.cfg");
    std::fs::write(&file, text)?;
    let output = Command::new(program)
        .arg("-c")
        .arg("-f")
        .arg(&file)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("can't run {}", program.display()))?;
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let alerts = alerts(&printed, &folder.display().to_string());
    // Without a listener it would not start, and says so in its status. What it refuses without an alert is the machine's.
    let accepted = matches!(output.status.code(), Some(0 | 2));
    Ok(Verdict { accepted, alerts })
}

/// The alerts that HAProxy printed.
fn alerts(printed: &str, folder: &str) -> Vec<Alert> {
    let levels: BTreeSet<&str> = ["[WARNING]", "[NOTICE]", "[ALERT]"].into_iter().collect();
    let mut alerts: Vec<String> = Vec::new();
    let mut within = false;
    for line in printed.lines() {
        let level = levels.iter().find(|level| line.starts_with(**level));
        if level.is_some() {
            within = line.starts_with("[ALERT]");
        }
        match (within, level) {
            (true, Some(level)) => alerts.push(line.replacen(*level, "", 1)),
            (true, None) => {
                if let Some(alert) = alerts.last_mut() {
                    alert.push('\n');
                    alert.push_str(line);
                }
            }
            (false, _) => {}
        }
    }
    let read = |alert: String| {
        let place = alert.split("haproxy.cfg:").nth(1);
        let line = place.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
        // `(1234) : config : parsing …`
        let message = alert.split_once(") : ").map_or(alert.as_str(), |(_, message)| message);
        let message = message.strip_prefix("config : ").unwrap_or(message);
        Alert { line, message: message.trim().replace(folder, "") }
    };
    alerts.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "[NOTICE]   (7) : haproxy version is 3.4.7-1
[ALERT]    (7) : config : parsing [/tmp/x/haproxy.cfg:15] : unknown keyword 'balanec' in 'backend' section
[WARNING]  (7) : config : missing timeouts for proxy 'b'.
   | While not properly invalid, you will certainly encounter problems
[ALERT]    (7) : config : Error(s) found in configuration file : /tmp/x/haproxy.cfg
";

    #[test]
    fn alerts_are_read_with_their_lines() {
        let alerts = alerts(SAID, "/tmp/x");
        assert_eq!(alerts.len(), 2, "{alerts:?}");
        assert_eq!(alerts[0].line(), Some(15));
        assert_eq!(alerts[0].kind(), "unknown keyword '…' in '…' section");
        assert!(!alerts[0].is_of_machine());
        assert!(alerts[1].is_of_machine());
    }

    #[test]
    fn the_line_of_an_alert_is_the_one_that_was_parsed() {
        let said = "[ALERT]    (7) : config : [/tmp/x/haproxy.cfg:21] : parsing [/tmp/x/haproxy.cfg:24] : 'bind' : no port\n";
        assert_eq!(alerts(said, "/tmp/x")[0].line(), Some(24));
    }

    #[test]
    fn a_name_that_this_machine_can_not_resolve_and_what_its_build_lacks_are_not_of_the_text() {
        let of_text = |message: &str, version| {
            let alerts = vec![Alert { line: Some(1), message: message.to_owned() }];
            !Verdict { accepted: false, alerts }.of_text(version).is_empty()
        };
        let newest = Version::V3_4;
        assert!(!of_text(
            "'server b/s' : parsing agent-addr failed. Check if 'site.com' is correct address..",
            newest
        ));
        assert!(of_text(
            "'server b/s' : parsing agent-addr failed. Check if 'a:80' is correct address..",
            newest
        ));
        assert!(!of_text(
            "error detected while parsing ACL 'a' : 'host' is not a valid IPv4 or IPv6 address.",
            newest
        ));
        assert!(of_text(
            "error detected while parsing ACL 'a' : '1.2/3' is not a valid IPv4 or IPv6 address.",
            newest
        ));
        assert!(!of_text("'bind :443' in section 'frontend': unknown keyword 'quic-socket'.", Version::V2_6));
        assert!(of_text("'bind :443' in section 'frontend': unknown keyword 'quic-socket'.", newest));
    }

    #[test]
    fn what_follows_from_a_file_that_is_missing_is_not_refused_for_the_text() {
        let alert = |message: &str| Alert { line: Some(1), message: message.to_owned() };
        let verdict = Verdict {
            accepted: false,
            alerts: vec![
                alert("error detected while parsing ACL 'a' : failed to open pattern file </x>."),
                alert("error in condition: no such ACL : 'a'."),
                alert("error in condition: no such ACL : 'b'."),
            ],
        };
        let left: Vec<_> =
            verdict.of_text(Version::V3_4).iter().map(|alert| alert.message.as_str()).collect();
        assert_eq!(left, ["error in condition: no such ACL : 'b'."]);
    }
}
