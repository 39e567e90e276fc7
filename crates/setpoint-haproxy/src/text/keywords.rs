//! The words that may begin a line of a section.
//!
//! Needed for one question: whether a word at the beginning of a line opens a section that nobody knows, or is a
//! keyword of the section around it that somebody did not indent. Which section and which version knows it is told
//! by the table of directives.

/// Whether some section of some HAProxy from 2.6 to 3.4 has lines that begin with this word.
pub fn is_keyword(word: &[u8]) -> bool {
    let Ok(word) = std::str::from_utf8(word) else { return false };
    word.starts_with("tune.") || matches!(word, "no" | "default") || KEYWORDS.binary_search(&word).is_ok()
}

#[rustfmt::skip]
const KEYWORDS: &[&str] = &[
    "51degrees-cache-size", "51degrees-data-file", "51degrees-property-name-list",
    "51degrees-property-separator", "accepted_payload_size", "account-key", "acl", "acme-vars",
    "acme.scheduler", "allow-0rtt", "alpn", "anonkey", "appsession", "backing-file", "backlog", "balance",
    "be-unpublished", "bind", "bind-process", "bits", "block", "busy-polling", "ca-base", "ca-file",
    "ca-verify-file", "capture", "challenge", "challenge-ready", "chroot", "ciphers", "ciphersuites",
    "client-sigalgs", "clitcpka-cnt", "clitcpka-idle", "clitcpka-intvl", "clitimeout", "close-spread-time",
    "cluster-secret", "command", "compression", "contact", "contimeout", "cookie", "cpu-affinity", "cpu-map",
    "cpu-policy", "cpu-set", "crl-file", "crt-base", "curves", "daemon", "declare", "default-path",
    "default-server", "default_backend", "description", "deviceatlas-json-file", "deviceatlas-log-level",
    "deviceatlas-properties-cookie", "deviceatlas-separator", "dgram-bind", "directory", "disabled",
    "dispatch", "dns-accept-family", "dns-delay", "dns-timeout", "docroot", "dynamic-cookie-key",
    "eab-key-id", "eab-mac-alg", "eab-mac-key", "ecdhe", "email-alert", "enabled", "error-log-format",
    "errorfile", "errorfiles", "errorloc", "errorloc302", "errorloc303", "expose-deprecated-directives",
    "expose-experimental-directives", "external-check", "fd-hard-limit", "filter", "filter-sequence",
    "force-be-switch", "force-cfg-parser-pause", "force-persist", "format", "fullconn", "gid", "grace",
    "group", "guid", "h1-accept-payload-with-any-method", "h1-case-adjust", "h1-case-adjust-file",
    "h1-do-not-close-on-insecure-transfer-encoding", "hard-stop-after",
    "harden.reject-privileged-ports.quic", "harden.reject-privileged-ports.tcp", "hash-balance-factor",
    "hash-preserve-affinity", "hash-type", "hold", "http-after-response", "http-check", "http-err-codes",
    "http-error", "http-fail-codes", "http-request", "http-response", "http-reuse", "http-send-name-header",
    "httpclient.resolvers.disabled", "httpclient.resolvers.id", "httpclient.resolvers.prefer",
    "httpclient.retries", "httpclient.ssl.ca-file", "httpclient.ssl.verify", "httpclient.timeout.connect",
    "id", "ignore-persist", "index", "insecure-fork-wanted", "insecure-setuid-wanted", "issuers-chain-path",
    "jwt.allow_none_alg", "jwt.decrypt_alg_list", "jwt.decrypt_enc_list", "key-base", "keytype", "ktls",
    "limited-quic", "load", "load-server-state-from-file", "localpeer", "log", "log-format", "log-format-sd",
    "log-send-hostname", "log-stderr", "log-steps", "log-tag", "lua-load", "lua-load-per-thread",
    "lua-prepend-path", "mailer", "map", "master-worker", "max-age", "max-keep-alive-queue",
    "max-object-size", "max-secondary-entries", "max-session-srv-conns", "max-spread-checks",
    "max-threads-per-group", "maxcompcpuusage", "maxcomprate", "maxconn", "maxconnrate", "maxlen",
    "maxpipes", "maxsessrate", "maxsslconn", "maxsslrate", "maxzlibmem", "mode", "monitor", "monitor-net",
    "monitor-uri", "mworker-max-reloads", "nameserver", "nbproc", "nbthread", "no-alpn", "no-ca-names",
    "no-memory-trimming", "node", "noepoll", "noevports", "nogetaddrinfo", "nokqueue", "noktls", "nopoll",
    "noreuseport", "nosplice", "npn", "numa-cpu-mapping", "ocsp-update.disable", "ocsp-update.httpproxy",
    "ocsp-update.maxdelay", "ocsp-update.mindelay", "ocsp-update.mode", "on", "option", "parse-resolv-conf",
    "pass-header", "path-info", "peer", "persist", "pidfile", "pp2-never-send-local", "prealloc-fd",
    "presetenv", "process-vary", "profile", "profiling.tasks", "provider-name", "quic-initial", "quiet",
    "rate-limit", "redirect", "resetenv", "resolve_retries", "retries", "retry-on", "reuse-key", "server",
    "server-state-base", "server-state-file-name", "server-template", "set-dumpable", "set-param", "set-var",
    "set-var-fmt", "setcap", "setenv", "shards", "shm-stats-file", "shm-stats-file-max-objects", "sigalgs",
    "size", "source", "spread-checks", "srvtcpka-cnt", "srvtcpka-idle", "srvtcpka-intvl", "srvtimeout",
    "ssl-default-bind-ciphers", "ssl-default-bind-ciphersuites", "ssl-default-bind-client-sigalgs",
    "ssl-default-bind-curves", "ssl-default-bind-options", "ssl-default-bind-sigalgs",
    "ssl-default-server-ciphers", "ssl-default-server-ciphersuites", "ssl-default-server-client-sigalgs",
    "ssl-default-server-curves", "ssl-default-server-options", "ssl-default-server-sigalgs",
    "ssl-dh-param-file", "ssl-engine", "ssl-f-use", "ssl-load-extra-del-ext", "ssl-load-extra-files",
    "ssl-max-ver", "ssl-min-ver", "ssl-mode-async", "ssl-passphrase-cmd", "ssl-propquery", "ssl-provider",
    "ssl-provider-path", "ssl-security-level", "ssl-server-verify", "ssl-skip-self-issued-ca",
    "start-on-reload", "stats", "stick", "stick-table", "stress-level", "strict-limits", "table",
    "tcp-check", "tcp-request", "tcp-response", "thread-group", "thread-groups", "thread-hard-limit",
    "timeout", "total-max-size", "trace", "transparent", "tunnel", "type", "uid", "ulimit-n",
    "unique-id-format", "unique-id-header", "unix-bind", "unsetenv", "use-fcgi-app", "use-server",
    "use_backend", "user", "usesrc", "verify", "wait", "warn-blocked-traffic-after", "wurfl-cache-size",
    "wurfl-data-file", "wurfl-engine-mode", "wurfl-information-list", "wurfl-information-list-separator",
    "wurfl-patch-file", "zero-warning",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_and_none_opens_a_section() {
        assert!(KEYWORDS.is_sorted_by(|a, b| a < b));
        let sections: Vec<_> = KEYWORDS
            .iter()
            .filter(|word| crate::text::SectionKind::from_keyword(word.as_bytes()).is_some())
            .collect();
        assert_eq!(sections, [&""; 0]);
    }
}
