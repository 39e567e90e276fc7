//! Files that the configuration uses are replaced only by what HAProxy accepts, and not deleted, however they are named.

use std::fs;

use serde_json::json;
use setpoint_instance::cli::Request as CliRequest;
use setpoint_instance::runtime::Reply;
use setpoint_testutils::{Missing, need};

use crate::found::{answer, ask, request};
use crate::world::{Plan, World, certificate};

/// A world in which files are used in all ways: by their paths, below a base, by a list, in a folder.
async fn world() -> Result<World, Missing> {
    World::start(&Plan::default(), |folder, ports| {
        fs::create_dir(folder.join("more")).unwrap();
        fs::create_dir(folder.join("other")).unwrap();
        for name in ["ssl/listed.pem", "ssl/based.pem", "ssl/unused.pem", "ssl/www.example.test.pem"] {
            fs::write(folder.join(name), certificate('a')).unwrap();
        }
        fs::write(folder.join("maps/ip.map"), "192.0.2.1 a\n").unwrap();
        let folder = folder.display();
        fs::write(format!("{folder}/other/list"), format!("{folder}/ssl/listed.pem [alpn h2] a.test\n")).unwrap();
        format!(
            "global\n  stats socket {folder}/run.sock level admin\n  crt-base {folder}/ssl\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
             frontend f\n  bind {}\n  http-request set-header x %[src,map_ip({folder}/maps/ip.map,-)]\n  http-request set-header y %[path,map(maps/routes.map,-)]\n\
             frontend s\n  bind {} ssl crt-list {folder}/other/list\n  bind {} ssl crt based.pem\n",
            ports[0].address(),
            ports[1].address(),
            ports[2].address()
        )
    })
    .await
}

async fn put(world: &World, path: &str, text: String) -> (u16, String) {
    let request = request(world, "PUT", &format!("/services/haproxy/storage/{path}"));
    let (status, _, body) = answer(request.header("content-type", "text/plain").body(text)).await;
    (status, body)
}

fn read(world: &World, name: &str) -> String {
    fs::read_to_string(world.folder.path().join(name)).unwrap()
}

/// A certificate with the key of another one.
fn mismatched() -> String {
    let key = certificate('b');
    let at = key.find("-----BEGIN PRIVATE KEY").unwrap();
    let one = certificate('a');
    let end = one.find("-----BEGIN PRIVATE KEY").unwrap();
    format!("{}{}", &one[..end], &key[at..])
}

#[tokio::test]
async fn a_file_with_which_haproxy_would_not_load_is_refused_and_never_stands_in_its_place() {
    let world = need!(world().await);
    for (path, name, bad) in [
        ("maps/ip.map", "maps/ip.map", "nonsense x\n".to_owned()),
        ("ssl_certificates/based.pem", "ssl/based.pem", mismatched()),
        ("ssl_certificates/listed.pem", "ssl/listed.pem", mismatched()),
    ] {
        let before = read(&world, name);
        let inode = |name: &str| {
            use std::os::unix::fs::MetadataExt;
            fs::metadata(world.folder.path().join(name)).unwrap().ino()
        };
        let file = inode(name);
        let (status, body) = put(&world, path, bad).await;
        assert_eq!(status, 400, "{path}: {body}");
        assert!(!body.contains("/aside/"), "{path}: {body}");
        assert_eq!((read(&world, name), inode(name)), (before, file), "{path}");
    }
    // What nothing uses is nobody's concern but the client's.
    assert_eq!(put(&world, "ssl_certificates/unused.pem", mismatched()).await.0, 202);
    let (status, body) = put(&world, "maps/ip.map", "192.0.2.2 b\n".to_owned()).await;
    assert_eq!(status, 204, "{body}");
    assert_eq!(read(&world, "maps/ip.map"), "192.0.2.2 b\n");
    let (status, body) = put(&world, "ssl_certificates/listed.pem", certificate('b')).await;
    assert_eq!(status, 200, "{body}");
    world.settled().await;
    // Nothing is left of what was checked.
    assert!(!world.api.instance().settings().folder.join("aside").exists());
    world.end().await;
}

#[tokio::test]
async fn a_file_that_is_used_is_not_deleted_however_it_is_named() {
    let world = need!(world().await);
    for path in
        ["maps/ip.map", "maps/routes.map", "ssl_certificates/based.pem", "ssl_certificates/listed.pem"]
    {
        let (status, _, body) = ask(&world, "DELETE", &format!("storage/{path}"), None).await;
        assert_eq!(status, 409, "{path}: {body}");
    }
    let (_, _, body) = ask(&world, "DELETE", "storage/ssl_certificates/listed.pem", None).await;
    assert!(body.contains("other/list at line 1"), "{body}");
    let (status, _, _) = ask(&world, "DELETE", "storage/ssl_certificates/www.example.test.pem", None).await;
    assert_eq!(status, 202);
    world.end().await;
}

#[tokio::test]
async fn a_value_that_looks_like_the_beginning_of_a_payload_is_a_value() {
    let world = need!(world().await);
    let entry = json!({ "key": "192.0.2.9", "value": "<<" });
    let path = "runtime/maps/ip.map/entries";
    let (status, _, body) = ask(&world, "POST", path, Some(entry)).await;
    assert_eq!(status, 201, "{body}");
    let (_, _, body) = ask(&world, "GET", path, None).await;
    assert!(body.contains("\"value\":\"<<\""), "{body}");
    world.end().await;
}

#[tokio::test]
async fn a_listen_section_is_an_object_with_what_frontends_and_backends_have() {
    let world = need!(world().await);
    let bind = world.ports[3].address();
    let listen =
        json!({ "name": "shop", "mode": "tcp", "balance": { "algorithm": "roundrobin" }, "maxconn": 100 });
    let (status, _, body) =
        ask(&world, "POST", "configuration/listens?version=1", Some(listen.clone())).await;
    assert_eq!(status, 202, "{body}");
    let one = json!({ "name": "b1", "address": bind.ip().to_string(), "port": bind.port() });
    let (status, _, body) =
        ask(&world, "POST", "configuration/listens/shop/binds?version=2", Some(one)).await;
    assert_eq!(status, 202, "{body}");
    let server = json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": 5 });
    let (status, _, body) =
        ask(&world, "POST", "configuration/listens/shop/servers?version=3&force_reload=true", Some(server))
            .await;
    assert_eq!(status, 201, "{body}");
    let text = fs::read_to_string(world.file()).unwrap();
    let section = text.split_once("listen shop\n").unwrap().1;
    for line in [
        "mode tcp",
        "maxconn 100",
        "balance roundrobin",
        "server s1 127.0.0.1:9 weight 5",
        &format!("bind {bind} name b1"),
    ] {
        assert!(section.contains(line), "{line} in {section}");
    }
    // A server of it is told at runtime, as one of a backend is.
    let server = json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": 6 });
    let (status, reload, body) =
        ask(&world, "PUT", "configuration/listens/shop/servers/s1?version=4", Some(server)).await;
    assert_eq!((status, reload), (200, None), "{body}");
    assert!(world.api.instance().differences().await.unwrap().is_empty());
    let (status, _, body) = ask(&world, "GET", "configuration/listens?full_section=true", None).await;
    assert_eq!(status, 200);
    for part in ["\"shop\"", "\"b1\"", "\"s1\"", "roundrobin"] {
        assert!(body.contains(part), "{part} in {body}");
    }
    let renamed = json!({ "name": "shop", "mode": "http" });
    let (status, _, body) = ask(&world, "PUT", "configuration/listens/shop?version=5", Some(renamed)).await;
    assert_eq!(status, 202, "{body}");
    let (status, _, body) = ask(&world, "GET", "configuration/listens/nowhere", None).await;
    assert_eq!(status, 404, "{body}");
    let (status, _, body) = ask(&world, "POST", "configuration/listens?version=6", Some(json!({}))).await;
    assert_eq!(status, 422, "{body}");
    let (status, _, body) = ask(&world, "DELETE", "configuration/listens/shop?version=6", None).await;
    assert_eq!(status, 202, "{body}");
    assert!(!fs::read_to_string(world.file()).unwrap().contains("listen shop"));
    world.end().await;
}

#[tokio::test]
async fn a_file_that_is_named_in_several_ways_is_told_by_each_of_its_names() {
    let plan = Plan::default();
    let world = World::start(&plan, |folder, ports| {
        std::os::unix::fs::symlink(folder.join("maps/routes.map"), folder.join("linked.map")).unwrap();
        fs::write(folder.join("ssl/relative.pem"), certificate('a')).unwrap();
        let folder = folder.display();
        format!(
            "global\n  stats socket {folder}/run.sock level admin\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
             frontend f\n  bind {}\n  http-request set-header a %[path,map({folder}/maps/routes.map)]\n  http-request set-header b %[path,map(maps/routes.map)]\n  http-request set-header c %[path,map(linked.map)]\n\
             frontend s\n  bind {} ssl crt {folder}/ssl/site.pem\n  bind {} ssl crt ssl/site.pem\n  bind {} ssl crt ssl/relative.pem\n",
            ports[0].address(),
            ports[1].address(),
            ports[2].address(),
            ports[3].address()
        )
    });
    let world = need!(world.await);
    let show = async |command: &'static str, name: &str| {
        let command = CliRequest::new(command).word(name).unwrap();
        match world.api.instance().worker().ask(&command).await.unwrap() {
            Reply::Done(answer) => answer,
            Reply::Refused(why) => panic!("{command}: {why}"),
        }
    };
    let folder = world.folder.path().display().to_string();
    let (status, body) = put(&world, "maps/routes.map", "/new be\n".to_owned()).await;
    assert_eq!(status, 204, "{body}");
    for name in [&format!("{folder}/maps/routes.map"), "maps/routes.map", "linked.map"] {
        let held = show("show map", name).await;
        assert!(held.contains("/new be") && !held.contains("/one"), "{name}: {held}");
    }
    for (file, names) in [
        ("site.pem", vec![format!("{folder}/ssl/site.pem"), "ssl/site.pem".to_owned()]),
        ("relative.pem", vec!["ssl/relative.pem".to_owned()]),
    ] {
        let (status, body) = put(&world, &format!("ssl_certificates/{file}"), certificate('b')).await;
        assert_eq!(status, 200, "{file}: {body}");
        for name in names {
            let held = show("show ssl cert", &name).await;
            assert!(held.contains("CN=b.example.test"), "{name}: {held}");
        }
    }
    world.end().await;
}

#[tokio::test]
async fn a_map_that_the_configuration_names_is_neither_deleted_nor_cleared_by_force() {
    let world = need!(world().await);
    let map = "runtime/maps/ip.map";
    let (status, _, body) = ask(&world, "DELETE", &format!("{map}?forceDelete=true"), None).await;
    assert_eq!(status, 409, "{body}");
    assert!(body.contains("referenced in haproxy conf"), "{body}");
    assert_eq!(read(&world, "maps/ip.map"), "192.0.2.1 a\n");
    let (_, _, body) = ask(&world, "GET", &format!("{map}/entries"), None).await;
    assert!(body.contains("192.0.2.1"), "{body}");
    // One that HAProxy holds and no line names any more goes.
    let text = read(&world, "haproxy.cfg");
    let line = text.lines().find(|line| line.contains("ip.map")).unwrap().to_owned();
    fs::write(world.file(), text.replace(&format!("{line}\n"), "")).unwrap();
    let (status, _, body) = ask(&world, "DELETE", &format!("{map}?forceDelete=true"), None).await;
    assert_eq!(status, 204, "{body}");
    assert!(!world.folder.path().join("maps/ip.map").exists());
    world.end().await;
}

/// As a map HAProxy may be told of it, and all else stays what it was.
#[tokio::test]
async fn a_file_that_is_a_map_here_and_something_else_there_comes_with_a_reload() {
    for (other, use_of_it) in [
        ("patterns behind a link", "http-request deny if { path -f DIR/linked.lst }"),
        ("a page", "errorfile 503 DIR/maps/both.map"),
    ] {
        let plan = Plan::default();
        let world = World::start(&plan, |folder, ports| {
            fs::write(folder.join("maps/both.map"), page("one")).unwrap();
            std::os::unix::fs::symlink(folder.join("maps/both.map"), folder.join("linked.lst")).unwrap();
            let text = format!(
                "global\n  stats socket DIR/run.sock level admin\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  \
                 timeout server 5s\nfrontend f\n  bind {}\n  {use_of_it}\n  http-request set-header x %[path,map(DIR/maps/both.map,-)]\n",
                ports[0].address()
            );
            text.replace("DIR", &folder.display().to_string())
        });
        let world = need!(world.await);
        let (status, body) = put(&world, "maps/both.map", page("two")).await;
        assert_eq!(status, 202, "{other}: {body}");
        world.settled().await;
        world.end().await;
    }
}

/// A page for errors whose lines are entries of a map as well.
fn page(words: &str) -> String {
    format!("HTTP/1.0 503 No\r\nx-a: {words}\r\n\r\n")
}
