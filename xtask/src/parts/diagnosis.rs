//! Why a part could not be had, in words that say what to do.
//!
//! The registries' clients fail in many ways; what matters to a person is which of a few causes it was. The
//! client's own last words are kept below the explanation.

use std::fmt::Write;
use std::io;
use std::path::Path;

use setpoint_testutils::manifest::PartState;

/// A part that could not be had.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    /// Whether this machine can't have the part at all, or only not now.
    pub(crate) state: PartState,
    /// What happened and what to do.
    pub(crate) why: String,
}

/// What the machinery ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    DiskFull,
    BrokenDownload,
    Refused,
    OutOfReach,
    Untrusted,
    TooOld,
    Unknown,
}

/// Words in the clients' output that give a cause away, the most telling first.
const SIGNS: &[(&str, Cause)] = &[
    ("no space left on device", Cause::DiskFull),
    ("not enough free space", Cause::DiskFull),
    ("hash sum mismatch", Cause::BrokenDownload),
    ("file has unexpected size", Cause::BrokenDownload),
    ("checksum mismatch", Cause::BrokenDownload),
    ("not a valid zip file", Cause::BrokenDownload),
    ("unexpected eof", Cause::BrokenDownload),
    ("unexpected end of file", Cause::BrokenDownload),
    ("is not a debian format archive", Cause::BrokenDownload),
    // What apt says when the other side hangs up in the middle of a file.
    ("undetermined error", Cause::BrokenDownload),
    ("remote end closed connection", Cause::BrokenDownload),
    ("connection reset by peer", Cause::BrokenDownload),
    ("bad gateway", Cause::OutOfReach),
    ("service unavailable", Cause::OutOfReach),
    ("gateway timeout", Cause::OutOfReach),
    // Of a suite that it was refused, apt goes on to say that it is not signed.
    ("403  ", Cause::Refused),
    ("no_pubkey", Cause::Untrusted),
    ("invalid signature", Cause::Untrusted),
    ("is not signed", Cause::Untrusted),
    ("requires go >=", Cause::TooOld),
    ("no such host", Cause::OutOfReach),
    ("server misbehaving", Cause::OutOfReach),
    ("connection refused", Cause::OutOfReach),
    ("connection timed out", Cause::OutOfReach),
    ("could not connect", Cause::OutOfReach),
    ("could not resolve", Cause::OutOfReach),
    ("unable to connect", Cause::OutOfReach),
    ("temporary failure resolving", Cause::OutOfReach),
    ("i/o timeout", Cause::OutOfReach),
    ("tls handshake timeout", Cause::OutOfReach),
    ("network is unreachable", Cause::OutOfReach),
    ("took longer than", Cause::OutOfReach),
    ("module lookup disabled by goproxy=off", Cause::OutOfReach),
    ("403", Cause::Refused),
    ("404", Cause::Refused),
    ("410 gone", Cause::Refused),
    ("does not have a release file", Cause::Refused),
    ("unable to locate package", Cause::Refused),
];

impl Problem {
    /// The machine lacks something that the part needs.
    pub(crate) fn unavailable(why: impl Into<String>) -> Self {
        Self { state: PartState::Unavailable, why: why.into() }
    }

    /// The part could be there but is not.
    pub(crate) fn missing(why: impl Into<String>) -> Self {
        Self { state: PartState::Missing, why: why.into() }
    }

    /// A client failed with that output while `doing` something.
    pub(crate) fn from_output(doing: &str, output: &str) -> Self {
        let cause = cause(output);
        let state = if matches!(cause, Cause::Refused | Cause::TooOld) {
            PartState::Unavailable
        } else {
            PartState::Missing
        };
        let mut why = format!("{doing}: {}", advice(cause));
        let last: Vec<_> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        for line in &last[last.len().saturating_sub(8)..] {
            let _ = write!(why, "\n  | {line}");
        }
        Self { state, why }
    }

    /// A file could not be read or written.
    pub(crate) fn from_io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let advice = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => advice(Cause::DiskFull),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "the folder can't be written; give another one with --parts-dir"
            }
            _ => "run `cargo xtask parts` again; if it stays, remove the folder",
        };
        Self::missing(format!("{doing} {}: {error}: {advice}", path.display()))
    }
}

fn cause(output: &str) -> Cause {
    let output = output.to_lowercase();
    SIGNS.iter().find(|(sign, _)| output.contains(sign)).map_or(Cause::Unknown, |(_, cause)| *cause)
}

fn advice(cause: Cause) -> &'static str {
    match cause {
        Cause::DiskFull => {
            "the disk is full; make room, or give a folder elsewhere with --parts-dir, and run again"
        }
        Cause::BrokenDownload => {
            "a download arrived broken or was cut off, and was thrown away; run again, for Go after \
             `go clean -modcache` if it stays"
        }
        Cause::Refused => {
            "the registry does not have it or refuses it; check the version in parts.toml or go.mod against what \
             the registry offers"
        }
        Cause::OutOfReach => {
            "the registry is out of reach; check the network and the client's settings (apt's sources and \
             proxies, GOPROXY), and run again"
        }
        Cause::Untrusted => {
            "the mirror's signature is not trusted; bring `debian-archive-keyring` up to date"
        }
        Cause::TooOld => "the machine's Go is too old; install the version that is named below",
        Cause::Unknown => "it failed; mend what its last words below complain of, and run again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_registries_say_becomes_what_to_do() {
        let cases = [
            ("go: writing go.sum: write /x: no space left on device", "the disk is full", PartState::Missing),
            ("E: Failed to fetch x  Hash Sum mismatch", "arrived broken", PartState::Missing),
            (
                "E: Failed to fetch x.deb  Undetermined Error [IP: 192.0.2.1 80]",
                "cut off",
                PartState::Missing,
            ),
            (
                "Err:1 x\n  Error reading from server. Remote end closed connection",
                "cut off",
                PartState::Missing,
            ),
            ("read tcp 192.0.2.1:80: read: connection reset by peer", "cut off", PartState::Missing),
            ("verifying a@v1: checksum mismatch\nSECURITY ERROR", "arrived broken", PartState::Missing),
            (
                "go: a@v1: reading a.mod: 403 Forbidden\n\tserver response: not available",
                "refuses it",
                PartState::Unavailable,
            ),
            (
                "Err:1 x\n  403  Forbidden\nE: The repository 'x InRelease' is not signed.",
                "refuses it",
                PartState::Unavailable,
            ),
            ("E: The repository 'x InRelease' is not signed.", "not trusted", PartState::Missing),
            ("go: a@v1: reading a.mod: 503 Service Unavailable", "out of reach", PartState::Missing),
            ("dial tcp: lookup proxy: no such host", "out of reach", PartState::Missing),
            ("W: Temporary failure resolving 'mirror'", "out of reach", PartState::Missing),
            ("go: go.mod requires go >= 1.26.0 (running go 1.21)", "Go is too old", PartState::Unavailable),
            ("something else", "last words", PartState::Missing),
        ];
        for (output, advice, state) in cases {
            let problem = Problem::from_output("building etcd", output);
            assert!(problem.why.starts_with("building etcd: "), "{}", problem.why);
            assert!(problem.why.contains(advice), "{output}: {}", problem.why);
            assert!(problem.why.contains(output.lines().last().unwrap().trim()), "{}", problem.why);
            assert_eq!(problem.state, state, "{output}");
        }
    }

    #[test]
    fn a_full_disk_and_a_locked_folder_are_told_apart() {
        let why = |kind: io::ErrorKind| {
            Problem::from_io("can't write", Path::new("/cache"), &io::Error::from(kind)).why
        };
        assert!(why(io::ErrorKind::StorageFull).contains("the disk is full"));
        assert!(why(io::ErrorKind::PermissionDenied).contains("--parts-dir"));
        assert!(why(io::ErrorKind::NotFound).contains("/cache"));
    }
}
