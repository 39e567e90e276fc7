use fastrand::Rng;
use proptest::prelude::{Just, Strategy, any};
use proptest::{prop_assert_eq, prop_oneof, proptest};

use super::*;

type Message = (u8, u32);

fn bus() -> Bus<Message> {
    Bus::new(100, Rng::with_seed(7))
}

fn publish(bus: &Bus<Message>, key: u8, value: u32) {
    bus.publish(Correlation(u64::from(value)), (key, value));
}

fn all(mailbox: &mut Mailbox<u8, u32>) -> Vec<u32> {
    std::iter::from_fn(|| mailbox.try_recv()).map(|received| received.message).collect()
}

#[tokio::test]
async fn nothing_is_passed_on_before_the_start_and_then_everything_in_its_order() {
    let bus = Bus::new(1, Rng::with_seed(7));
    let mut mailbox = bus.subscribe(|&(key, value): &Message| Some((key, value)));
    let mut observer = bus.observe(1000);
    for value in 0..200 {
        bus.publish(bus.correlation(), (0, value));
    }
    assert!(mailbox.try_recv().is_none());
    bus.start();
    let newest = mailbox.recv().await.unwrap();
    assert_eq!((newest.message, newest.replaced), (199, 199), "more than it had room for at first");
    for value in 0..200 {
        let event = observer.recv().await.unwrap();
        assert_eq!((event.event, event.number), ((0, value), u64::from(value) + 1));
    }
    assert_eq!(observer.dropped(), 0);
    publish(&bus, 1, 7);
    assert_eq!(mailbox.recv().await.unwrap().message, 7);
}

#[tokio::test]
async fn who_subscribes_after_the_start_gets_what_comes_after() {
    let bus = bus();
    publish(&bus, 0, 1);
    bus.start();
    let mut late = bus.subscribe(|&(key, value): &Message| Some((key, value)));
    publish(&bus, 0, 2);
    assert_eq!(all(&mut late), [2]);
}

#[tokio::test]
async fn a_message_has_the_correlation_of_the_newest_event_that_led_to_it() {
    let bus = bus();
    bus.start();
    let mut mailbox = bus.subscribe(|&(key, value): &Message| Some((key, value)));
    let (first, second) = (bus.correlation(), bus.correlation());
    assert_ne!(first, second);
    bus.publish(first, (0, 1));
    bus.publish(second, (0, 2));
    assert_eq!(mailbox.recv().await.unwrap().correlation, second);
    assert_eq!(second.to_string().parse(), Ok(second));
}

#[tokio::test]
async fn a_slow_observer_keeps_the_last_events_and_knows_how_many_it_missed() {
    let bus = bus();
    bus.start();
    let mut slow = bus.observe(3);
    for value in 0..10 {
        publish(&bus, 0, value);
    }
    bus.close();
    let mut seen = Vec::new();
    while let Some(event) = slow.recv().await {
        seen.push(event.event.1);
    }
    assert_eq!((seen, slow.dropped(), bus.counts().dropped), (vec![7, 8, 9], 7, 7));
}

#[tokio::test]
async fn what_nobody_takes_any_more_is_dropped_with_its_subscriber() {
    let bus = Bus::new(1, Rng::with_seed(7));
    bus.start();
    let mailbox = bus.subscribe(|event: &Arc<u8>| Some(((), Arc::clone(event))));
    let (event, observer) = (Arc::new(1), bus.observe(10));
    bus.publish(bus.correlation(), Arc::clone(&event));
    assert_eq!((bus.counts().subscribers, Arc::strong_count(&event)), (2, 3));
    drop((mailbox, observer));
    assert_eq!(Arc::strong_count(&event), 1);
    bus.publish(bus.correlation(), Arc::clone(&event));
    assert_eq!((bus.counts().subscribers, Arc::strong_count(&event)), (0, 1));
}

#[tokio::test]
async fn a_closed_bus_gives_what_is_left_and_ends() {
    let bus = bus();
    let mut mailbox = bus.subscribe(|&(key, value): &Message| Some((key, value)));
    bus.start();
    publish(&bus, 0, 1);
    bus.close();
    publish(&bus, 0, 2);
    assert_eq!(mailbox.recv().await.unwrap().message, 1);
    assert_eq!(mailbox.recv().await, None);
    assert_eq!(bus.observe(1).recv().await.map(|event| event.event), None);
}

struct Asked(Reply<u32>);

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_all_who_are_expected_and_no_longer_than_its_time() {
    let bus = Bus::new(1, Rng::with_seed(7));
    bus.start();
    let mut asked: Vec<_> = (0..2).map(|_| bus.subscribe(|Asked(reply)| Some(((), reply.clone())))).collect();
    let answering = async {
        asked[0].recv().await.unwrap().message.send("a", 1);
        // The second one holds on to the question, and does not answer.
        asked[1].recv().await.unwrap().message
    };
    let began = Instant::now();
    let limit = Duration::from_secs(5);
    let request = bus.request(bus.correlation(), &["a", "b"], limit, Asked);
    let (answers, held) = tokio::join!(request, answering);
    assert_eq!((answers.given, answers.missing), ([("a", 1)].into(), vec!["b"]));
    assert_eq!(began.elapsed(), limit);
    drop(held);

    let answering = async {
        asked[0].recv().await.unwrap().message.send("a", 1);
        asked[1].recv().await.unwrap().message.send("b", 2);
    };
    let request = bus.request(bus.correlation(), &["a", "b"], limit, Asked);
    let (answers, ()) = tokio::join!(request, answering);
    assert_eq!((answers.given.len(), answers.missing.len()), (2, 0));
    assert_eq!(began.elapsed(), limit, "nobody was waited for");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_can_answer_any_more_ends_at_once() {
    let bus = Bus::new(1, Rng::with_seed(7));
    bus.start();
    let asked = bus.subscribe(|Asked(reply)| Some(((), reply.clone())));
    drop(asked);
    let answers = bus.request(bus.correlation(), &["a"], Duration::from_hours(1), Asked).await;
    assert_eq!(answers.missing, ["a"]);
}

#[derive(Clone, Debug)]
enum Step {
    Publish(u8, u32),
    Start,
    Take,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..4u8, any::<u32>()).prop_map(|(key, value)| Step::Publish(key, value)),
        1 => Just(Step::Start),
        2 => Just(Step::Take),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    /// The model: of each key the newest message, in the order in which these were published.
    #[test]
    fn a_mailbox_holds_the_newest_message_of_each_key(steps in steps()) {
        let bus = bus();
        let mut mailbox = bus.subscribe(|&(key, value): &Message| (key > 0).then_some((key, value)));
        let (mut started, mut early, mut waiting) = (false, Vec::new(), Vec::<Message>::new());
        let put = |waiting: &mut Vec<Message>, message: Message| {
            if message.0 > 0 {
                waiting.retain(|before| before.0 != message.0);
                waiting.push(message);
            }
        };
        for step in steps {
            match step {
                Step::Publish(key, value) => {
                    publish(&bus, key, value);
                    if started { put(&mut waiting, (key, value)) } else { early.push((key, value)) }
                }
                Step::Start => {
                    bus.start();
                    started = true;
                    early.drain(..).for_each(|message| put(&mut waiting, message));
                }
                Step::Take => {
                    let wanted = (!waiting.is_empty()).then(|| waiting.remove(0).1);
                    prop_assert_eq!(mailbox.try_recv().map(|received| received.message), wanted);
                }
            }
        }
        prop_assert_eq!(all(&mut mailbox), waiting.iter().map(|message| message.1).collect::<Vec<_>>());
    }
}
