//! Reading the real system: drift, contested items, and items nobody declared.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use setpoint_graph::{ItemHandle, ItemRef, Name, SlotId};
use tokio_util::sync::CancellationToken;

use crate::background::Wake;
use crate::clock::after;
use crate::configurator::Observed;
use crate::engine::Engine;
use crate::metadata::SharedMetadata;
use crate::op::{OpCx, OpError, OpInputs, RunShared};
use crate::selection::Selection;
use crate::state::{CurrentGraph, Drift, ItemState, Presence};
use crate::transition;

/// The number of changes in a row that make an item contested.
const CONTESTED_AFTER: u32 = 3;
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
const LONGEST_BACK_OFF: Duration = Duration::from_mins(10);
/// Once an item was undisturbed for this long after its repair, the next change is the first of a row again.
const UNDISTURBED: Duration = Duration::from_mins(20);

/// An item that is not as the engine left it.
#[derive(Clone, Debug, PartialEq)]
pub struct Drifted {
    /// Which item.
    pub item: ItemRef,
    /// What it was.
    pub was: ItemHandle,
    /// What it is; none if it is gone.
    pub found: Option<ItemHandle>,
    /// Whether something keeps changing it, so that it is backed off from.
    pub contested: bool,
}

/// What reading the real system showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refreshed {
    /// How many items could be read.
    pub read: usize,
    /// Those that are not as the engine left them, by reference.
    pub drifted: Vec<Drifted>,
    /// Those that could not be read, and why, by reference: also those of which nobody knows how their last operation ended.
    pub unreadable: Vec<(ItemRef, OpError)>,
}

/// An item that is to be read, with what is remembered of it.
#[derive(Clone, Debug)]
pub struct ToRead {
    item: ItemHandle,
    metadata: Option<Arc<SharedMetadata>>,
}

impl ToRead {
    /// The item as it is known.
    pub fn item(&self) -> &ItemHandle {
        &self.item
    }
}

impl From<ItemHandle> for ToRead {
    /// One of which nothing is remembered.
    fn from(item: ItemHandle) -> Self {
        Self { item, metadata: None }
    }
}

/// What reading one item showed.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The item as it was known.
    pub was: ItemHandle,
    /// What is there.
    pub observed: Result<Observed<ItemHandle>, OpError>,
}

impl Drift {
    /// Returns whether something else keeps changing the item.
    pub fn is_contested(&self) -> bool {
        self.times >= CONTESTED_AFTER
    }

    /// Counts a change that was found at `now`, given the record of an earlier one and when the engine put the item
    /// right after that.
    ///
    /// The pause of a contested item begins with the last repair. A change during the pause neither counts nor
    /// prolongs it, so that an item that is changed all the while is put right in the end.
    fn after_another_change(earlier: Option<&Self>, repaired_at: Timestamp, now: Timestamp) -> Self {
        let times = match earlier {
            Some(waiting) if !waiting.repaired => return Self { at: now, ..waiting.clone() },
            Some(earlier) if after(repaired_at, UNDISTURBED) > now => earlier.times.saturating_add(1),
            _ => 1,
        };
        let due = match times.checked_sub(CONTESTED_AFTER) {
            None => now,
            Some(extra) => {
                let factor = 1_u32.checked_shl(extra.min(16)).unwrap_or(u32::MAX);
                let pause = FIRST_BACK_OFF.saturating_mul(factor).min(LONGEST_BACK_OFF);
                after(repaired_at, pause).max(now)
            }
        };
        Self { times, at: now, due, repaired: false }
    }
}

impl Engine {
    /// Reads the selected items from the real system and takes over what is found into the current graph.
    ///
    /// The next run puts right what drifted. An operation whose end nobody knows is known by this. An item that
    /// is changed again and again is contested: it is put right less and less often.
    pub async fn refresh(&self, current: &mut CurrentGraph, selection: &Selection) -> Refreshed {
        self.refresh_beside(current, selection, Vec::new()).await
    }

    /// Like [`Engine::refresh`], but does not read again what was read already. What is not selected, or was
    /// read as something else than what is known of it, is of no use.
    pub async fn refresh_beside(
        &self,
        current: &mut CurrentGraph,
        selection: &Selection,
        mut read_already: Vec<Reading>,
    ) -> Refreshed {
        let run = self.reading(current);
        crate::reconcile::update_index(current);
        let unknown = self.read_back_unknown(current, selection, &run).await;
        read_already.sort_by(|a, b| a.was.reference().cmp(b.was.reference()));
        let mut already = read_already.into_iter().peekable();
        let (mut readings, mut rest) = (Vec::new(), Vec::new());
        for to_read in self.readable(current, selection) {
            // Both are in the same order.
            while already.next_if(|reading| reading.was.reference() < to_read.item.reference()).is_some() {}
            if let Some(reading) = already.next_if(|reading| reading.was == to_read.item) {
                readings.push(reading);
            } else {
                rest.push(to_read);
            }
        }
        if !rest.is_empty() {
            readings.extend(self.read_items(rest).await);
            readings.sort_by(|a, b| a.was.reference().cmp(b.was.reference()));
        }
        self.record_drift(current, readings, unknown)
    }

    /// The selected items that can be read: those that are there, by reference.
    pub fn readable(&self, current: &CurrentGraph, selection: &Selection) -> Vec<ToRead> {
        let mut items: Vec<ToRead> = current
            .slots()
            .filter(|&slot| selection.holds(current, slot))
            .filter(|&slot| {
                let state = current.state_at(slot);
                state.is_none_or(|state| state.unfinished.is_none() && state.presence.exists())
            })
            .filter_map(|slot| {
                let item = current.item_at(slot).filter(|item| !item.external())?.clone();
                let metadata = current.state_at(slot).and_then(|state| state.metadata.existing());
                Some(ToRead { item, metadata })
            })
            .collect();
        items.sort_by(|a, b| a.item.reference().cmp(b.item.reference()));
        items
    }

    /// Reads items from the real system, and changes nothing: whoever has many may so read them in several
    /// places at once, for [`Engine::refresh_beside`].
    pub async fn read_items(&self, items: Vec<ToRead>) -> Vec<Reading> {
        let wake = Arc::new(Wake::new(Name::new("")));
        let run = Arc::new(self.run_shared(CancellationToken::new(), wake));
        let reads = stream::iter(items).map(|ToRead { item, metadata }| {
            let run = Arc::clone(&run);
            async move {
                let Some(configurator) = self.configurator(item.kind()) else {
                    return Reading { was: item, observed: Ok(Observed::Unsupported) };
                };
                let inputs = OpInputs { metadata: metadata.unwrap_or_default(), ..OpInputs::default() };
                let cx = OpCx::new(item.reference().clone(), None, inputs, run);
                let observed = self.read(&configurator, cx, item.clone()).await;
                Reading { was: item, observed }
            }
        });
        reads.buffered(self.concurrency()).collect().await
    }

    /// Takes over what was read, and those of which nobody knows how their last operation ended and that could not be read.
    fn record_drift(
        &self,
        current: &mut CurrentGraph,
        readings: Vec<Reading>,
        unknown: Vec<(ItemRef, OpError)>,
    ) -> Refreshed {
        let unreadable = readings.iter().filter(|reading| reading.observed.is_err());
        let unreadable = unreadable.map(|reading| reading.was.reference());
        let doubtful = standing_on(current, unreadable.chain(unknown.iter().map(|(item, _)| item)));
        let mut refreshed = Refreshed { unreadable: unknown, ..Refreshed::default() };
        for Reading { was, observed } in readings {
            let item = was.reference().clone();
            let found = match observed {
                Err(error) => {
                    refreshed.unreadable.push((item, error));
                    continue;
                }
                Ok(Observed::Unsupported) => continue,
                // What it stands on can't be looked at: nobody knows what is behind that.
                Ok(Observed::Absent) if doubtful.contains(&item) => continue,
                Ok(Observed::Absent) => None,
                Ok(Observed::Present(found)) => Some(found),
            };
            refreshed.read += 1;
            if found.as_ref() == Some(&was) {
                continue;
            }
            if found.as_ref().is_some_and(|found| found.reference() != &item) {
                let error = OpError::untouched("reading it gave an item with another reference");
                refreshed.unreadable.push((item, error));
                continue;
            }
            let contested = record_drift(current, &item, found.as_ref(), self.clock().now());
            refreshed.drifted.push(Drifted { item, was, found, contested });
        }
        refreshed.unreadable.sort_by(|(a, _), (b, _)| a.cmp(b));
        refreshed
    }

    /// Lists what the real system has of all known kinds and the current graph does not, by reference.
    ///
    /// Kinds that can't be listed are left out. A kind that takes longer to list than an operation on it may
    /// take is an error, as is a configurator that panics.
    pub async fn discover(&self, current: &CurrentGraph) -> Result<Vec<ItemHandle>, OpError> {
        let wake = Arc::new(Wake::new(current.name().clone()));
        let run = Arc::new(self.run_shared(CancellationToken::new(), wake));
        let mut unmanaged = Vec::new();
        for kind in self.registry().kinds() {
            let Some(configurator) = self.configurator(&kind) else { continue };
            let nothing = ItemRef::new(kind.clone(), "");
            let cx = OpCx::new(nothing, None, OpInputs::default(), Arc::clone(&run));
            let limit = self.timeout(&kind);
            let listed = self.within_time(limit, "listing what is there", configurator.list(cx)).await?;
            let known: BTreeSet<&ItemRef> =
                current.slots().filter_map(|slot| current.reference_at(slot)).collect();
            let new = listed.into_iter().flatten().filter(|item| !known.contains(item.reference()));
            unmanaged.extend(new);
        }
        unmanaged.sort_by(|a, b| a.reference().cmp(b.reference()));
        Ok(unmanaged)
    }

    fn reading(&self, current: &mut CurrentGraph) -> Arc<RunShared> {
        let name = current.name().clone();
        let wake = current.shared_mut().wake(&name);
        Arc::new(self.run_shared(CancellationToken::new(), wake))
    }

    /// What all operations of a run share.
    pub(crate) fn run_shared(&self, cancel: CancellationToken, wake: Arc<Wake>) -> RunShared {
        RunShared { clock: Arc::clone(self.clock()), cancel, wake, journal: self.journal().cloned() }
    }
}

/// All that stands on some items, directly or not.
fn standing_on<'a>(current: &CurrentGraph, items: impl Iterator<Item = &'a ItemRef>) -> BTreeSet<ItemRef> {
    let mut found = BTreeSet::new();
    let mut todo: Vec<SlotId> = items.filter_map(|item| current.slot_of(item)).collect();
    while let Some(slot) = todo.pop() {
        for edge in current.incoming_at(slot) {
            let dependency = current.dependency_at(edge.slot, edge.position);
            if dependency.is_none_or(|dependency| !dependency.is_order())
                && let Some(item) = current.reference_at(edge.slot)
                && found.insert(item.clone())
            {
                todo.push(edge.slot);
            }
        }
    }
    found
}

/// Takes over what was found, and counts how often; returns whether the item is contested.
fn record_drift(
    current: &mut CurrentGraph,
    item: &ItemRef,
    found: Option<&ItemHandle>,
    now: Timestamp,
) -> bool {
    let Some(slot) = current.node_of(item).map(|node| node.slot()) else { return false };
    let mut state = current.state_at(slot).cloned().unwrap_or_else(|| ItemState::present(now));
    // A repair was the last thing that was done to the item, and since then it was as it should be.
    let drift = Drift::after_another_change(state.drift.as_deref(), state.since, now);
    let contested = drift.is_contested();
    state.drift = Some(Box::new(drift));
    state.since = now;
    match found {
        None => {
            state.presence = Presence::Absent;
            current.shared_mut().lost.insert(item.clone());
        }
        Some(found) => {
            let path = current.path_at(slot);
            // The same reference in the same place: such a put is never refused.
            let put = current.put_item_into(&path, found.clone());
            debug_assert!(put.is_ok());
        }
    }
    current.set_state_at(slot, state);
    current.touch_at(slot);
    if found.is_some() {
        // Also where the intent follows, and nothing is left to put right.
        transition::repeat_dependents(current, slot, now);
    }
    contested
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1;
    const MINUTE: i64 = 60;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
    }

    /// A drift that was put right.
    fn repaired(times: u32) -> Drift {
        Drift { times, at: at(0), due: at(0), repaired: true }
    }

    #[test]
    fn the_pause_of_a_contested_item_begins_with_the_last_repair() {
        let repair = at(100);
        for (times, now, due) in [
            (1, 101 * SECOND, 101),
            (2, 101 * SECOND, 110),
            (3, 101 * SECOND, 120),
            // It stood for longer than the pause: there is nothing left to wait for.
            (3, 150 * SECOND, 150),
            (30, 101 * SECOND, 100 + 10 * MINUTE),
        ] {
            let drift = Drift::after_another_change(Some(&repaired(times)), repair, at(now));
            assert_eq!((drift.times, drift.due), (times + 1, at(due)), "changed {times} times before");
        }
    }

    #[test]
    fn only_what_stood_undisturbed_for_twice_the_longest_pause_is_not_contested_any_more() {
        assert_eq!(UNDISTURBED, LONGEST_BACK_OFF * 2);
        let repair = at(1000);
        let late = Drift::after_another_change(Some(&repaired(9)), repair, at(1000 + 20 * MINUTE - 1));
        assert_eq!(late.times, 10, "a repair after the longest pause does not start the count anew");
        let later = Drift::after_another_change(Some(&repaired(9)), repair, at(1000 + 20 * MINUTE));
        assert_eq!((later.times, later.due), (1, at(1000 + 20 * MINUTE)));
        assert!(!later.is_contested());
    }

    #[test]
    fn a_change_during_the_pause_does_not_prolong_it() {
        let waiting = Drift { times: 4, at: at(10), due: at(30), repaired: false };
        let again = Drift::after_another_change(Some(&waiting), at(10), at(25));
        assert_eq!((again.times, again.at, again.due), (4, at(25), at(30)));
    }
}
