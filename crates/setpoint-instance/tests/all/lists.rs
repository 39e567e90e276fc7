//! Entries of maps and ACLs, replaced in a running HAProxy.

use std::fs;

use setpoint_instance::cli::Request;
use setpoint_instance::runtime::{ListEntry, ListKind, Reply, Worker};
use setpoint_testutils::{Version, need};

use crate::world::World;

#[tokio::test]
async fn all_entries_are_replaced_at_once_and_none_is_lost() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        let path = |name: &str| world.folder.path().join(name);
        let (map, acl) = (path("a.map"), path("b.acl"));
        fs::write(&map, "/old gone\n").unwrap();
        fs::write(&acl, "192.0.2.1\n").unwrap();
        let text = format!(
            "global\n  stats socket {} level admin\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
             frontend f\n  bind {}\n  http-request deny if {{ src -f {} }}\n  http-request set-header x %[path,map({})]\n",
            path("run.sock").display(),
            world.port.address(),
            acl.display(),
            map.display()
        );
        fs::write(world.file(), text).unwrap();
        let haproxy = world.launch().start().await.unwrap();
        let worker = Worker::at(path("run.sock"));
        let list = worker.lists_of(ListKind::Map, &map, world.folder.path()).await.unwrap().pop().unwrap();
        let none = worker.lists_of(ListKind::Map, &path("other.map"), world.folder.path()).await.unwrap();
        assert!(none.is_empty(), "{version:?}");

        // More than fits into a buffer, with all that a value may hold.
        let mut entries: Vec<ListEntry> = (0..3_000)
            .map(|number| ListEntry {
                key: format!("/key{number}"),
                value: Some(format!("two words; {number}")),
            })
            .collect();
        entries.push(ListEntry { key: "/with blank".to_owned(), value: Some("v\\".to_owned()) });
        worker.replace_entries(ListKind::Map, &list, &entries).await.unwrap();
        let shown = async |request: Request| match worker.ask(&request).await.unwrap() {
            Reply::Done(answer) => {
                answer.lines().filter(|line| line.starts_with("0x")).map(str::to_owned).collect()
            }
            Reply::Refused(why) => panic!("{version:?}: {why}"),
        };
        let held: Vec<String> = shown(Request::new("show map").word(&list).unwrap()).await;
        assert_eq!(held.len(), entries.len(), "{version:?}");
        for (held, entry) in held.iter().zip(&entries) {
            let (_, rest) = held.split_once(' ').unwrap();
            assert_eq!(rest, format!("{} {}", entry.key, entry.value.as_ref().unwrap()), "{version:?}");
        }

        let list = worker.lists_of(ListKind::Acl, &acl, world.folder.path()).await.unwrap().pop().unwrap();
        let patterns: Vec<ListEntry> = (1..600)
            .map(|number| ListEntry { key: format!("198.51.{}.{}", number / 250, number % 250), value: None })
            .collect();
        worker.replace_entries(ListKind::Acl, &list, &patterns).await.unwrap();
        let held: Vec<String> = shown(Request::new("show acl").word(&list).unwrap()).await;
        assert_eq!(held.len(), patterns.len(), "{version:?}");

        // What HAProxy refuses leaves all as it was.
        let bad = [patterns[0].clone(), ListEntry { key: "no address".to_owned(), value: None }];
        assert!(worker.replace_entries(ListKind::Acl, &list, &bad).await.is_err(), "{version:?}");
        let held: Vec<String> = shown(Request::new("show acl").word(&list).unwrap()).await;
        assert_eq!(held.len(), patterns.len(), "{version:?}");
        haproxy.stop(std::time::Duration::ZERO).await.unwrap();
    }
}
