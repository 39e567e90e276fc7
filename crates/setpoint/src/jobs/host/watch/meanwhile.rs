//! What happens while a pass is made: it is reported at once, and looked at by the next pass.

use std::collections::BTreeSet;

use setpoint_engine::CurrentGraph;
use setpoint_graph::ItemRef;
use setpoint_host::{EndedProcess, Host, Manifest, ProcessEnds};

use super::events::EventWriter;
use super::follow::{Changes, Follower};

/// Watches manifests and processes while something else is done.
pub(super) struct Meanwhile {
    pub(super) follower: Follower,
    /// The processes that run.
    pub(super) ends: ProcessEnds,
    events: EventWriter,
    /// What was seen, and is to be looked at.
    changed: Changes,
    /// The processes whose end was reported, and which were not read since.
    ended: Vec<EndedProcess>,
    /// Whether nobody else starts and ends processes. What others do is only known when the state has been read once more.
    is_alone: bool,
}

impl Meanwhile {
    pub(super) fn new(follower: Follower, host: &Host, events: EventWriter, is_alone: bool) -> Self {
        let ends = ProcessEnds::new(host);
        Self { follower, ends, events, changed: Changes::nothing(), ended: Vec::new(), is_alone }
    }

    /// Waits for a part of a pass.
    pub(super) async fn during<T>(&mut self, manifest: &Manifest, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                changed = self.follower.next(manifest) => {
                    if changed.manifests && !self.changed.manifests {
                        // A line that can't be written stops no operation.
                        let _ = self.events.changed();
                    }
                    self.changed.add(changed);
                }
                ended = self.ends.next(), if self.is_alone => {
                    self.report_ends(|item| ended.contains(item));
                    self.changed.add(Changes { manifests: false, items: Some(ended) });
                }
            }
        }
    }

    /// Reports that processes have ended which nobody asked to, of the items that are wanted.
    pub(super) fn report_ends(&mut self, wanted: impl Fn(&ItemRef) -> bool) {
        let ended = self.ends.take(wanted);
        self.report(ended);
    }

    /// Reports the ends of the processes of items that were found to be gone.
    pub(super) fn report_ends_of(&mut self, gone: &BTreeSet<ItemRef>) {
        let ended = self.ends.take_of(gone);
        self.report(ended);
    }

    fn report(&mut self, ended: Vec<EndedProcess>) {
        for process in ended {
            // A line that can't be written stops no operation.
            let _ = self.events.ended(&process);
            self.ended.push(process);
        }
    }

    /// Returns whether the end of an item's process was reported, and not read since.
    pub(super) fn has_reported(&self, item: &ItemRef) -> bool {
        self.ended.iter().any(|process| process.item == *item)
    }

    /// The items of processes whose end was reported, and which were not read since.
    pub(super) fn ended(&self) -> BTreeSet<ItemRef> {
        self.ended.iter().map(|process| process.item.clone()).collect()
    }

    /// Forgets ends: the items were read since.
    pub(super) fn forget_ends(&mut self, read: &BTreeSet<ItemRef>) {
        self.ended.retain(|process| !read.contains(&process.item));
    }

    /// Lets the next pass look at what happened since this one has begun, when the time for that has come.
    pub(super) fn pass_on(&mut self, current: Option<&CurrentGraph>) {
        let changed = std::mem::replace(&mut self.changed, Changes::nothing());
        self.follower.add(changed);
        if let Some(current) = current {
            self.ends.follow(current);
        }
    }
}
