//! `show info` and `show stat`.

use serde_json::{Map, Value as Json, json};
use setpoint_instance::cli::{Request as CliRequest, Table};
use setpoint_instance::runtime::Reply;

use crate::Api;
use crate::answer::{Answer, Problem};
use crate::request::Request;

/// Properties of the API, and what HAProxy calls them.
const INFO: [(&str, &str); 59] = [
    ("active_peers", "ActivePeers"),
    ("busy_polling", "BusyPolling"),
    ("bytes_out_rate", "BytesOutRate"),
    ("compress_bps_in", "CompressBpsIn"),
    ("compress_bps_out", "CompressBpsOut"),
    ("compress_bps_rate_lim", "CompressBpsRateLim"),
    ("conn_rate", "ConnRate"),
    ("conn_rate_limit", "ConnRateLimit"),
    ("connected_peers", "ConnectedPeers"),
    ("cum_conns", "CumConns"),
    ("cum_req", "CumReq"),
    ("cum_ssl_conns", "CumSslConns"),
    ("curr_conns", "CurrConns"),
    ("curr_ssl_conns", "CurrSslConns"),
    ("dropped_logs", "DroppedLogs"),
    ("failed_resolutions", "FailedResolutions"),
    ("hard_max_conn", "Hard_maxconn"),
    ("idle_pct", "Idle_pct"),
    ("jobs", "Jobs"),
    ("listeners", "Listeners"),
    ("max_conn", "Maxconn"),
    ("max_conn_rate", "MaxConnRate"),
    ("max_pipes", "Maxpipes"),
    ("max_sess_rate", "MaxSessRate"),
    ("max_sock", "Maxsock"),
    ("max_ssl_conns", "MaxSslConns"),
    ("max_ssl_rate", "MaxSslRate"),
    ("max_zlib_mem_usage", "MaxZlibMemUsage"),
    ("mem_max_mb", "Memmax_MB"),
    ("nbthread", "Nbthread"),
    ("node", "node"),
    ("pid", "Pid"),
    ("pipes_free", "PipesFree"),
    ("pipes_used", "PipesUsed"),
    ("pool_alloc_mb", "PoolAlloc_MB"),
    ("pool_failed", "PoolFailed"),
    ("pool_used_mb", "PoolUsed_MB"),
    ("process_num", "Process_num"),
    ("processes", "Nbproc"),
    ("release_date", "Release_date"),
    ("run_queue", "Run_queue"),
    ("sess_rate", "SessRate"),
    ("sess_rate_limit", "SessRateLimit"),
    ("ssl_backend_key_rate", "SslBackendKeyRate"),
    ("ssl_backend_max_key_rate", "SslBackendMaxKeyRate"),
    ("ssl_cache_lookups", "SslCacheLookups"),
    ("ssl_cache_misses", "SslCacheMisses"),
    ("ssl_frontend_key_rate", "SslFrontendKeyRate"),
    ("ssl_frontend_max_key_rate", "SslFrontendMaxKeyRate"),
    ("ssl_frontend_session_reuse", "SslFrontendSessionReuse_pct"),
    ("ssl_rate", "SslRate"),
    ("ssl_rate_limit", "SslRateLimit"),
    ("stopping", "Stopping"),
    ("tasks", "Tasks"),
    ("total_bytes_out", "TotalBytesOut"),
    ("ulimit_n", "Ulimit-n"),
    ("unstoppable", "Unstoppable Jobs"),
    ("uptime", "Uptime_sec"),
    ("version", "Version"),
];
/// Those that are texts.
const TEXTS: [&str; 3] = ["node", "release_date", "version"];

/// The statistics that the API knows and that are texts.
const STAT_TEXTS: [&str; 12] = [
    "addr",
    "agent_desc",
    "agent_status",
    "algo",
    "check_desc",
    "check_status",
    "cookie",
    "hanafail",
    "last_agt",
    "last_chk",
    "mode",
    "status",
];
/// Those that are numbers.
const STAT_NUMBERS: &str = "act agent_code agent_duration agent_fall agent_health agent_rise bck bin bout check_code \
    check_duration check_fall check_health check_rise chkdown chkfail cli_abrt comp_byp comp_in comp_out comp_rsp conn_rate \
    conn_rate_max conn_tot ctime dcon downtime dreq dresp dses econ ereq eresp hrsp_1xx hrsp_2xx hrsp_3xx hrsp_4xx hrsp_5xx \
    hrsp_other iid intercepted lastchg lastsess lbtot pid qcur qlimit qmax qtime rate rate_lim rate_max req_rate req_rate_max \
    req_tot rtime scur sid slim smax srv_abrt stot throttle ttime weight wredis wretr";

impl Api {
    fn address(&self) -> String {
        self.instance.settings().master_socket.display().to_string()
    }

    pub(super) async fn process_info(&self) -> Result<Answer, Problem> {
        let answer = match self.instance.worker().ask(&CliRequest::new("show info")).await {
            Ok(Reply::Done(answer)) => answer,
            Ok(Reply::Refused(why)) => return Ok(self.no_info(&why)),
            // The original answers with an error of its own, and with success.
            Err(error) => return Ok(self.no_info(&error.to_string())),
        };
        let mut info = Map::new();
        for line in answer.lines() {
            let Some((name, value)) = line.split_once(": ") else { continue };
            let Some((property, _)) = INFO.iter().find(|(_, held)| *held == name) else { continue };
            let value = value.trim();
            let json = if TEXTS.contains(property) {
                Json::from(value.replace('/', "-"))
            } else {
                match value.parse::<i64>() {
                    Ok(number) => Json::from(number),
                    Err(_) => continue,
                }
            };
            info.insert((*property).to_owned(), json);
        }
        Ok(Answer::json(200, json!({ "info": info, "runtimeAPI": self.address() })))
    }

    fn no_info(&self, why: &str) -> Answer {
        Answer::json(200, json!({ "error": why, "runtimeAPI": self.address() }))
    }

    pub(crate) async fn stats(&self, request: &Request) -> Result<Answer, Problem> {
        let address = format!("{}@1", self.address());
        let answer = match self.instance.worker().ask(&CliRequest::new("show stat")).await {
            Ok(Reply::Done(answer)) => answer,
            Ok(Reply::Refused(why)) => {
                return Ok(Answer::json(500, json!({ "error": why, "runtimeAPI": address })));
            }
            Err(error) => {
                return Ok(Answer::json(500, json!({ "error": error.to_string(), "runtimeAPI": address })));
            }
        };
        let table = Table::read_csv(&answer).map_err(|error| Problem::new(500, error.to_string()))?;
        let wanted = |name: &str| request.query(name).filter(|value| !value.is_empty());
        let (kind, name, parent) = (wanted("type"), wanted("name"), wanted("parent"));
        let mut stats = Vec::new();
        for row in table.rows() {
            let held = |name: &str| {
                row.iter().find(|(column, _)| *column == name).map_or("", |(_, value)| value.as_ref())
            };
            let of = match held("type") {
                "0" => "frontend",
                "1" => "backend",
                "2" => "server",
                _ => continue,
            };
            let (own, backend) =
                if of == "server" { (held("svname"), Some(held("pxname"))) } else { (held("pxname"), None) };
            let fits = kind.is_none_or(|kind| kind == of)
                && name.is_none_or(|name| name == own)
                && parent.is_none_or(|parent| backend == Some(parent));
            if !fits {
                continue;
            }
            let mut values = Map::new();
            for (column, value) in &row {
                let value = value.trim();
                if value.is_empty() {
                    continue;
                }
                if STAT_TEXTS.contains(column) {
                    values.insert((*column).to_owned(), Json::from(value));
                } else if let (true, Ok(number)) =
                    (STAT_NUMBERS.split_ascii_whitespace().any(|held| held == *column), value.parse::<i64>())
                {
                    values.insert((*column).to_owned(), Json::from(number));
                }
            }
            let mut stat = json!({ "name": own, "type": of, "stats": values });
            if let (Some(backend), Some(properties)) = (backend, stat.as_object_mut()) {
                properties.insert("backend_name".to_owned(), Json::from(backend));
            }
            stats.push(stat);
        }
        let mut body = json!({ "runtimeAPI": address });
        if let (false, Some(properties)) = (stats.is_empty(), body.as_object_mut()) {
            properties.insert("stats".to_owned(), Json::Array(stats));
        }
        Ok(Answer::json(200, body))
    }
}
