//! Where the intended state comes from.

use std::convert::Infallible;
use std::fmt;
use std::future::pending;

use setpoint_engine::Selection;
use setpoint_graph::Graph;
use setpoint_loop::latest as slot;

/// Says which items should exist: a directory of files, a control plane, a Kubernetes API.
///
/// A source keeps its graph, and changes it in place where it can: the engine then looks only at what changed. A
/// controller loads it at its start, after each [`Changed::Intended`], and again with growing pauses while loading fails.
/// What was intended last stands meanwhile.
///
/// Both futures may be dropped before they complete, and nothing may be lost by that.
pub trait Source: Send + 'static {
    /// Why loading failed.
    type Error: fmt::Display + Send;

    /// Brings the intended graph up to date.
    fn load(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Returns the intended graph as it was loaded last; none if nothing is known yet, and then nothing is done.
    ///
    /// An empty graph is another matter: it says that nothing should exist, and everything is deleted.
    fn intended(&self) -> Option<&Graph>;

    /// Waits until something may have changed since the last call. A source that never changes waits for ever.
    ///
    /// A burst of events should be one change: [`Debouncer`](setpoint_loop::Debouncer) waits for its end.
    fn changed(&mut self) -> impl Future<Output = Changed> + Send;
}

/// What may have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// What is intended: the source is loaded again.
    Intended,
    /// These items, in the real system: they are read, and repaired where they drifted.
    Items(Selection),
}

/// A graph is a source that never changes.
impl Source for Graph {
    type Error = Infallible;

    async fn load(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn intended(&self) -> Option<&Graph> {
        Some(self)
    }

    async fn changed(&mut self) -> Changed {
        pending().await
    }
}

/// Makes a source that takes each graph that is sent; of several, only the newest.
///
/// Before the first graph nothing is known, and nothing is done. When no sender is left, what was sent last stands.
pub fn latest() -> (slot::Sender<Graph>, Latest) {
    let (sender, receiver) = slot::channel();
    (sender, Latest { receiver, next: None, intended: None })
}

/// The source that [`latest`] makes.
#[derive(Debug)]
pub struct Latest {
    receiver: slot::Receiver<Graph>,
    /// What was received and not loaded yet.
    next: Option<Graph>,
    intended: Option<Graph>,
}

impl Source for Latest {
    type Error = Infallible;

    async fn load(&mut self) -> Result<(), Infallible> {
        if let Some(graph) = self.receiver.try_recv().or_else(|| self.next.take()) {
            self.next = None;
            self.intended = Some(graph);
        }
        Ok(())
    }

    fn intended(&self) -> Option<&Graph> {
        self.intended.as_ref()
    }

    async fn changed(&mut self) -> Changed {
        match self.receiver.recv().await {
            Some(graph) => {
                self.next = Some(graph);
                Changed::Intended
            }
            None => pending().await,
        }
    }
}
