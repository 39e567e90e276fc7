//! Steps, what each waits for, and an order that is safe one by one.

use super::NONE;

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StepKind {
    Delete,
    Modify,
    Create,
    /// Nothing: the item's support changes from one alternative to another here.
    Switch,
    /// Nothing: keeps operations apart that are related through an unchanged item.
    Gate,
}

/// One step of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) subject: u32,
    pub(crate) kind: StepKind,
}

/// The steps, an order that is safe one by one, and what each waits for.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub(crate) steps: Vec<Step>,
    /// The steps in order.
    pub(crate) order: Vec<u32>,
    /// Where each step's successors begin in `successors`.
    starts: Vec<u32>,
    /// Each with whether the edge is hard.
    successors: Vec<(u32, bool)>,
    /// How many steps each waits for.
    pub(crate) waits: Vec<u32>,
    /// Overlapping steps might be related.
    pub(crate) serial: bool,
    /// Some item comes before an alternative that it might have stood on, or there are modifications
    /// or steps of several kinds: then the order of steps does not follow the dependencies everywhere.
    pub(crate) crosses: bool,
}

impl Schedule {
    /// The steps that wait for one, each with whether they need it to succeed.
    pub(crate) fn successors(&self, step: u32) -> &[(u32, bool)] {
        let step = step as usize;
        &self.successors[self.starts[step] as usize..self.starts[step + 1] as usize]
    }

    pub(super) fn new(steps: Vec<Step>, edges: &[(u32, u32, bool)]) -> Self {
        let mut starts = vec![0_u32; steps.len() + 1];
        let mut waits = vec![0_u32; steps.len()];
        for &(from, to, _) in edges {
            starts[from as usize + 1] += 1;
            waits[to as usize] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut successors = vec![(NONE, false); edges.len()];
        for &(from, to, hard) in edges {
            let at = &mut next[from as usize];
            successors[*at as usize] = (to, hard);
            *at += 1;
        }
        Self { steps, order: Vec::new(), starts, successors, waits, serial: false, crosses: false }
    }
}

/// Steps and edges while they are collected.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) steps: Vec<Step>,
    pub(super) edges: Vec<(u32, u32, bool)>,
    /// The step at which each subject's old value ends, and the one at which its new value begins.
    pub(super) down: Vec<u32>,
    pub(super) up: Vec<u32>,
    pub(super) crosses: bool,
}

impl Draft {
    /// A draft with one step of the same kind for each subject, and the edges that are drawn for each.
    pub(super) fn of_one_kind(kind: StepKind, subjects: usize, draw: impl Fn(u32, &mut Self)) -> Self {
        let mut draft = Self::default();
        draft.edges.reserve(subjects * 2);
        let count = u32::try_from(subjects).unwrap_or(NONE);
        draft.steps.extend((0..count).map(|subject| Step { subject, kind }));
        for subject in 0..count {
            draw(subject, &mut draft);
        }
        draft
    }

    pub(super) fn step(&mut self, subject: u32, kind: StepKind) -> u32 {
        self.steps.push(Step { subject, kind });
        u32::try_from(self.steps.len() - 1).unwrap_or(NONE)
    }

    pub(super) fn edge(&mut self, from: u32, to: u32, hard: bool) {
        if from != to && from != NONE && to != NONE {
            self.edges.push((from, to, hard));
        }
    }

    pub(super) fn down(&self, subject: u32) -> u32 {
        self.down.get(subject as usize).copied().unwrap_or(NONE)
    }

    pub(super) fn up(&self, subject: u32) -> u32 {
        self.up.get(subject as usize).copied().unwrap_or(NONE)
    }

    pub(super) fn kind(&self, step: u32) -> Option<StepKind> {
        self.steps.get(step as usize).map(|step| step.kind)
    }
}
