//! Two data centres, joined over the wide area as far as one machine has any.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::Method;
use serde_json::json;
use setpoint_composite::operator::apply;
use setpoint_consul::{Client, Read, Settings};
use setpoint_structure::declare::{changes, removal};
use setpoint_testutils::wait::LIMIT;
use setpoint_testutils::{Acl, Consul, Port, need, wait};

use crate::watching::{Watching, fast};

#[tokio::test]
async fn another_data_centre_is_read_written_and_watched_through_the_own_one() {
    let (wan_here, wan_there) = (Port::lease(), Port::lease());
    let here = json!({ "datacenter": "dc1", "ports": { "serf_wan": wan_here.number() } });
    let there = json!({
        "datacenter": "dc2", "ports": { "serf_wan": wan_there.number() },
        "retry_join_wan": [wan_here.address().to_string()], "retry_interval_wan": "1s",
    });
    let here = need!(Consul::start_with(Acl::Off, &here).await);
    let there = need!(Consul::start_with(Acl::Off, &there).await);
    let settings = Settings { datacenter: Some("dc2".to_owned()), ..Settings::new(here.url()) };
    let client = Client::new(settings).unwrap();
    let joined = async || {
        let known = here.request(Method::GET, "/v1/catalog/datacenters").send().await.ok()?;
        let known: Vec<String> = known.json().await.ok()?;
        client.list("any/", Read::Default).await.ok().filter(|_| known.len() == 2).map(drop)
    };
    wait::until("the data centres to know each other", LIMIT, joined).await;

    let key = "composite/x/structure/bs/compositeRole".to_owned();
    let declared = BTreeMap::from([(key.clone(), "baseline".to_owned())]);
    apply(&client, &changes(&declared, &BTreeSet::new(), &[])).await.unwrap();
    assert_eq!(there.get(&key).await.unwrap().value.as_deref(), Some("baseline"));
    assert_eq!(here.get(&key).await.unwrap().value, None, "the own data centre is not touched");
    assert_eq!(client.get(&key, Read::Consistent).await.unwrap().unwrap().text(), "baseline");
    assert_eq!(client.read_together(std::slice::from_ref(&key)).await.unwrap().len(), 1);

    let mut watching = Watching::start(client.clone(), "x", fast());
    watching.until(r#"{"baseline":{"origin":"bs"}}"#).await;
    here.put("composite/x/structure/st/compositeRole", "satellite").await.unwrap();
    there.put("composite/x/structure/other/compositeRole", "satellite").await.unwrap();
    watching.until(r#"{"baseline":{"origin":"bs"},"satellites":[{"origin":"other"}]}"#).await;
    watching.end().await;

    let present = client.read([key.as_str()]).await.unwrap();
    apply(&client, &removal(&BTreeSet::from([key.clone()]), &present)).await.unwrap();
    assert_eq!(there.get(&key).await.unwrap().value, None);
}
