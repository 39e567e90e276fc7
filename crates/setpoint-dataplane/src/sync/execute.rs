//! Carries out steps: one priority after the other, and of one priority as many at a time as may be.
//!
//! ```text
//! priority 1: chain a: 1 2 3     chain b: 1 2      ── all ended ──▶ priority 2: …
//! ```
//!
//! What works on one list, or makes or deletes things of one kind in one section, is a chain: its order counts. What is replaced
//! under its name is a chain by itself.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream;
use setpoint_haproxy::compare::{ChildKey, Operation, Subject};
use setpoint_plan::Action;

use super::steps::Step;

/// What decides which operations may be carried out at the same time.
type Priority = (u8, i32);

/// The priority of an operation, and the chain that it belongs to.
fn place_of(operation: &Operation) -> (Priority, String) {
    let (phase, rank, ..) = operation.order;
    let is_replaced = operation.action == Action::Modify;
    let chain = match &operation.subject {
        Subject::Child { kind, key: key @ ChildKey::Name(_), .. } if is_replaced => {
            format!("{} {kind} {key}", operation.section)
        }
        Subject::Child { kind, .. } => format!("{} {kind}", operation.section),
        _ if is_replaced => operation.section.to_string(),
        _ => operation.section.kind.to_string(),
    };
    ((phase, rank), chain)
}

/// Carries out steps in their order. Returns what failed; the first failure ends it unless `continue_on_error` is set.
pub(super) async fn execute<'o, 's, E>(
    steps: &'s [Step<'o>],
    max_parallel: usize,
    continue_on_error: bool,
    run: impl AsyncFn(&'s Step<'o>) -> Result<(), E>,
) -> Vec<E> {
    let placed: Vec<_> = steps.iter().map(|step| (place_of(step.leading()), step)).collect();
    execute_placed(placed, max_parallel, continue_on_error, run).await
}

async fn execute_placed<T, E>(
    items: Vec<((Priority, String), T)>,
    max_parallel: usize,
    continue_on_error: bool,
    run: impl AsyncFn(T) -> Result<(), E>,
) -> Vec<E> {
    let mut priorities: BTreeMap<Priority, BTreeMap<String, Vec<T>>> = BTreeMap::new();
    for ((priority, chain), item) in items {
        priorities.entry(priority).or_default().entry(chain).or_default().push(item);
    }
    let limit = if max_parallel == 0 { usize::MAX } else { max_parallel };
    let mut failures = Vec::new();
    for chains in priorities.into_values() {
        let mut running = stream::iter(chains.into_values())
            .map(async |chain| {
                let mut failed = Vec::new();
                for item in chain {
                    if let Err(error) = run(item).await {
                        failed.push(error);
                        if !continue_on_error {
                            break;
                        }
                    }
                }
                failed
            })
            .buffer_unordered(limit);
        while let Some(failed) = running.next().await {
            failures.extend(failed);
            if !failures.is_empty() && !continue_on_error {
                // What still runs is dropped with it.
                return failures;
            }
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    const MOMENT: Duration = Duration::from_secs(1);

    /// How many of some operations that share a priority run at the same time.
    async fn most_at_a_time(count: u32, max_parallel: usize) -> u32 {
        let (running, most) = (Cell::new(0_u32), Cell::new(0_u32));
        let items = (0..count).map(|number| (((0, 100), number.to_string()), number)).collect();
        let failed = execute_placed(items, max_parallel, false, async |_| {
            running.set(running.get() + 1);
            most.set(most.get().max(running.get()));
            sleep(MOMENT).await;
            running.set(running.get() - 1);
            Ok::<(), ()>(())
        });
        assert!(failed.await.is_empty());
        most.get()
    }

    #[tokio::test(start_paused = true)]
    async fn operations_at_same_priority_run_in_parallel() {
        assert_eq!(most_at_a_time(5, 0).await, 5);
    }

    #[tokio::test(start_paused = true)]
    async fn max_parallel_limits_concurrency() {
        assert_eq!(most_at_a_time(10, 3).await, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn stop_on_first_error() {
        let ended = RefCell::new(Vec::new());
        let run = async |number: u32| {
            // The second fails while the others are under way.
            sleep(if number == 2 { MOMENT } else { 5 * MOMENT }).await;
            ended.borrow_mut().push(number);
            if number == 2 { Err(number) } else { Ok(()) }
        };
        let items = |()| {
            (1..=4_i32).map(|number| (((0, number / 4), number.to_string()), number.unsigned_abs())).collect()
        };
        assert_eq!(execute_placed(items(()), 0, false, run).await, [2]);
        assert_eq!(*ended.borrow(), [2], "the others were cancelled, and the next priority never began");
        ended.borrow_mut().clear();
        assert_eq!(execute_placed(items(()), 0, true, run).await, [2]);
        assert_eq!(ended.borrow().len(), 4, "all were tried");
    }

    #[tokio::test(start_paused = true)]
    async fn what_works_on_one_list_keeps_its_order_and_priorities_follow_each_other() {
        let order = RefCell::new(Vec::new());
        let of = |priority, chain: &str, name| (((0, priority), chain.to_owned()), name);
        let items = vec![of(2, "x", "last"), of(1, "a", "a1"), of(1, "a", "a2"), of(1, "b", "b1")];
        let failed = execute_placed(items, 0, false, async |name: &str| {
            // The first of a chain takes longest.
            sleep(if name == "a1" { 9 * MOMENT } else { MOMENT }).await;
            order.borrow_mut().push(name.to_owned());
            Ok::<(), ()>(())
        });
        assert!(failed.await.is_empty());
        assert_eq!(*order.borrow(), ["b1", "a1", "a2", "last"]);
    }
}
