//! What the master tells of its processes.

/// The master's `show proc`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Processes {
    /// The process id of the master.
    pub master: u32,
    /// How often the master was asked to reload.
    pub reloads: u32,
    /// How many of those failed, since the last that did not.
    pub failed: u32,
    /// The workers of the present configuration.
    pub workers: Vec<u32>,
    /// The workers of earlier ones that still have connections to end.
    pub old_workers: Vec<u32>,
}

impl Processes {
    /// Reads the answer to `show proc`; nothing if it names no master.
    pub fn read(answer: &str) -> Option<Self> {
        let mut processes = Self::default();
        let mut old = false;
        for line in answer.lines() {
            if line.starts_with('#') {
                old = line.contains("old");
                continue;
            }
            let words: Vec<_> = line.split_whitespace().collect();
            let (Some(Ok(id)), Some(kind)) = (words.first().map(|word| word.parse()), words.get(1)) else {
                continue;
            };
            match *kind {
                "master" => {
                    processes.master = id;
                    processes.reloads = number(words.get(2));
                    if words.get(3).is_some_and(|word| word.starts_with("[failed")) {
                        processes.failed = number(words.get(4));
                    }
                }
                "worker" if old => processes.old_workers.push(id),
                "worker" => processes.workers.push(id),
                _ => {}
            }
        }
        (processes.master != 0).then_some(processes)
    }

    /// Whether a reload has come to its end: there is a worker, or the reload failed and the old one goes on.
    pub(super) fn settled(&self) -> bool {
        !self.workers.is_empty() || self.failed > 0
    }
}

fn number(word: Option<&&str>) -> u32 {
    word.and_then(|word| word.trim_end_matches(']').parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_old_workers_and_reloads_are_read() {
        let answer = "#<PID>          <type>          <reloads>       <uptime>        <version>\n\
                      1162            master          5 [failed: 1]   0d00h02m07s     3.2.4\n\
                      # workers\n\
                      1271            worker          1               0d00h00m00s     3.2.4\n\
                      # old workers\n\
                      1233            worker          3               0d00h00m43s     3.2.4\n\
                      # programs\n\n";
        let processes =
            Processes { master: 1162, reloads: 5, failed: 1, workers: vec![1271], old_workers: vec![1233] };
        assert_eq!(Processes::read(answer), Some(processes));
    }

    #[test]
    fn an_answer_without_a_master_is_none() {
        assert_eq!(Processes::read(""), None);
        assert_eq!(Processes::read("# workers\n12 worker 0\n"), None);
    }
}
