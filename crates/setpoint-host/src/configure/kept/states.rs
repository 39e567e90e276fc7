//! What the states of items say of their originals.

use setpoint_engine::{CurrentGraph, ItemState};

use super::Kept;
use crate::configure::notes::PathNote;
use crate::fs::short;
use crate::kinds;

impl Kept {
    /// The name of the original of an item, as its state has it.
    pub fn original_of(state: &ItemState) -> Option<String> {
        state.noted::<PathNote>()?.original
    }

    /// Remembers with the original of an item that was forgotten what Setpoint wrote in its place: whoever takes that over
    /// again knows it from somebody's work. What can't be remembered is taken for somebody's then.
    pub fn forget(&self, state: &ItemState) {
        let Some(note) = state.noted::<PathNote>().filter(|_| state.ownership().is_adopted()) else { return };
        let (Some(name), Some(wrote)) = (&note.original, note.wrote.last()) else { return };
        if let Ok(Some(original)) = self.get(name)
            && let Ok(new) = self.put(&original.with_wrote(wrote))
            && new != *name
        {
            // Where it can't be removed, the newer one is found first.
            let _ = self.remove(name);
        }
    }

    /// Notes in the states of items what an earlier version kept of them, in files that were called by the items.
    pub fn name_originals(&self, current: &mut CurrentGraph) {
        let slots: Vec<_> = current.slots().collect();
        for slot in slots {
            let Some(item) = current.item_at(slot).filter(|item| kinds::on_disk(item).is_some()) else {
                continue;
            };
            let name = short(&[item.kind().as_str(), item.reference().name().as_str()]);
            let Some(state) = current.state_at_mut(slot).filter(|state| state.ownership().is_adopted())
            else {
                continue;
            };
            let note: PathNote = state.noted().unwrap_or_default();
            if note.original.is_none() && note.released.is_none() && self.path(&name).exists() {
                state.note(&PathNote { original: Some(name), ..note });
                current.touch_at(slot);
            }
        }
    }
}
