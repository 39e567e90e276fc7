//! Where blocking queries go on.

/// What the next blocking query gives back to Consul.
///
/// It starts over, at 0, after an index that is lower than the one before it, or that has not moved although Consul did
/// not wait to the end. That is how a query ends that was under way while a snapshot was restored: with what it knew
/// before, at an index that the restored state may reach only much later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    index: u64,
}

impl Cursor {
    /// The index of the next query; 0 to be answered at once.
    pub fn index(self) -> u64 {
        self.index
    }

    /// The next query is answered at once: after an error, nobody knows which server will answer.
    pub fn start_over(&mut self) {
        self.index = 0;
    }

    /// Returns whether to start over after an answer, which came before the end of its wait or not.
    pub fn must_start_over(self, index: u64, early: bool) -> bool {
        self.index != 0 && (index < self.index || (index == self.index && early))
    }

    /// Takes the index of an answer over.
    pub fn advance(&mut self, index: u64, early: bool) {
        // Never 0, unless to start over: a query at 0 does not block.
        self.index = if self.must_start_over(index, early) { 0 } else { index.max(1) };
    }
}
