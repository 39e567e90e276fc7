//! Requests and their answers.

use std::collections::BTreeMap;
use std::fmt;

use tokio::sync::mpsc;

/// To whom an answer goes. Clones answer the same request.
pub struct Reply<R> {
    sender: mpsc::UnboundedSender<(&'static str, R)>,
}

impl<R> Reply<R> {
    pub(super) fn new(sender: mpsc::UnboundedSender<(&'static str, R)>) -> Self {
        Self { sender }
    }

    /// Answers, with the name of the subscriber. It is of no consequence if nobody waits any more.
    pub fn send(self, name: &'static str, answer: R) {
        let _ = self.sender.send((name, answer));
    }
}

impl<R> Clone for Reply<R> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone() }
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// The answers to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers<R> {
    /// The answers, by the names of the subscribers.
    pub given: BTreeMap<&'static str, R>,
    /// The names of those that did not answer in time, or at all.
    pub missing: Vec<&'static str>,
}
