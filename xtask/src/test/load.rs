//! Busy processes beside the tests: a test that only passes on an idle machine shows itself.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::limited::Watcher;

/// Busy processes, ended when this is dropped, and when this process is killed.
#[derive(Debug)]
pub(super) struct Load {
    watcher: Watcher,
}

impl Load {
    /// Starts so many processes that do nothing but count.
    pub(super) fn start(processes: usize) -> Result<Self> {
        let watcher = Watcher::start().context("can't start what ends busy processes")?;
        let load = Self { watcher };
        let group = load.group()?;
        for _ in 0..processes {
            Command::new("/bin/sh")
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .process_group(group)
                .spawn()
                .context("can't start a busy process")?;
        }
        Ok(load)
    }

    /// The process group that they are in.
    fn group(&self) -> std::io::Result<i32> {
        self.watcher.group()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// How many processes of a group are there and no zombies.
    fn alive(group: i32) -> usize {
        let of_group = |stat: &str| {
            let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            fields.get(2) == Some(&group.to_string().as_str()) && fields.first() != Some(&"Z")
        };
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let stats = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        stats.filter(|stat| of_group(stat)).count()
    }

    #[test]
    fn busy_processes_end_with_the_load() {
        let load = Load::start(2).unwrap();
        let group = load.group().unwrap();
        assert_eq!(alive(group), 3, "two, and the one that ends them");
        drop(load);
        let started = Instant::now();
        while alive(group) > 0 {
            assert!(started.elapsed() < Duration::from_mins(5), "they are still there");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
