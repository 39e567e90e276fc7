//! Every operation of the specifications is routed.

use std::collections::BTreeSet;
use std::time::Duration;

use setpoint_dataplane_api::Dialect;
use setpoint_haproxy::model::Version;
use setpoint_testutils::need;

use crate::world::{Plan, World};

/// The operations of a dialect, as its specification has them.
fn specified(dialect: Dialect) -> BTreeSet<(String, String)> {
    let rows = include_str!("../data/operations.txt").lines().filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| {
        let [first, last, method, path] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let versions: [Version; 2] = [first.parse().unwrap(), last.parse().unwrap()];
        (versions[0]..=versions[1]).contains(&dialect.version()).then(|| (path.to_owned(), method.to_owned()))
    });
    rows.collect()
}

#[tokio::test]
async fn every_operation_of_the_specifications_is_routed_and_none_beyond_but_our_own() {
    for dialect in Dialect::ALL {
        let plan = Plan { dialect, delay: Duration::from_millis(100), ..Plan::default() };
        let world = need!(
            World::start(&plan, |_, ports| format!(
                "defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\nfrontend f\n  bind {}\n",
                ports[0].address()
            ))
            .await
        );
        let routed: BTreeSet<(String, String)> =
            world.api.operations().into_iter().map(|(path, method)| (path, method.to_owned())).collect();
        let specified = specified(dialect);
        let missing: Vec<_> = specified.difference(&routed).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", dialect.version());
        let own = routed.difference(&specified);
        // A `listen` has what a frontend and a backend have.
        let (listens, own): (Vec<_>, Vec<_>) = own.partition(|(path, _)| path.contains("/listens"));
        for (path, method) in &listens {
            let is_there = |section: &str| {
                let path = path.replace("/listens", section);
                specified.contains(&(path, method.clone()))
            };
            let is_known = is_there("/frontends") || is_there("/backends");
            assert!(is_known, "{}: {method} {path}", dialect.version());
        }
        assert!(listens.len() > 50, "{}: {}", dialect.version(), listens.len());
        let own: Vec<String> = own.iter().map(|(path, method)| format!("{method} {path}")).collect();
        assert_eq!(
            own,
            [
                "GET /services/haproxy/events",
                "POST /services/haproxy/reloads",
                "GET /services/haproxy/transactions/{id}/diff"
            ],
            "{}",
            dialect.version()
        );
        world.end().await;
    }
}
