//! What commands write while they run, line by line, for whoever wants to see it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use setpoint_graph::ItemRef;

/// The longest line that is passed on in one piece.
const LONGEST: usize = 16 * 1024;

type Listener = Arc<dyn Fn(&ItemRef, &str) + Send + Sync>;

/// Where the output of all commands of a host goes; nowhere until somebody listens.
#[derive(Default)]
pub(crate) struct Output(OnceLock<Listener>);

impl Output {
    /// Sets who listens, once.
    pub(crate) fn listen(&self, listener: impl Fn(&ItemRef, &str) + Send + Sync + 'static) {
        // Whoever listens first goes on doing so.
        let _ = self.0.set(Arc::new(listener));
    }

    /// The lines of a command; none where nobody listens.
    pub(crate) fn of(&self, item: &ItemRef) -> Option<Lines> {
        let listener = Arc::clone(self.0.get()?);
        Some(Lines { listener, item: item.clone(), unfinished: Vec::new() })
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("is_listened_to", &self.0.get().is_some()).finish()
    }
}

/// The output of one command: taken as it comes, passed on in lines.
pub(crate) struct Lines {
    listener: Listener,
    item: ItemRef,
    unfinished: Vec<u8>,
}

impl Lines {
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.unfinished.extend_from_slice(bytes);
        while let Some(end) = self.unfinished.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            self.pass_on(&line);
        }
        if self.unfinished.len() > LONGEST {
            self.finish();
        }
    }

    /// Passes on a last line without an end.
    pub(crate) fn finish(&mut self) {
        let line = std::mem::take(&mut self.unfinished);
        if !line.is_empty() {
            self.pass_on(&line);
        }
    }

    fn pass_on(&self, line: &[u8]) {
        (self.listener)(&self.item, String::from_utf8_lossy(line).trim_end());
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("item", &self.item).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn output_is_passed_on_in_whole_lines() {
        let output = Output::default();
        let item = ItemRef::new("command", "c");
        assert!(output.of(&item).is_none(), "nobody listens");
        let passed: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&passed);
        output.listen(move |item, line| kept.lock().unwrap().push(format!("{item} {line}")));
        let mut lines = output.of(&item).unwrap();
        lines.take(b"one\ntw");
        assert_eq!(*passed.lock().unwrap(), ["command/c one"]);
        lines.take(b"o\r\n\nend");
        lines.finish();
        lines.finish();
        assert_eq!(
            *passed.lock().unwrap(),
            ["command/c one", "command/c two", "command/c ", "command/c end"]
        );
    }
}
