//! Configurations that several tests use: written ones, and a generator of new ones.

/// One of each section, in a style as people write it.
pub(crate) const MIXED: &str = include_str!("data/mixed.cfg");

/// Strategies for texts that look like configurations.
pub(crate) mod any {
    use proptest::prelude::*;

    /// A line that is like one of a configuration, or almost.
    pub(crate) fn line() -> impl Strategy<Value = Vec<u8>> {
        let words = prop::sample::select(vec![
            "backend",
            "frontend",
            "defaults",
            "global",
            "listen",
            "\"backend\"",
            "from",
            "server",
            "bind",
            "mode",
            "http-request",
            "deny",
            "if",
            "acl",
            "b",
            "s1",
            "10.0.0.1:80",
            "#",
            "# comment",
            ".if",
            ".else",
            ".endif",
            "nonsense",
            "\"two words\"",
            "'single'",
            "\"${VAR}\"",
            "\\x41",
            "\\",
            "\"",
            "a#b",
            "no",
            "option",
            "httplog",
            "program",
            "waf-global",
            "1s",
            "",
            "\u{0}",
            "é",
        ]);
        let blanks = prop::sample::select(vec![" ", "  ", "\t", "", "    ", "\x0b"]);
        let ends = prop::sample::select(vec!["\n", "\n", "\n", "\r\n", "\r", ""]);
        (prop::collection::vec((blanks, words), 0..6), ends).prop_map(|(words, end)| {
            let mut line: Vec<u8> =
                words.into_iter().flat_map(|(blank, word)| [blank, word]).collect::<String>().into();
            line.extend(end.bytes());
            line
        })
    }

    /// A file of such lines, or of any bytes.
    pub(crate) fn text() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => prop::collection::vec(line(), 0..30).prop_map(|lines| lines.concat()),
            1 => prop::collection::vec(any::<u8>(), 0..200),
        ]
    }

    /// A configuration that is well formed and modelled, with few names so that two of them have much in common.
    pub(crate) fn configuration() -> impl Strategy<Value = String> {
        let tail = prop::collection::vec(prop_oneof![5 => proxy(), 1 => defaults(), 1 => other()], 0..6);
        (global(), tail).prop_map(|(global, tail)| {
            let mut text = global;
            let mut seen = std::collections::HashSet::new();
            let mut named = std::collections::HashSet::new();
            for section in tail {
                let header = section.lines().next().unwrap_or_default().to_owned();
                let words: Vec<&str> = header.split(' ').collect();
                // A name is used once, and what is started from stands before.
                let identity = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
                let from = words.iter().position(|word| *word == "from").and_then(|at| words.get(at + 1));
                let unnamed = header == "defaults";
                if (unnamed || seen.insert(identity)) && from.is_none_or(|from| named.contains(*from)) {
                    if words[0] == "defaults" && words.len() > 1 {
                        named.insert(words[1].to_owned());
                    }
                    text.push_str(&section);
                }
            }
            text
        })
    }

    fn some(lines: Vec<&'static str>, most: usize) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(lines), 0..=most).prop_map(|lines| {
            // Of lines about the same setting only the first is taken.
            let mut seen = std::collections::HashSet::new();
            lines
                .into_iter()
                .filter(|line| seen.insert(line.split(' ').take(2).collect::<Vec<_>>().join(" ")))
                .map(|line| format!("  {line}\n"))
                .collect()
        })
    }

    /// Lines whose order matters and which may repeat.
    fn list(lines: Vec<&'static str>, most: usize) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(lines), 0..=most)
            .prop_map(|lines| lines.into_iter().map(|line| format!("  {line}\n")).collect())
    }

    fn global() -> impl Strategy<Value = String> {
        some(
            vec!["daemon", "maxconn 100", "maxconn 200", "nbthread 4", "log stdout local0", "user haproxy"],
            4,
        )
        .prop_map(|lines| format!("global\n{lines}"))
    }

    fn defaults() -> impl Strategy<Value = String> {
        let header =
            prop::sample::select(vec!["defaults", "defaults d1", "defaults d2", "defaults d2 from d1"]);
        let lines = some(
            vec!["mode http", "mode tcp", "retries 2", "retries 3", "timeout client 5s", "option httplog"],
            3,
        );
        (header, lines).prop_map(|(header, lines)| format!("{header}\n{lines}"))
    }

    fn proxy() -> impl Strategy<Value = String> {
        let from = || prop::sample::select(vec!["", "", "", " from d1", " from d2"]);
        let rules = || {
            list(
                vec![
                    "http-request deny if a",
                    "http-request set-header X-A b",
                    "http-request set-header X-A c",
                    "http-request del-header X-B",
                    "tcp-request content accept if b",
                ],
                5,
            )
        };
        let acls = || {
            list(
                vec!["acl a src 10.0.0.1", "acl a src 10.0.0.2", "acl b path_beg /b", "acl b path_beg /c"],
                4,
            )
        };
        let servers = some(
            vec![
                "server s1 10.0.0.1:80",
                "server s1 10.0.0.1:80 check weight 5",
                "server s2 10.0.0.2:80 cookie two",
                "server s3 10.0.0.3:80 # third",
                "server s2 10.0.0.2:81 backup",
            ],
            4,
        );
        let own = || {
            some(
                vec![
                    "mode http",
                    "mode tcp",
                    "retries 1",
                    "timeout server 7s",
                    "timeout server 9s",
                    "option httplog",
                    "option redispatch",
                    "maxconn 5",
                    "timeout client 3s",
                    "log-format \"%ci %r\"",
                ],
                4,
            )
        };
        let balance = some(
            vec!["balance roundrobin", "balance leastconn", "balance uri whole", "default-server check"],
            2,
        );
        let backend =
            (prop::sample::select(vec!["b1", "b2", "b3"]), from(), own(), balance, acls(), rules(), servers)
                .prop_map(|(name, from, own, balance, acls, rules, servers)| {
                    format!("backend {name}{from}\n{own}{balance}{acls}{rules}{servers}")
                });
        let binds = some(vec!["bind :80 name p", "bind :81 name p", "bind :443 ssl crt x.pem name s"], 2);
        let frontend = (prop::sample::select(vec!["f1", "f2"]), from(), own(), binds, acls(), rules())
            .prop_map(|(name, from, own, binds, acls, rules)| {
                format!("frontend {name}{from}\n{binds}{own}{acls}{rules}")
            });
        prop_oneof![3 => backend, 2 => frontend]
    }

    fn other() -> impl Strategy<Value = String> {
        prop::sample::select(vec![
            "listen l1\n  bind :1\n",
            "listen l1\n  bind :2\n",
            "peers p\n  peer a 10.0.0.1:1\n",
            "peers p\n  peer a 10.0.0.1:2\n  peer b 10.0.0.2:1\n",
            "resolvers r\n  nameserver n 10.0.0.1:53\n",
            "userlist u\n  user a insecure-password b\n",
            "userlist u\n  group g users a\n  user a insecure-password c\n",
            "udp-lb x\n  anything goes\n",
            "backend b3\n  novelty 1\n",
            "backend b3\n  novelty 2\n  retries 1\n",
        ])
        .prop_map(ToOwned::to_owned)
    }
}
