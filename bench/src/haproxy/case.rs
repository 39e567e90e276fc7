//! The cases: what each measures, on which configuration, and what it must reach.

use std::fmt::Write as _;

use clap::ValueEnum;

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HaproxyCase {
    /// 5,000 backends with 4 servers each, to a document.
    #[value(name = "lossless-5k")]
    Lossless5k,
    /// 50,000 backends, to a document.
    #[value(name = "lossless-50k")]
    Lossless50k,
    /// A mixed configuration, to a document.
    LosslessMixed,
    /// 5,000 backends, to the typed model.
    #[value(name = "typed-5k")]
    Typed5k,
    /// 20,000 backends, 4.2 MB, to the typed model: what memory is counted for.
    #[value(name = "typed-20k")]
    Typed20k,
    /// 50,000 backends, to the typed model.
    #[value(name = "typed-50k")]
    Typed50k,
    /// A mixed configuration, to the typed model.
    TypedMixed,
    /// Two texts of 5,000 backends with one change, to operations.
    #[value(name = "compare-5k")]
    Compare5k,
    /// A document of 5,000 backends and an edit of it, to operations.
    #[value(name = "compare-edit-5k")]
    CompareEdit5k,
    /// Two texts of 50,000 backends with one change, to operations.
    #[value(name = "compare-50k")]
    Compare50k,
    /// Two mixed texts with one change, to operations.
    CompareMixed,
    /// 5,000 backends, to all that is wrong with them.
    #[value(name = "check-5k")]
    Check5k,
    /// 50,000 backends, to all that is wrong with them.
    #[value(name = "check-50k")]
    Check50k,
    /// A mixed configuration, to all that is wrong with it.
    CheckMixed,
    /// 20,000 rules of one frontend, to all that is wrong with them.
    CheckRules,
    /// 4,000 sections, each with an error, to all that is wrong with them.
    CheckErrors,
    /// A rule put into the middle of 20,000 rules of one frontend.
    EditRules,
    /// A rule put into the middle of 20,000 rules that are not indented.
    EditUnindented,
    /// A rule deleted and put again among 20,000.
    EditDelete,
    /// A backend among 5,000 that is replaced as a whole.
    EditReplace,
    /// A backend among 5,000 that gets another name.
    EditRename,
    /// A server changed among 20,000 servers of one backend.
    EditServers,
    /// A server put into one of 5,000 backends.
    EditBackends,
    /// A setting of a frontend of 20,000 rules.
    EditSettings,
    /// A backend put among 5,000.
    EditSections,
    /// A server changed in each of 50,000 backends.
    #[value(name = "edits-50k")]
    Edits50k,
}

/// What must be reached.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// So many bytes a second, at least.
    Speed(f64),
    /// So many seconds, at most.
    Seconds(f64),
    /// Not longer than `haproxy -c` takes.
    Haproxy,
    /// Nothing was set.
    None,
}

impl HaproxyCase {
    /// How many backends there are, and whether they are mixed with all else.
    pub(super) fn shape(self) -> (u32, bool) {
        match self {
            Self::Lossless5k
            | Self::Typed5k
            | Self::Compare5k
            | Self::CompareEdit5k
            | Self::Check5k
            | Self::EditBackends
            | Self::EditReplace
            | Self::EditRename
            | Self::EditSections => (5_000, false),
            Self::CheckErrors => (4_000, false),
            Self::Typed20k
            | Self::CheckRules
            | Self::EditRules
            | Self::EditUnindented
            | Self::EditDelete
            | Self::EditServers
            | Self::EditSettings => (20_000, false),
            Self::Lossless50k | Self::Typed50k | Self::Compare50k | Self::Check50k | Self::Edits50k => {
                (50_000, false)
            }
            Self::LosslessMixed | Self::TypedMixed | Self::CompareMixed | Self::CheckMixed => (1_000, true),
        }
    }

    pub(super) fn limit(self) -> Limit {
        match self {
            Self::Lossless5k | Self::Lossless50k | Self::LosslessMixed => Limit::Speed(200e6),
            Self::Typed5k | Self::Typed20k | Self::Typed50k | Self::TypedMixed => Limit::Speed(60e6),
            Self::Compare5k => Limit::Seconds(0.015),
            Self::CompareEdit5k => Limit::Seconds(0.001),
            Self::Check5k | Self::Check50k | Self::CheckMixed | Self::CheckRules => Limit::Haproxy,
            Self::EditRules
            | Self::EditUnindented
            | Self::EditDelete
            | Self::EditServers
            | Self::EditBackends
            | Self::EditReplace
            | Self::EditRename
            | Self::EditSettings
            | Self::EditSections => Limit::Seconds(0.0001),
            Self::CheckErrors | Self::Compare50k | Self::CompareMixed | Self::Edits50k => Limit::None,
        }
    }

    /// Returns whether `haproxy -c` does the same: it reads a whole text, and gives up after fifty errors.
    pub(super) fn is_for_haproxy(self) -> bool {
        self != Self::CheckErrors && !matches!(self.limit(), Limit::Seconds(most) if most < 0.001)
    }

    /// The configuration that is measured.
    pub(super) fn text(self, n: u32) -> String {
        match self {
            Self::CheckRules
            | Self::EditRules
            | Self::EditUnindented
            | Self::EditDelete
            | Self::EditSettings => {
                let rules =
                    (0..n).map(|rule| format!("    http-request set-header X-{rule:05} yes if TRUE\n"));
                let text = format!(
                    "frontend f\n    mode http\n    timeout client 1s\n    bind 127.0.0.1:80 name main\n    maxconn 100\n{}",
                    rules.collect::<String>()
                );
                if self == Self::EditUnindented { text.replace("    ", "") } else { text }
            }
            Self::CheckErrors => {
                let broken =
                    |backend: u32| format!("backend b{backend}\n    server s 127.0.0.1:80 bogus\n\n");
                (0..n).map(broken).collect()
            }
            Self::EditServers => {
                let server = |n: u32| {
                    format!("    server s{n:05} 10.0.{}.{}:8080 check weight 1\n", n >> 8 & 255, n & 255)
                };
                format!("backend b\n    balance roundrobin\n{}", (0..n).map(server).collect::<String>())
            }
            _ => configuration(n, self.shape().1),
        }
    }

    /// The most memory that may be in use, where that was set.
    pub(super) fn memory(self) -> Option<u64> {
        (self == Self::Typed20k).then_some(60_000_000)
    }

    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// A configuration of so many backends with four servers each, alone or among all else that a real one has.
pub(super) fn configuration(n: u32, mixed: bool) -> String {
    let mut text = String::from(
        "global\n    maxconn 100000\n    log stdout format raw local0\n\ndefaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n\n",
    );
    if mixed {
        text.push_str(
            "userlist people\n    user ann insecure-password secret\n\nresolvers dns\n    nameserver d1 127.0.0.1:53\n    hold valid 10s\n\ncache assets\n    total-max-size 4\n\n",
        );
    }
    for backend in 0..n {
        // Writing to a string can't fail.
        let _ = writeln!(text, "backend backend_{backend:05}\n    balance roundrobin");
        if mixed {
            text.push_str(
                "    # what the team asked for\n    option httpchk GET /health\n    acl is_api path_beg /api /v1 /v2\n    acl from_inside src 10.0.0.0/8 192.168.0.0/16\n    http-request set-header X-Forwarded-Proto https if { ssl_fc }\n    http-request deny deny_status 403 if is_api !from_inside\n    http-response set-header Strict-Transport-Security \"max-age=31536000; includeSubDomains\"\n    stick-table type ip size 100k expire 30m store http_req_rate(10s)\n    timeout server 1m\n    cookie SRV insert indirect nocache\n    default-server inter 2s fall 3 rise 2\n",
            );
        }
        for server in 0..4 {
            let (a, b) = (backend >> 8 & 255, backend & 255);
            let _ = writeln!(text, "    server s{server} 10.{a}.{b}.{server}:8080 check weight 1");
        }
        text.push('\n');
        if mixed && backend % 10 == 0 {
            let port = 10_000 + backend % 50_000;
            let _ = writeln!(
                text,
                "frontend front_{backend:05}\n    bind 127.0.0.1:{port} name main\n    option httplog\n    declare capture request len 64\n    acl static path_end .css .js .png\n    use_backend backend_{backend:05} if static\n    default_backend backend_{backend:05}\n"
            );
        }
    }
    text
}
