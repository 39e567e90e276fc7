//! A watch under test: fast settings, what it reports, what it passes on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use setpoint_consul::watch::{Event, Settings, Snapshot, watch};
use setpoint_consul::{Client, Settings as Consul};
use setpoint_loop::latest;
use setpoint_structure::transform;
use setpoint_testutils::wait;
use setpoint_testutils::wait::LIMIT;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) fn fast() -> Settings {
    Settings {
        wait: Duration::from_secs(5),
        wakes: None,
        content: None,
        burst: 2,
        refill: Duration::from_millis(20),
        first_retry: Duration::from_millis(20),
        longest_retry: Duration::from_millis(200),
        removal_grace: Duration::from_millis(150),
        doubt: None,
        max_stale: Duration::from_secs(10),
        random: fastrand::Rng::with_seed(1),
    }
}

pub(crate) fn client(url: &str) -> Client {
    Client::new(Consul::new(url)).expect("a client")
}

pub(crate) struct Watching {
    pub(crate) cancel: CancellationToken,
    pub(crate) snapshots: latest::Receiver<Snapshot>,
    events: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
    last: Option<Snapshot>,
}

impl Watching {
    /// Watches the structure of a composite.
    pub(crate) fn start(client: Client, composite: &str, settings: Settings) -> Self {
        let (sink, snapshots) = latest::channel();
        let cancel = CancellationToken::new();
        let events = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&events);
        let observer = move |event: Event<'_>| {
            let text = match event {
                Event::Failed { error, .. } => format!("Failed {}", error.kind()),
                Event::Answered { entries, changed, .. } => format!("Answered {entries} {changed}"),
                other => format!("{other:?}"),
            };
            noted.lock().expect("no test panicked with it").push(text);
        };
        let prefix = setpoint_structure::prefix(composite);
        let task = tokio::spawn(watch(client, prefix, settings, sink, cancel.clone(), observer));
        Self { cancel, snapshots, events, task, last: None }
    }

    pub(crate) fn events(&self) -> Vec<String> {
        self.events.lock().expect("no test panicked with it").clone()
    }

    pub(crate) fn count(&self, start: &str) -> usize {
        self.events().iter().filter(|event| event.starts_with(start)).count()
    }

    /// Waits for an event that begins like this, and that many of them.
    pub(crate) async fn reported(&self, start: &str, times: usize) {
        let seen = async || (self.count(start) >= times).then_some(());
        let in_time = wait::within(LIMIT, seen).await.is_some();
        assert!(in_time, "waited in vain for {times} {start}: {:?}", self.events());
    }

    /// The next snapshot.
    pub(crate) async fn next(&mut self) -> Snapshot {
        let next = tokio::time::timeout(LIMIT, self.snapshots.recv()).await;
        let next = next.unwrap_or_else(|_| panic!("waited in vain for a snapshot: {:?}", self.events()));
        let next = next.expect("it goes on");
        self.last = Some(next.clone());
        next
    }

    /// Waits until the structure is this.
    pub(crate) async fn until(&mut self, composite: &str) {
        let deadline = tokio::time::Instant::now() + LIMIT;
        while self.shown() != Some(composite.to_owned()) {
            match tokio::time::timeout_at(deadline, self.snapshots.recv()).await {
                Ok(Some(next)) => self.last = Some(next),
                _ => panic!("waited in vain for {composite}: {:?} {:?}", self.shown(), self.events()),
            }
        }
    }

    /// What the last snapshot shows.
    pub(crate) fn shown(&self) -> Option<String> {
        let (payload, _) = transform(&self.last.as_ref()?.entries, "OnPrem", None);
        let json = payload.to_json();
        Some(json.strip_prefix(r#"{"cloudProvider":"OnPrem","composite":"#)?.strip_suffix('}')?.to_owned())
    }

    /// Ends the watch; gives a snapshot that was passed on and not taken, if it says something else than the last one.
    pub(crate) async fn end(mut self) -> Option<Snapshot> {
        self.cancel.cancel();
        tokio::time::timeout(LIMIT, self.task).await.expect("it ends").expect("it did not panic");
        let last = self.last.as_ref().map(|last| last.hash);
        self.snapshots.try_recv().filter(|left| Some(left.hash) != last)
    }
}
