//! The client.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url};
use serde_json::json;
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

use crate::auth::{Auth, Login, Secret, read_secret};
use crate::connections::Connections;
use crate::error::Error;
use crate::settings::Settings;
use crate::wire;
use setpoint_kv::Entry;
use setpoint_kv::{MAX_OPERATIONS, Operation};

/// How often a token file is looked at while a query is under way.
const TOKEN_FILE_INTERVAL: Duration = Duration::from_secs(2);
/// How many keys are read at once.
const READS_AT_ONCE: usize = 4;
/// How much longer than Consul's own longest wait an answer may take.
const WAIT_MARGIN: Duration = Duration::from_secs(10);

/// How a list is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// As it is, from the leader.
    Default,
    /// As it is, after the leader has made sure that it still is the leader.
    Consistent,
    /// When something has changed since an index, or after so long.
    Blocking {
        /// The index of the last answer; 0 to be answered at once.
        index: u64,
        /// How long Consul waits for a change.
        wait: Duration,
    },
}

/// What a list gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// What to give back in the next blocking read; 0 if Consul gave none.
    pub index: u64,
    /// The keys below the prefix; none where Consul knows no such key.
    pub entries: Vec<Entry>,
    /// Whether there is more that our token may not see.
    pub filtered_by_acls: bool,
    /// Whether the server knew a leader.
    pub known_leader: bool,
    /// How long ago the server was in contact with the leader; zero if it is the leader.
    pub last_contact: Duration,
}

/// Speaks with Consul. Clones share connections and the login.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    connections: Connections,
    base: Url,
    parameters: Vec<(&'static str, String)>,
    auth: Auth,
    timeout: Duration,
    /// The token of the last request.
    used: watch::Sender<Option<Secret>>,
    /// The token of our login.
    session: Mutex<Option<Secret>>,
    /// One login at a time: a second one would leave a token behind.
    login: Semaphore,
}

impl Client {
    /// Makes a client; reads the files with certificates, and connects to nothing yet.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        // An address is shown; what must not be shown has no place in it.
        if settings.url.contains('@') {
            let why =
                "the address of Consul must not hold a user or a password: a token has a file of its own";
            return Err(Error::Settings(why.to_owned()));
        }
        let base = Url::parse(&settings.url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| Error::Settings(format!("`{}` is no address of an HTTP API", settings.url)))?;
        let tls = (base.scheme() == "https").then_some(settings.tls);
        let optional =
            [("dc", settings.datacenter), ("ns", settings.namespace), ("partition", settings.partition)];
        let parameters = optional.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let inner = Inner {
            connections: Connections::new(tls, settings.connect_timeout)?,
            base,
            parameters,
            auth: settings.auth,
            timeout: settings.timeout,
            used: watch::Sender::new(None),
            session: Mutex::default(),
            login: Semaphore::new(1),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Lists all keys below a prefix, in their order.
    pub async fn list(&self, prefix: &str, read: Read) -> Result<Response, Error> {
        let mut url = self.url(&["v1", "kv"], prefix)?;
        url.query_pairs_mut().append_key_only("recurse");
        self.read_kv(url, read).await
    }

    /// Reads one key; none if there is no such key.
    pub async fn get(&self, key: &str, read: Read) -> Result<Option<Entry>, Error> {
        let response = self.read_kv(self.url(&["v1", "kv"], key)?, read).await?;
        Ok(response.entries.into_iter().next())
    }

    /// Reads those of some keys that there are, consistently, in the order of the keys.
    pub async fn read(&self, keys: impl IntoIterator<Item = &str>) -> Result<Vec<Entry>, Error> {
        let reads = keys.into_iter().map(|key| self.get(key, Read::Consistent)).collect::<Vec<_>>();
        let entries: Vec<_> = stream::iter(reads).buffered(READS_AT_ONCE).try_collect().await?;
        let mut entries: Vec<_> = entries.into_iter().flatten().collect();
        entries.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(entries)
    }

    /// Reads those of some keys that there are, many in a request, in the order of the keys.
    ///
    /// A key that our token may not read is as good as none: what is done about it needs another look.
    pub async fn read_together(&self, keys: &[String]) -> Result<Vec<Entry>, Error> {
        let mut entries = self.read_below(keys, Read::Default).await?;
        // Keys that begin like one that was asked for come along.
        let wanted: BTreeSet<_> = keys.iter().collect();
        entries.retain(|entry| wanted.contains(&entry.key));
        Ok(entries)
    }

    /// Reads all that begins with one of some prefixes, many in a request and consistently, in the order of the keys.
    pub async fn read_trees(&self, prefixes: &[String]) -> Result<Vec<Entry>, Error> {
        let mut entries = self.read_below(prefixes, Read::Consistent).await?;
        entries.sort_by(|one, other| one.key.cmp(&other.key));
        entries.dedup_by(|one, other| one.key == other.key);
        Ok(entries)
    }

    async fn read_below(&self, prefixes: &[String], read: Read) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for some in prefixes.chunks(MAX_OPERATIONS) {
            let mut url = self.url(&["v1", "txn"], "")?;
            if read == Read::Consistent {
                url.query_pairs_mut().append_key_only("consistent");
            }
            let body = wire::reads(some);
            let (status, headers, body) =
                self.send(Method::PUT, url, Some(&body), self.inner.timeout).await?;
            match status {
                StatusCode::OK => entries.extend(wire::results(&body)?),
                StatusCode::CONFLICT => return Err(wire::rolled_back(&body)),
                status => return Err(Error::of_status(status, retry_after(&headers), &body)),
            }
        }
        Ok(entries)
    }

    /// Waits until anything below a prefix has changed since an index, or so long; gives the index of the next query.
    pub async fn wait_below(&self, prefix: &str, index: u64, wait: Duration) -> Result<u64, Error> {
        let mut url = self.url(&["v1", "kv"], prefix)?;
        // The answer is as short as it can be: the names of folders.
        url.query_pairs_mut().append_key_only("keys").append_pair("separator", "/");
        let (status, headers, body) = self.ask(url, Read::Blocking { index, wait }).await?;
        match status {
            StatusCode::OK | StatusCode::NOT_FOUND => Ok(number(&headers, "X-Consul-Index").unwrap_or(0)),
            status => Err(Error::of_status(status, retry_after(&headers), &body)),
        }
    }

    /// Waits until anything below a prefix has changed since an index, or so long; gives the index of the next query, and for
    /// each folder right below the prefix a number that changes whenever anything in it does.
    ///
    /// `prefix` ends with a slash.
    pub async fn wait_for_folders(
        &self,
        prefix: &str,
        index: u64,
        wait: Duration,
    ) -> Result<(u64, BTreeMap<String, u64>), Error> {
        let mut url = self.url(&["v1", "kv"], prefix)?;
        url.query_pairs_mut().append_key_only("recurse");
        let (status, headers, body) = self.ask(url, Read::Blocking { index, wait }).await?;
        let folders = match status {
            StatusCode::OK => wire::folders(prefix, body.as_bytes())?,
            StatusCode::NOT_FOUND => BTreeMap::new(),
            status => return Err(Error::of_status(status, retry_after(&headers), &body)),
        };
        Ok((number(&headers, "X-Consul-Index").unwrap_or(0), folders))
    }

    /// Carries out a transaction: all of its operations, or with [`Error::Conflict`] none.
    pub async fn transact(&self, operations: &[Operation<'_>]) -> Result<(), Error> {
        let body = wire::transaction(operations);
        let url = self.url(&["v1", "txn"], "")?;
        let (status, _, body) = self.send(Method::PUT, url, Some(&body), self.inner.timeout).await?;
        match status {
            StatusCode::OK => Ok(()),
            StatusCode::CONFLICT => Err(wire::rolled_back(&body)),
            status => Err(Error::of_status(status, None, &body)),
        }
    }

    /// Whether an empty answer to us can be believed.
    ///
    /// Consul marks what ACLs filtered, but not for those who come without a token. So where ACLs are on and we have
    /// none, nothing to see does not mean that nothing is there.
    pub async fn sees_what_is_filtered(&self) -> Result<bool, Error> {
        if self.inner.auth != Auth::Anonymous {
            return Ok(true);
        }
        let url = self.url(&["v1", "acl", "token", "self"], "")?;
        let (status, _, body) = self.send(Method::GET, url, None, self.inner.timeout).await?;
        match status {
            StatusCode::UNAUTHORIZED if body.contains("ACL support disabled") => Ok(true),
            StatusCode::OK | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Ok(false),
            status => Err(Error::of_status(status, None, &body)),
        }
    }

    /// Waits until the token or the certificates are others than those that were used last: then a query under way
    /// should be asked anew.
    pub async fn changed(&self) {
        tokio::select! {
            () = self.token_changed() => {}
            () = self.inner.connections.renewed() => {}
        }
    }

    /// Reads the files with certificates again; returns whether they had changed, and are used from now on.
    ///
    /// Files that can't be used are an error and change nothing: one of them may be half written.
    pub async fn renew_certificates(&self) -> Result<bool, Error> {
        self.inner.connections.renew().await
    }

    /// Only a token file can change; with all else it waits for ever.
    async fn token_changed(&self) {
        let Auth::TokenFile(path) = &self.inner.auth else { return std::future::pending().await };
        // All that wait are woken, by the first that finds the new one.
        let mut used = self.inner.used.subscribe();
        loop {
            tokio::select! {
                Ok(()) = used.changed() => return,
                () = sleep(TOKEN_FILE_INTERVAL) => {}
            }
            // What can't be read is no new token: the query under way goes on with the old one.
            if let Ok(now) = read_secret(path).await {
                self.note_token(Some(now));
            }
        }
    }

    /// Remembers the token that is used; queries that were asked with another one are to be asked anew.
    fn note_token(&self, token: Option<Secret>) {
        self.inner.used.send_if_modified(|used| {
            let another = used.is_some() && *used != token;
            *used = token;
            another
        });
    }

    /// Gives the token of our login back, if there is one.
    pub async fn logout(&self) -> Result<(), Error> {
        let Some(token) = lock(&self.inner.session).take() else { return Ok(()) };
        let url = self.url(&["v1", "acl", "logout"], "")?;
        let (status, _, body) =
            self.send_as(Method::POST, url, None, self.inner.timeout, Some(&token)).await?;
        if status.is_success() { Ok(()) } else { Err(Error::of_status(status, None, &body)) }
    }

    async fn read_kv(&self, url: Url, read: Read) -> Result<Response, Error> {
        let (status, headers, body) = self.ask(url, read).await?;
        let entries = match status {
            StatusCode::OK => wire::entries(body.as_bytes())?,
            StatusCode::NOT_FOUND => Vec::new(),
            status => return Err(Error::of_status(status, retry_after(&headers), &body)),
        };
        let has = |name, what| headers.get(name).is_some_and(|value| value == what);
        Ok(Response {
            index: number(&headers, "X-Consul-Index").unwrap_or(0),
            entries,
            filtered_by_acls: has("X-Consul-Results-Filtered-By-ACLs", "true"),
            known_leader: !has("X-Consul-KnownLeader", "false"),
            last_contact: Duration::from_millis(number(&headers, "X-Consul-LastContact").unwrap_or(0)),
        })
    }

    /// Reads something, in one of the ways in which it can be read.
    async fn ask(&self, mut url: Url, read: Read) -> Result<(StatusCode, HeaderMap, String), Error> {
        let mut timeout = self.inner.timeout;
        match read {
            Read::Default => {}
            Read::Consistent => {
                url.query_pairs_mut().append_key_only("consistent");
            }
            Read::Blocking { index, wait } => {
                url.query_pairs_mut()
                    .append_pair("index", &index.to_string())
                    .append_pair("wait", &format!("{}ms", wait.as_millis()));
                // Consul adds up to a sixteenth, so that not all come back at once.
                timeout = timeout.max(wait + wait / 16 + WAIT_MARGIN);
            }
        }
        self.send(Method::GET, url, None, timeout).await
    }

    /// Sends a request with our token; a login that Consul has forgotten is made once more.
    async fn send(
        &self,
        method: Method,
        url: Url,
        body: Option<&serde_json::Value>,
        timeout: Duration,
    ) -> Result<(StatusCode, HeaderMap, String), Error> {
        let token = self.token().await?;
        let answer = self.send_as(method.clone(), url.clone(), body, timeout, token.as_ref()).await?;
        let forgotten = matches!(self.inner.auth, Auth::Login(_))
            && !answer.0.is_success()
            && Error::of_status(answer.0, None, &answer.2).is_unknown_token();
        if !forgotten {
            return Ok(answer);
        }
        {
            let mut session = lock(&self.inner.session);
            if *session == token {
                *session = None;
            }
        }
        let token = self.token().await?;
        self.send_as(method, url, body, timeout, token.as_ref()).await
    }

    async fn send_as(
        &self,
        method: Method,
        url: Url,
        body: Option<&serde_json::Value>,
        timeout: Duration,
        token: Option<&Secret>,
    ) -> Result<(StatusCode, HeaderMap, String), Error> {
        let mut request = self.inner.connections.http().request(method, url).timeout(timeout);
        if let Some(token) = token {
            let mut header = HeaderValue::from_str(token.expose())
                .map_err(|_| Error::Settings("the token has characters that no token has".to_owned()))?;
            header.set_sensitive(true);
            request = request.header("X-Consul-Token", header);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        Ok((status, headers, response.text().await?))
    }

    async fn token(&self) -> Result<Option<Secret>, Error> {
        let token = match &self.inner.auth {
            Auth::Anonymous => None,
            Auth::Token(token) => Some(token.clone()),
            Auth::TokenFile(path) => Some(read_secret(path).await?),
            Auth::Login(login) => Some(self.session(login).await?),
        };
        self.note_token(token.clone());
        Ok(token)
    }

    /// The token of our login, made if there is none.
    async fn session(&self, login: &Login) -> Result<Secret, Error> {
        let one_at_a_time = self.inner.login.acquire().await;
        if let Some(token) = lock(&self.inner.session).clone() {
            return Ok(token);
        }
        let bearer = read_secret(&login.bearer_file).await?;
        let body = json!({ "AuthMethod": login.method, "BearerToken": bearer.expose() });
        let url = self.url(&["v1", "acl", "login"], "")?;
        let (status, _, body) =
            self.send_as(Method::POST, url, Some(&body), self.inner.timeout, None).await?;
        if !status.is_success() {
            return Err(Error::of_status(status, None, &body));
        }
        // The answer holds the token: no part of it goes into an error.
        let logged_in: wire::LoggedIn =
            serde_json::from_str(&body).map_err(|_| Error::Malformed("no token from a login".to_owned()))?;
        let token = Secret::new(logged_in.secret_id);
        *lock(&self.inner.session) = Some(token.clone());
        drop(one_at_a_time);
        Ok(token)
    }

    /// A URL of the API: the path, and a key if there is one, with our parameters.
    fn url(&self, path: &[&str], key: &str) -> Result<Url, Error> {
        let mut url = self.inner.base.clone();
        url.path_segments_mut()
            .map_err(|()| Error::Settings(format!("`{}` can't have a path", self.inner.base)))?
            .pop_if_empty()
            .extend(path)
            .extend(key.split('/').filter(|_| !key.is_empty()));
        url.query_pairs_mut().extend_pairs(&self.inner.parameters);
        Ok(url)
    }
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

/// Nothing under these locks can be half done, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
