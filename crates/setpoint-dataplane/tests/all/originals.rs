//! Files and many servers at each original that is found: HAProxy reloads as often as the plan says, and no oftener than it has to.

use setpoint_dataplane::client::Capability;
use setpoint_dataplane::files::AuxiliaryFiles;
use setpoint_dataplane::sync::SyncMode;
use setpoint_dataplane::target::Target as _;
use setpoint_testutils::certificates::Authority;
use setpoint_testutils::need;

use crate::files::{as_planned, bring, certificate, cheapest, files};
use crate::sync::{TEXT, is_done, run, target, world_at};
use crate::world::{Place, World};

const FILES: &str = "frontend web\n  bind 127.0.0.1:PORT\n  bind unix@DIR/secure.sock ssl crt DIR/ssl/site.pem ca-file DIR/general/ca.pem verify optional\n  \
                     errorfile 503 DIR/general/503.http\n  http-request deny if { src -f DIR/general/bad.lst }\n  \
                     http-request set-header x-m %[path,map(DIR/maps/used.map)]\n  \
                     http-request set-header x-r %[path,map_reg(DIR/maps/ordered.map)]\n  default_backend app\n\n\
                     backend app\n  balance roundrobin\n  server s1 127.0.0.1:1 weight 10\n";

#[tokio::test]
async fn files_at_each_original_that_is_found_reload_haproxy_only_where_it_can_not_be_told() {
    for place in need!(Place::each_original()) {
        let world = need!(World::start_at(&place, TEXT, Some(7)).await);
        let target = target(&world).await;
        let tells = target.inner.client().capabilities().has(Capability::RuntimeCertificates);
        let text = world.text(FILES);
        let page = |words: &str| format!("HTTP/1.0 503 No\r\n\r\n{words}\n").into_bytes();
        let mut all = AuxiliaryFiles {
            general: files([
                ("503.http", &page("one")),
                ("bad.lst", b"192.0.2.1\n"),
                ("unused.http", b"one"),
            ]),
            maps: files([("used.map", b"/a 1\n/b 2\n/c 3\n"), ("ordered.map", b"^/a a\n. b\n")]),
            certificates: files([("site.pem", &certificate())]),
            ca_files: files([("ca.pem", Authority::new().certificate().as_bytes())]),
            ..AuxiliaryFiles::default()
        };
        bring(&target, &text, &all).await;
        let mut ca = all.ca_files.clone();
        ca.as_mut().unwrap().insert("ca.pem".to_owned(), Authority::new().certificate().into_bytes());
        let of_certificates = u64::from(!tells);
        let steps = [
            (
                "entries",
                0,
                AuxiliaryFiles {
                    maps: files([("used.map", b"/a 1\n/c 4\n/d 5\n"), ("ordered.map", b"^/a a\n. b\n")]),
                    ..AuxiliaryFiles::default()
                },
            ),
            (
                "a value with a blank",
                1,
                AuxiliaryFiles {
                    maps: files([("used.map", b"/a two words\n"), ("ordered.map", b"^/a a\n. b\n")]),
                    ..AuxiliaryFiles::default()
                },
            ),
            (
                "an order",
                1,
                AuxiliaryFiles {
                    maps: files([("used.map", b"/a two words\n"), ("ordered.map", b"^/c c\n^/a a\n. b\n")]),
                    ..AuxiliaryFiles::default()
                },
            ),
            (
                "what nothing names",
                0,
                AuxiliaryFiles {
                    general: files([
                        ("503.http", &page("one")),
                        ("bad.lst", b"192.0.2.1\n"),
                        ("unused.http", b"two"),
                    ]),
                    ..AuxiliaryFiles::default()
                },
            ),
            (
                "patterns",
                1,
                AuxiliaryFiles {
                    general: files([
                        ("503.http", &page("one")),
                        ("bad.lst", b"192.0.2.2\n"),
                        ("unused.http", b"two"),
                    ]),
                    ..AuxiliaryFiles::default()
                },
            ),
            (
                "a page",
                1,
                AuxiliaryFiles {
                    general: files([
                        ("503.http", &page("two")),
                        ("bad.lst", b"192.0.2.2\n"),
                        ("unused.http", b"two"),
                    ]),
                    ..AuxiliaryFiles::default()
                },
            ),
            (
                "a certificate",
                of_certificates,
                AuxiliaryFiles {
                    certificates: files([("site.pem", &certificate())]),
                    ..AuxiliaryFiles::default()
                },
            ),
            ("authorities", of_certificates, AuxiliaryFiles { ca_files: ca, ..AuxiliaryFiles::default() }),
        ];
        for (what, reloads, step) in steps {
            all = AuxiliaryFiles {
                maps: step.maps.or(all.maps),
                general: step.general.or(all.general),
                certificates: step.certificates.or(all.certificates),
                ca_files: step.ca_files.or(all.ca_files),
                crt_lists: None,
            };
            assert_eq!(as_planned(&world, &target, &text, &all).await, reloads, "{place}: {what}");
        }
        // One reload is for all of it.
        all.certificates = files([("site.pem", &certificate())]);
        all.general = files([("503.http", &page("three")), ("bad.lst", b"192.0.2.3\n")]);
        let more = text.replace("weight 10", "weight 20") + "\nbackend more\n  server m1 127.0.0.1:3\n";
        assert_eq!(as_planned(&world, &target, &more, &all).await, 1, "{place}");
        world.end().await;
    }
}

#[tokio::test]
async fn weights_of_many_servers_at_each_original_that_is_found_take_no_reload() {
    for place in need!(Place::each_original()) {
        let (world, target) = need!(world_at(&place).await);
        let text = |weight: u32| {
            let servers = (0..30).fold(String::new(), |text, n| {
                format!("{text}  server m{n:02} 127.0.0.1:9 weight {weight}\n")
            });
            world.text(&format!("{TEXT}\nbackend many\n  balance roundrobin\n{servers}"))
        };
        run(&target, &text(10), &cheapest()).await.unwrap();
        world.settled().await;
        let before = world.reloads();
        let result = run(&target, &text(20), &cheapest()).await.unwrap();
        assert_eq!((result.mode, result.reload_triggered), (SyncMode::Runtime, false), "{place}: {result:?}");
        let weights = target.server_weights().await.unwrap();
        assert!(
            weights.iter().filter(|(key, _)| key.0 == "many").all(|(_, weight)| *weight == 20),
            "{place}"
        );
        is_done(&target, &text(20)).await;
        world.settled().await;
        assert_eq!(world.reloads(), before, "{place}");
        world.end().await;
    }
}
