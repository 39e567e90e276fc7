//! Changes that begin with more: sections that need a newer HAProxy, lists that stand in them, and what a person seldom writes.

use setpoint_haproxy::model::Version;

use super::cases::Case;

/// What stands below the base, from a version on.
const SECTIONS: &[(Version, &str)] = &[
    (
        Version::V3_0,
        "\nlog-forward forward\n  dgram-bind unix@DIR/relay.sock name d\n  log 127.0.0.1:514 local0\n\n\
         fcgi-app apps\n  docroot /srv\n  index index.php\n  acl static path_beg /s\n\n\
         defaults checked\n  mode http\n  timeout connect 1s\n  timeout client 5s\n  timeout server 5s\n  option httpchk\n  \
         http-check send meth GET uri /up\n\n\
         backend inherits from checked\n  server i1 127.0.0.1:5\n\n\
         backend plain from checked\n  mode tcp\n  option tcp-check\n  tcp-check connect\n  tcp-check expect string OK\n  \
         stick-table type ip size 1k\n  stick match src\n  server p1 127.0.0.1:6\n  server-template t 2 127.0.0.1:7\n",
    ),
    (
        Version::V3_2,
        "\nlog-profile short\n  log-tag short\n  on http-req format \"%ci\"\n\n\
         traces\n  trace h1 sink stderr level user\n",
    ),
];

/// What everything here begins with, at a HAProxy.
pub(super) fn base(base: &str, haproxy: Version) -> String {
    let more = SECTIONS.iter().filter(|(since, _)| haproxy >= *since).map(|(_, text)| *text);
    more.fold(base.to_owned(), |text, more| text + more)
}

/// The changes, from the version on that knows what they change.
pub(super) const CASES: &[(Version, Case)] = &[
    (Version::V3_0, ("log-forward-dgram-bind", &[("relay.sock name d", "other.sock name d")])),
    (
        Version::V3_0,
        (
            "log-forward-bind",
            &[("relay.sock name d\n", "relay.sock name d\n  bind unix@DIR/lf.sock name b\n")],
        ),
    ),
    (
        Version::V3_0,
        (
            "log-forward-log",
            &[(
                "relay.sock name d\n  log 127.0.0.1:514 local0",
                "relay.sock name d\n  log 127.0.0.1:514 local1",
            )],
        ),
    ),
    (Version::V3_0, ("fcgi-app-index", &[("index index.php", "index main.php")])),
    (Version::V3_0, ("fcgi-app-acl", &[("acl static path_beg /s", "acl static path_beg /t")])),
    (Version::V3_0, ("fcgi-app-acl-removed", &[("  acl static path_beg /s\n", "")])),
    (
        Version::V3_0,
        ("defaults-http-check", &[("uri /up\n\nbackend inherits", "uri /ready\n\nbackend inherits")]),
    ),
    (
        Version::V3_0,
        (
            "defaults-acl-and-rules",
            &[(
                "uri /up\n\nbackend inherits",
                "uri /up\n  acl evil path /evil\n  http-request deny if evil\n  http-response set-header x-r 1\n  \
                 http-after-response set-header x-ar 1\n  tcp-request content accept\n  tcp-response content accept\n\n\
                 backend inherits",
            )],
        ),
    ),
    (Version::V3_0, ("tcp-check", &[("expect string OK", "expect string READY")])),
    (
        Version::V3_0,
        ("tcp-check-added", &[("  tcp-check connect\n", "  tcp-check connect\n  tcp-check send PING\n")]),
    ),
    (Version::V3_0, ("stick-match", &[("stick match src", "stick match dst")])),
    (
        Version::V3_0,
        ("server-template", &[("server-template t 2 127.0.0.1:7", "server-template t 3 127.0.0.1:8")]),
    ),
    (Version::V3_0, ("server-template-removed", &[("  server-template t 2 127.0.0.1:7\n", "")])),
    (
        Version::V3_0,
        (
            "frontend-http-after-response",
            &[("  acl local", "  http-after-response set-header x-ar 1\n  acl local")],
        ),
    ),
    (
        Version::V3_0,
        ("frontend-http-response", &[("  acl local", "  http-response set-header x-r 1\n  acl local")]),
    ),
    (
        Version::V3_0,
        (
            "frontend-response-capture",
            &[("  http-request deny", "  declare capture response len 20\n  http-request deny")],
        ),
    ),
    (Version::V3_0, ("frontend-filter", &[("  acl local", "  filter trace name f\n  acl local")])),
    (
        Version::V3_0,
        ("server-disabled-and-moved", &[("s1 127.0.0.1:1 weight 10", "s1 127.0.0.3:1 weight 10 disabled")]),
    ),
    (Version::V3_0, ("peers-section", &[("peers mates\n", "peers mates\n  shards 2\n")])),
    (
        Version::V3_0,
        (
            "peers-table",
            &[(
                "  peer one 127.0.0.1:10000\n",
                "  peer one 127.0.0.1:10000\n  table t type ip size 1k store gpc0\n",
            )],
        ),
    ),
    (
        Version::V3_0,
        (
            "userlist-group-of-a-user",
            &[
                ("group staff users anna", "group staff"),
                ("insecure-password one", "insecure-password one groups staff"),
            ],
        ),
    ),
    (
        Version::V3_0,
        ("resolvers-nameserver", &[("nameserver n1 127.0.0.1:5353", "nameserver n1 127.0.0.1:5399")]),
    ),
    (Version::V3_0, ("mailers-mailer", &[("mailer m1 127.0.0.1:25", "mailer m1 127.0.0.1:2525")])),
    (
        Version::V3_0,
        (
            "backend-http-error",
            &[(
                "  option httpchk\n  http-check send meth GET uri /up\n  server s1",
                "  option httpchk\n  http-error status 503 content-type text/plain string no\n  http-check send meth GET uri /up\n  server s1",
            )],
        ),
    ),
    (Version::V3_2, ("log-profile", &[("on http-req format \"%ci\"", "on http-req format \"%ci %cp\"")])),
    (
        Version::V3_2,
        (
            "log-profile-removed",
            &[("\nlog-profile short\n  log-tag short\n  on http-req format \"%ci\"\n", "")],
        ),
    ),
    (Version::V3_2, ("traces", &[("level user", "level developer")])),
    (Version::V3_2, ("traces-removed", &[("\ntraces\n  trace h1 sink stderr level user\n", "")])),
];
