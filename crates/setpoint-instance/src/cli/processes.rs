//! What a master says of itself and its workers: `show proc`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::process::{Identity, Start};

/// One process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its process id, as the master sees it.
    pub pid: u32,
    /// For a master: how often it was asked to reload. For a worker: how many reloads it has outlived.
    pub reloads: u32,
    /// How long it has been running, in whole seconds, if its master says so.
    pub uptime: Option<Duration>,
}

/// The answer to `show proc`.
///
/// Which workers serve is not always what the headings say: after a reload that failed, HAProxy 3.2 and later list the one
/// that goes on serving under 'old workers'. [`Processes::serving`] knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processes {
    /// The master.
    pub master: Process,
    /// How many reloads failed since the last that did not.
    pub failed: u32,
    /// The workers of the present configuration.
    pub workers: Vec<Process>,
    /// Workers that only end what they have begun, if the last reload did not fail.
    pub old: Vec<Process>,
    /// Whether these are the process ids that the processes have here. In a container they have others, and what has these ids
    /// here is something else.
    pub are_ours: bool,
}

impl Processes {
    /// Reads the answer; none if it names no master, as that of another program would not. Whose process ids it names, it does not
    /// say.
    pub fn read(answer: &str) -> Option<Self> {
        let (mut master, mut failed) = (None, 0);
        let (mut workers, mut old) = (Vec::new(), Vec::new());
        let mut list = &mut workers;
        for line in answer.lines() {
            match line.trim_end() {
                "# workers" => list = &mut workers,
                "# old workers" => list = &mut old,
                line if line.starts_with('#') => {}
                line => {
                    let mut words = line.split_ascii_whitespace();
                    let (Some(pid), Some(kind), Some(reloads)) = (words.next(), words.next(), words.next())
                    else {
                        continue;
                    };
                    let (Ok(pid), Ok(reloads)) = (pid.parse(), reloads.parse()) else { continue };
                    let uptime = line.split_ascii_whitespace().find_map(uptime);
                    let process = Process { pid, reloads, uptime };
                    match kind {
                        "master" => {
                            master = Some(process);
                            let number =
                                line.split_once("[failed:").and_then(|(_, rest)| rest.split_once(']'));
                            failed = number.and_then(|(number, _)| number.trim().parse().ok()).unwrap_or(0);
                        }
                        "worker" => list.push(process),
                        // Programs that a master runs beside its workers.
                        _ => {}
                    }
                }
            }
        }
        Some(Self { master: master?, failed, workers, old, are_ours: false })
    }

    /// The worker that serves; none while one is being started.
    pub fn serving(&self) -> Option<Process> {
        let youngest = |list: &[Process]| list.iter().copied().min_by_key(|worker| worker.reloads);
        youngest(&self.workers).or_else(|| youngest(&self.old).filter(|_| self.failed > 0))
    }

    /// Returns whether a process of this id is a worker, old or new.
    pub fn has_worker(&self, pid: u32) -> bool {
        self.workers.iter().chain(&self.old).any(|worker| worker.pid == pid)
    }

    /// When one of them started: as the system knows it, or about as HAProxy says.
    pub(crate) fn start_of(&self, process: Process) -> Option<Start> {
        if self.are_ours {
            return Identity::of(process.pid).map(|identity| Start::At(identity.start()));
        }
        // HAProxy counts by the clock of the system, as its processes were started.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        Some(Start::About(now.checked_sub(process.uptime?)?.as_secs()))
    }
}

/// A time such as `0d00h02m07s`.
fn uptime(word: &str) -> Option<Duration> {
    let (days, rest) = word.strip_suffix('s')?.split_once('d')?;
    let (hours, rest) = rest.split_once('h')?;
    let (minutes, seconds) = rest.split_once('m')?;
    let [days, hours, minutes, seconds] =
        [days, hours, minutes, seconds].map(|number| number.parse::<u64>().ok());
    let hours = days?.checked_mul(24)?.checked_add(hours?)?;
    let seconds = hours.checked_mul(60)?.checked_add(minutes?)?.checked_mul(60)?.checked_add(seconds?)?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "#<PID>          <type>          <reloads>       <uptime>        <version>\n";

    fn process(pid: u32, reloads: u32, seconds: u64) -> Process {
        Process { pid, reloads, uptime: Some(Duration::from_secs(seconds)) }
    }

    #[test]
    fn master_workers_and_failures_are_read() {
        let answer = format!(
            "{HEADING}1162            master          5 [failed: 1]   0d00h02m07s     3.2.4\n\
             # workers\n1271            worker          1               0d00h00m00s     3.2.4\n\
             # old workers\n1233            worker          3               0d00h00m43s     3.2.4\n\
             # programs\n99  echo  1  0d00h00m43s  -\n\n"
        );
        let processes = Processes::read(&answer).unwrap();
        assert_eq!(processes.master, process(1162, 5, 127));
        assert_eq!((processes.failed, processes.serving()), (1, Some(process(1271, 1, 0))));
        assert!(processes.has_worker(1233) && !processes.has_worker(99));
    }

    #[test]
    fn after_a_failed_reload_the_old_worker_serves() {
        let after = |failed: u32| {
            let answer = format!(
                "{HEADING}1 master 2 [failed: {failed}] 0d00h01m21s 3.4.7-1\n# workers\n# old workers\n\
                 29717           worker          1               0d00h00m08s     3.4.7-1\n"
            );
            Processes::read(&answer).unwrap().serving()
        };
        assert_eq!(after(1), Some(process(29717, 1, 8)));
        assert_eq!(after(0), None, "a worker is being started, and the old one is on its way out");
    }

    #[test]
    fn how_long_a_process_has_been_running_is_read() {
        assert_eq!(uptime("2d03h04m05s"), Some(Duration::from_secs(((2 * 24 + 3) * 60 + 4) * 60 + 5)));
        for word in ["", "0d", "s", "3.4.7-1", "ds", "18446744073709551615d00h00m00s", "0d00h00m-1s"] {
            assert_eq!(uptime(word), None, "{word:?}");
        }
    }

    #[test]
    fn what_names_no_master_is_no_answer() {
        for answer in ["", "# workers\n12 worker 0 0d 3\n", "Unknown command\n", "x master y\n", "1 master\n"]
        {
            assert_eq!(Processes::read(answer), None, "{answer:?}");
        }
    }
}
