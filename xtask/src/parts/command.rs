//! Running the registries' clients: with a time limit, and with all they say kept.

use std::ffi::OsStr;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::diagnosis::Problem;

/// How often a person hears of a command that takes long.
const NEWS: Duration = Duration::from_secs(30);

/// Whether nobody wants parts any more.
static CANCELLED: AtomicBool = AtomicBool::new(false);

/// Ends every command that runs now or is started later.
pub(crate) fn cancel() {
    CANCELLED.store(true, Ordering::Relaxed);
}

/// Runs a command to its end and returns its standard output and standard error, as they came.
///
/// `doing` says what the command is for. A failure, or a run of more than `limit`, is a [`Problem`] that holds
/// the last lines. While it runs, `news` is called from time to time.
pub(crate) fn run(
    doing: &str,
    command: &mut Command,
    limit: Duration,
    news: impl Fn(Duration),
) -> Result<String, Problem> {
    let name = command_name(command);
    let failed = |error: std::io::Error| spawn_problem(doing, &name, &error);
    let (output, write_end) = std::io::pipe().map_err(failed)?;
    let other_end = write_end.try_clone().map_err(failed)?;
    let started = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(write_end).stderr(other_end).spawn().map_err(failed)?;
    // The command keeps its copies of the pipe's end: let go of them, or reading never ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let (sender, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    let mut text = String::new();
    let mut next_news = NEWS;
    loop {
        match lines.recv_timeout(Duration::from_millis(500)) {
            Ok(line) => {
                text.push_str(&line);
                text.push('\n');
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let elapsed = started.elapsed();
        if elapsed >= next_news {
            news(elapsed);
            next_news += NEWS;
        }
        if CANCELLED.load(Ordering::Relaxed) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Problem::missing(format!(
                "{doing}: given up, because nothing needs it any more; run again"
            )));
        }
        if elapsed >= limit {
            let _ = child.kill();
            let _ = child.wait();
            let _ = write!(text, "`{name}` took longer than {} s and was ended", limit.as_secs());
            return Err(Problem::from_output(doing, &text));
        }
    }
    let _ = reader.join();
    let status = child.wait().map_err(failed)?;
    if status.success() { Ok(text) } else { Err(Problem::from_output(doing, &text)) }
}

/// Runs a short command in silence.
pub(crate) fn run_quietly(doing: &str, command: &mut Command) -> Result<String, Problem> {
    run(doing, command, Duration::from_mins(10), |_| {})
}

fn command_name(command: &Command) -> String {
    OsStr::to_string_lossy(command.get_program()).into_owned()
}

fn spawn_problem(doing: &str, program: &str, error: &std::io::Error) -> Problem {
    if error.kind() == std::io::ErrorKind::NotFound {
        Problem::unavailable(format!("{doing}: there is no `{program}` on this machine; install it"))
    } else {
        Problem::missing(format!("{doing}: can't run `{program}`: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use setpoint_testutils::manifest::PartState;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn both_outputs_are_kept() {
        let text = run_quietly("testing", &mut shell("echo out; echo err >&2; printf last")).unwrap();
        assert_eq!(text, "out\nerr\nlast\n");
    }

    #[test]
    fn a_failure_carries_the_last_words() {
        let problem = run_quietly("testing", &mut shell("echo no such host; exit 3")).unwrap_err();
        assert!(
            problem.why.contains("out of reach") && problem.why.contains("no such host"),
            "{}",
            problem.why
        );
    }

    #[test]
    fn a_program_that_is_not_there_makes_the_part_unavailable() {
        let problem = run_quietly("testing", &mut Command::new("setpoint-no-such-program")).unwrap_err();
        assert_eq!(problem.state, PartState::Unavailable);
        assert!(problem.why.contains("`setpoint-no-such-program`"), "{}", problem.why);
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended() {
        let started = Instant::now();
        let limit = Duration::from_millis(600);
        let problem = run("testing", &mut shell("exec sleep 900"), limit, |_| {}).unwrap_err();
        assert!(problem.why.contains("took longer"), "{}", problem.why);
        assert!(started.elapsed() < Duration::from_mins(5));
    }
}
