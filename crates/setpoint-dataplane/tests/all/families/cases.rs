//! The changes: what stands for what in a configuration that has something of most kinds.

/// What everything begins with.
pub(super) const BASE: &str = "userlist people\n  group staff users anna\n  user anna insecure-password one\n\n\
    resolvers dns\n  nameserver n1 127.0.0.1:5353\n\n\
    peers mates\n  peer one 127.0.0.1:10000\n\n\
    mailers post\n  mailer m1 127.0.0.1:25\n\n\
    cache store\n  total-max-size 4\n\n\
    ring log\n  format rfc3164\n  size 32768\n  server r1 127.0.0.1:514\n\n\
    http-errors pages\n  errorfile 503 DIR/503.http\n\n\
    frontend web\n  bind 127.0.0.1:PORT name main\n  acl local src 127.0.0.0/8\n  acl api path_beg /api\n  \
    http-request deny if !local\n  http-request set-header x-a 1\n  http-request set-header x-b 2 if api\n  \
    use_backend other if api\n  default_backend app\n\n\
    backend app\n  balance roundrobin\n  option httpchk\n  http-check send meth GET uri /up\n  \
    server s1 127.0.0.1:1 weight 10\n  server s2 127.0.0.1:2 weight 10\n\n\
    backend other\n  balance roundrobin\n  server o1 127.0.0.1:3\n";

/// A change: its name, and what stands for what in the base. An empty text is put at the end.
pub(super) type Case = (&'static str, &'static [(&'static str, &'static str)]);

const S2: &str = "  server s2 127.0.0.1:2 weight 10\n";

pub(super) const CASES: &[Case] = &[
    ("server-weight", &[("s1 127.0.0.1:1 weight 10", "s1 127.0.0.1:1 weight 30")]),
    ("server-address", &[("s1 127.0.0.1:1 ", "s1 127.0.0.2:1 ")]),
    ("server-port", &[("s1 127.0.0.1:1 ", "s1 127.0.0.1:9 ")]),
    ("server-maintenance", &[("s1 127.0.0.1:1 weight 10", "s1 127.0.0.1:1 weight 10 disabled")]),
    ("server-check", &[("s1 127.0.0.1:1 weight 10", "s1 127.0.0.1:1 weight 10 check inter 5s")]),
    ("server-backup", &[("s1 127.0.0.1:1 weight 10", "s1 127.0.0.1:1 weight 10 backup")]),
    ("server-maxconn", &[("s1 127.0.0.1:1 weight 10", "s1 127.0.0.1:1 weight 10 maxconn 50")]),
    ("server-added", &[(S2, "  server s2 127.0.0.1:2 weight 10\n  server s3 127.0.0.1:4 weight 5\n")]),
    ("server-added-first", &[("  server s1 ", "  server s0 127.0.0.1:4\n  server s1 ")]),
    ("server-removed", &[(S2, "")]),
    ("server-renamed", &[("server s2 ", "server s9 ")]),
    (
        "servers-all-replaced",
        &[
            ("server s1 127.0.0.1:1", "server a 127.0.0.1:5"),
            ("server s2 127.0.0.1:2", "server b 127.0.0.1:6"),
        ],
    ),
    (
        "servers-mixed",
        &[("s1 127.0.0.1:1 weight 10", "s1 127.0.0.1:1 weight 30"), (S2, "  server s3 127.0.0.1:4\n")],
    ),
    (
        "servers-swapped",
        &[
            ("server s1 127.0.0.1:1", "server T 127.0.0.1:1"),
            ("server s2 127.0.0.1:2", "server s1 127.0.0.1:1"),
            ("server T 127.0.0.1:1", "server s2 127.0.0.1:2"),
        ],
    ),
    ("server-template", &[(S2, "  server s2 127.0.0.1:2 weight 10\n  server-template t 3 127.0.0.1:7\n")]),
    ("backend-added", &[("", "\nbackend more\n  balance leastconn\n  server m1 127.0.0.1:8\n")]),
    (
        "backends-added",
        &[("", "\nbackend more\n  server m1 127.0.0.1:8\n\nbackend most\n  server m1 127.0.0.1:8\n")],
    ),
    ("backend-without-servers", &[("", "\nbackend more\n  http-request return status 404\n")]),
    (
        "backend-removed",
        &[
            ("  use_backend other if api\n", ""),
            ("\nbackend other\n  balance roundrobin\n  server o1 127.0.0.1:3\n", ""),
        ],
    ),
    ("backend-balance", &[("backend app\n  balance roundrobin", "backend app\n  balance leastconn")]),
    (
        "backend-mode",
        &[
            ("backend other\n  balance roundrobin", "backend other\n  mode tcp\n  balance roundrobin"),
            ("  use_backend other if api\n", ""),
        ],
    ),
    (
        "backend-timeouts",
        &[("  option httpchk\n", "  option httpchk\n  timeout server 9s\n  timeout queue 2s\n")],
    ),
    (
        "backend-cookie",
        &[
            ("  option httpchk\n", "  option httpchk\n  cookie SRV insert indirect nocache\n"),
            ("s1 127.0.0.1:1 weight 10", "s1 127.0.0.1:1 weight 10 cookie one"),
        ],
    ),
    (
        "backend-acl",
        &[("  option httpchk\n", "  option httpchk\n  acl bad path /bad\n  http-request deny if bad\n")],
    ),
    (
        "backend-http-response",
        &[("  option httpchk\n", "  option httpchk\n  http-response set-header x-r 1\n")],
    ),
    (
        "backend-http-after-response",
        &[("  option httpchk\n", "  option httpchk\n  http-after-response set-header x-r 1\n")],
    ),
    ("backend-tcp-request", &[("  option httpchk\n", "  option httpchk\n  tcp-request content accept\n")]),
    ("backend-tcp-response", &[("  option httpchk\n", "  option httpchk\n  tcp-response content accept\n")]),
    ("backend-log", &[("  option httpchk\n", "  option httpchk\n  log 127.0.0.1:514 local0\n")]),
    (
        "backend-stick",
        &[("  option httpchk\n", "  option httpchk\n  stick-table type ip size 1k\n  stick on src\n")],
    ),
    (
        "backend-use-server",
        &[("  option httpchk\n", "  option httpchk\n  use-server s1 if { src 10.0.0.1 }\n")],
    ),
    ("backend-filter", &[("  option httpchk\n", "  option httpchk\n  filter trace\n")]),
    ("backend-http-check", &[("uri /up", "uri /ready")]),
    ("backend-http-check-added", &[("uri /up\n", "uri /up\n  http-check expect status 200\n")]),
    ("frontend-added", &[("", "\nfrontend more\n  bind unix@DIR/more.sock\n  default_backend app\n")]),
    ("frontend-bind-added", &[("name main\n", "name main\n  bind unix@DIR/second.sock name second\n")]),
    ("frontend-timeout", &[("  acl local", "  timeout client 9s\n  acl local")]),
    ("frontend-default-backend", &[("  default_backend app\n", "  default_backend other\n")]),
    ("frontend-switching", &[("use_backend other if api", "use_backend other if api or { path /x }")]),
    ("frontend-capture", &[("  http-request deny", "  declare capture request len 20\n  http-request deny")]),
    ("frontend-log", &[("  acl local", "  log 127.0.0.1:514 local0\n  acl local")]),
    (
        "frontend-tcp-request",
        &[("  http-request deny", "  tcp-request connection accept if local\n  http-request deny")],
    ),
    (
        "acl-renamed",
        &[
            ("acl api ", "acl rest "),
            ("if api\n  use_backend other if api", "if rest\n  use_backend other if rest"),
        ],
    ),
    ("acl-replaced", &[("path_beg /api", "path_beg /v2")]),
    (
        "acls-reordered",
        &[(
            "  acl local src 127.0.0.0/8\n  acl api path_beg /api\n",
            "  acl api path_beg /api\n  acl local src 127.0.0.0/8\n",
        )],
    ),
    (
        "acl-of-two-lines",
        &[("  acl api path_beg /api\n", "  acl api path_beg /api\n  acl api path_beg /v2\n")],
    ),
    (
        "rule-on-top",
        &[(
            "  http-request deny if !local",
            "  http-request set-var(txn.a) int(1)\n  http-request deny if !local",
        )],
    ),
    (
        "rule-in-the-middle",
        &[(
            "  http-request set-header x-b",
            "  http-request set-header x-m 3\n  http-request set-header x-b",
        )],
    ),
    ("rule-removed-in-the-middle", &[("  http-request set-header x-a 1\n", "")]),
    (
        "rules-reordered",
        &[(
            "  http-request set-header x-a 1\n  http-request set-header x-b 2 if api\n",
            "  http-request set-header x-b 2 if api\n  http-request set-header x-a 1\n",
        )],
    ),
    ("global-maxconn", &[("global\n", "global\n  maxconn 500\n")]),
    ("global-log", &[("global\n", "global\n  log 127.0.0.1:514 local0\n")]),
    ("defaults-timeouts", &[("  timeout connect 1s", "  timeout connect 2s\n  timeout check 3s")]),
    (
        "defaults-log-and-error",
        &[(
            "  mode http\n",
            "  mode http\n  log global\n  http-error status 503 content-type text/plain string no\n",
        )],
    ),
    ("userlist-group", &[("group staff users anna", "group staff users anna\n  group crew")]),
    (
        "userlist-user",
        &[(
            "user anna insecure-password one",
            "user anna insecure-password two\n  user bert insecure-password b",
        )],
    ),
    (
        "resolvers",
        &[(
            "  nameserver n1 127.0.0.1:5353\n",
            "  nameserver n1 127.0.0.1:5353\n  nameserver n2 127.0.0.1:5354\n  hold valid 5s\n",
        )],
    ),
    (
        "peers",
        &[("  peer one 127.0.0.1:10000\n", "  peer one 127.0.0.1:10000\n  peer mate 127.0.0.1:10001\n")],
    ),
    (
        "mailers",
        &[(
            "  mailer m1 127.0.0.1:25\n",
            "  mailer m1 127.0.0.1:25\n  mailer m2 127.0.0.1:26\n  timeout mail 9s\n",
        )],
    ),
    ("cache", &[("total-max-size 4", "total-max-size 8\n  max-age 60")]),
    ("ring", &[("  server r1 127.0.0.1:514\n", "  server r1 127.0.0.1:515\n")]),
    ("ring-removed", &[("ring log\n  format rfc3164\n  size 32768\n  server r1 127.0.0.1:514\n\n", "")]),
    (
        "http-errors",
        &[("  errorfile 503 DIR/503.http\n", "  errorfile 503 DIR/503.http\n  errorfile 500 DIR/503.http\n")],
    ),
    ("log-forward", &[("", "\nlog-forward relay\n  dgram-bind 127.0.0.1:PORT\n  log ring@log local0\n")]),
    ("fcgi-app", &[("", "\nfcgi-app php\n  docroot /srv\n  index index.php\n")]),
    ("crt-store", &[("", "\ncrt-store certs\n  crt-base DIR/ssl\n")]),
    ("listen", &[("", "\nlisten both\n  bind unix@DIR/both.sock\n  server l1 127.0.0.1:4\n")]),
    ("conditional", &[("", "\n.if version_atleast(2.6)\nbackend cond\n  server c1 127.0.0.1:4\n.endif\n")]),
    ("comment", &[("  balance roundrobin\n  option", "  balance roundrobin # why\n  option")]),
];
