//! Hosts in network namespaces, WireGuard between them, nftables on them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use setpoint_testutils::skips::{SKIPS_VARIABLE, Skip};
use setpoint_testutils::{NetworkNamespace, WireGuard, Workdir, need, wait};

#[tokio::test]
async fn a_packet_crosses_two_namespaces_through_wireguard_and_nftables_drops_one() {
    let (left, right) = (need!(NetworkNamespace::new()), need!(NetworkNamespace::new()));
    left.join("cable", "10.71.0.1/24", &right, "cable", "10.71.0.2/24");
    let (cable, tunnel) = ("10.71.0.2".parse().unwrap(), "10.72.0.2".parse().unwrap());
    assert!(left.reaches(cable));
    assert!(!left.reaches(tunnel), "there is no tunnel yet");

    let one = need!(WireGuard::start(&left, "10.72.0.1/24", 51_820).await);
    let two = need!(WireGuard::start(&right, "10.72.0.2/24", 51_820).await);
    one.add_peer(&two, "10.71.0.2:51820".parse().unwrap(), "10.72.0.2/32");
    two.add_peer(&one, "10.71.0.1:51820".parse().unwrap(), "10.72.0.1/32");
    wait::until("a ping through the tunnel", wait::LIMIT, async || left.reaches(tunnel).then_some(())).await;
    assert!(two.received() > 0, "the ping went through WireGuard");

    let script = format!(
        "table inet test {{ chain input {{ type filter hook input priority 0; policy accept;\n\
         iifname \"{}\" icmp type echo-request counter drop\n}}\n}}\n",
        two.interface()
    );
    right.nft(&script);
    assert!(!left.reaches(tunnel), "nftables drops what comes through the tunnel");
    assert!(left.reaches(cable), "and nothing else");
    let rules = right.nft("list table inet test");
    assert!(!rules.contains("packets 0 ") && rules.contains("drop"), "{rules}");

    let (names, socket) = ([left.name().to_owned(), right.name().to_owned()], two.socket().to_path_buf());
    assert!(socket.exists());
    drop((one, two, left, right));
    assert!(!socket.exists());
    for name in names {
        assert!(!Path::new("/run/netns").join(name).exists());
    }
}

#[test]
fn namespaces_of_processes_that_are_gone_are_swept() {
    let first = need!(NetworkNamespace::new());
    // A name as a process left it that no longer exists: the number is above the kernel's highest limit.
    let stale = Path::new("/run/netns/setpoint-99999999-1");
    std::fs::write(stale, "").unwrap();
    let other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "network::a_namespace_has_a_loopback_interface"])
        .output()
        .unwrap();
    assert!(other.status.success(), "{other:?}");
    assert!(!stale.exists(), "another process that makes a namespace sweeps first");
    assert!(Path::new("/run/netns").join(first.name()).exists(), "and leaves those of the living alone");
}

#[test]
fn a_namespace_has_a_loopback_interface() {
    let host = need!(NetworkNamespace::new());
    assert!(host.reaches("127.0.0.1".parse().unwrap()));
    assert!(!host.reaches("10.71.0.2".parse().unwrap()));
}

#[test]
fn without_root_a_test_is_skipped_and_says_why() {
    need!(NetworkNamespace::new());
    let folder = Workdir::new("skips");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let skips = folder.path().join("skips");
    // Nobody in particular, who may read what root may: the parts and this program can be in root's own folders.
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args(["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "network::a_namespace_has_a_loopback_interface"])
        .env(SKIPS_VARIABLE, &skips)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let skip = Skip {
        test: "all::network::a_namespace_has_a_loopback_interface".into(),
        reason: "a network namespace is not to be had: it takes root".into(),
        lacks: "root".into(),
    };
    assert_eq!(Skip::read_all(&skips).unwrap(), [skip]);
}
