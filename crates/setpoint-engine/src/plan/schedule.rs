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
    /// Does nothing: separates operations on items that an unchanged item connects.
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
    successors: Vec<Successor>,
    /// How many steps each waits for.
    pub(crate) waits: Vec<u32>,
    /// Overlapping steps might be related.
    pub(crate) serial: bool,
    /// Some item comes before an alternative that it might have stood on, or there are modifications
    /// or steps of several kinds: then the order of steps does not follow the dependencies everywhere.
    pub(crate) crosses: bool,
}

/// A step that waits for another, and whether it needs that one to succeed. In four bytes: there are as many as
/// the graphs have edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Successor(u32);

const HARD: u32 = 1 << 31;

impl Successor {
    fn new(step: u32, hard: bool) -> Self {
        Self(step & !HARD | if hard { HARD } else { 0 })
    }

    fn get(self) -> (u32, bool) {
        (self.0 & !HARD, self.0 & HARD != 0)
    }
}

impl Schedule {
    /// The steps that wait for one, each with whether they need it to succeed.
    pub(crate) fn successors(&self, step: u32) -> impl Iterator<Item = (u32, bool)> + '_ {
        let step = step as usize;
        let range = self.starts[step] as usize..self.starts[step + 1] as usize;
        self.successors[range].iter().map(|successor| successor.get())
    }

    /// All edges between steps: which comes first, which waits, and whether that needs the first to succeed.
    pub(super) fn edges(&self) -> impl Iterator<Item = (u32, u32, bool)> + '_ {
        let steps = 0..u32::try_from(self.steps.len()).unwrap_or(NONE);
        steps.flat_map(|from| self.successors(from).map(move |(to, hard)| (from, to, hard)))
    }

    fn new(steps: Vec<Step>, edges: &[(u32, u32, bool)], crosses: bool) -> Self {
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
        let mut successors = vec![Successor(NONE); edges.len()];
        for &(from, to, hard) in edges {
            let at = &mut next[from as usize];
            successors[*at as usize] = Successor::new(to, hard);
            *at += 1;
        }
        Self { steps, order: Vec::new(), starts, successors, waits, serial: false, crosses }
    }

    /// The same steps with fewer edges.
    pub(super) fn only(self, keep: impl Fn(u32, u32) -> bool) -> Self {
        let edges: Vec<_> = self.edges().filter(|&(from, to, _)| keep(from, to)).collect();
        Self { serial: self.serial, ..Self::new(self.steps, &edges, self.crosses) }
    }

    /// One step of the same kind for each subject. For each, `wire` is given a list to which it adds the
    /// steps that wait for it, and returns how many it waits for itself.
    pub(super) fn of_one_kind(
        kind: StepKind,
        subjects: usize,
        mut wire: impl FnMut(u32, &mut dyn FnMut(u32)) -> u32,
    ) -> Self {
        let count = u32::try_from(subjects).unwrap_or(NONE);
        let mut schedule = Self {
            steps: (0..count).map(|subject| Step { subject, kind }).collect(),
            starts: Vec::with_capacity(subjects + 1),
            successors: Vec::with_capacity(subjects * 2),
            waits: Vec::with_capacity(subjects),
            ..Self::default()
        };
        schedule.starts.push(0);
        for subject in 0..count {
            let successors = &mut schedule.successors;
            schedule.waits.push(wire(subject, &mut |step| successors.push(Successor::new(step, true))));
            schedule.starts.push(u32::try_from(schedule.successors.len()).unwrap_or(NONE));
        }
        schedule
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
    /// The collected steps with what each waits for, and the step at which each subject's old value ends.
    pub(super) fn finish(self) -> (Schedule, Vec<u32>) {
        (Schedule::new(self.steps, &self.edges, self.crosses), self.down)
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

    /// The first step of a subject.
    pub(super) fn first(&self, subject: u32) -> u32 {
        let down = self.down(subject);
        if down == NONE { self.up(subject) } else { down }
    }

    pub(super) fn kind(&self, step: u32) -> Option<StepKind> {
        self.steps.get(step as usize).map(|step| step.kind)
    }
}
