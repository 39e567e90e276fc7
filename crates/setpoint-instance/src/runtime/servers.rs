//! What a running HAProxy says of its servers: `show servers state`.

use super::{Reply, Worker};
use crate::cli::{Request, RequestError, SocketError, Table, TableError};

/// What an operator can decide about a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminState {
    /// It gets traffic.
    Ready,
    /// It gets no new sessions.
    Drain,
    /// It gets nothing, and is not checked.
    Maintenance,
}

impl AdminState {
    /// The word for it, as `set server … state` takes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Drain => "drain",
            Self::Maintenance => "maint",
        }
    }
}

/// One server, as HAProxy runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// Its backend.
    pub backend: String,
    /// Its name.
    pub name: String,
    /// The values of [`COLUMNS`], separated by blanks: there may be very many servers.
    values: Box<str>,
}

/// Why the servers are not known.
#[derive(Debug, thiserror::Error)]
pub enum ServersError {
    /// HAProxy does not answer.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// What it answers is no table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The name can't be asked for.
    #[error(transparent)]
    Name(#[from] RequestError),
    /// It refuses.
    #[error("HAProxy refuses to show its servers: {0}")]
    Refused(String),
}

/// The columns that are read, as all versions from 2.6 on have them.
const COLUMNS: [&str; 25] = [
    "be_id",
    "be_name",
    "srv_id",
    "srv_name",
    "srv_addr",
    "srv_op_state",
    "srv_admin_state",
    "srv_uweight",
    "srv_iweight",
    "srv_time_since_last_change",
    "srv_check_status",
    "srv_check_result",
    "srv_check_health",
    "srv_check_state",
    "srv_agent_state",
    "bk_f_forced_id",
    "srv_f_forced_id",
    "srv_fqdn",
    "srv_port",
    "srvrecord",
    "srv_use_ssl",
    "srv_check_port",
    "srv_check_addr",
    "srv_agent_addr",
    "srv_agent_port",
];

/// Set by a command, and by `disabled` in the configuration. That the configuration said so is a flag of its own, 4, which
/// stays when a command ends the maintenance.
const FORCED_MAINTENANCE: u32 = 0x01;
/// That the configuration says `disabled`.
const DISABLED: u32 = 0x04;
/// Taken over from a server that is tracked, from a resolver that has no address, and from a name that is not resolved.
const OTHER_MAINTENANCE: u32 = 0x02 | 0x20 | 0x40;
/// Set by a command.
const FORCED_DRAIN: u32 = 0x08;
/// Taken over from a server that is tracked.
const INHERITED_DRAIN: u32 = 0x10;

impl Worker {
    /// The servers of a backend, or of all; none if HAProxy does not know the backend.
    pub async fn servers(&self, backend: Option<&str>) -> Result<Option<Vec<ServerState>>, ServersError> {
        let mut request = Request::new("show servers state");
        if let Some(backend) = backend {
            request = request.word(backend)?;
        }
        let answer = match self.ask(&request).await? {
            Reply::Done(answer) => answer,
            Reply::Refused(why) if why.contains("find backend") => return Ok(None),
            Reply::Refused(why) => return Err(ServersError::Refused(why)),
        };
        if !answer.contains("# ") && backend.is_some() {
            return Ok(None);
        }
        let table = Table::read_words(&answer)?;
        let servers = table.select(COLUMNS)?.map(|values| {
            let [_, backend, _, name, ..] = &values;
            ServerState {
                backend: backend.as_ref().into(),
                name: name.as_ref().into(),
                values: values.join(" ").into(),
            }
        });
        Ok(Some(servers.collect()))
    }
}

impl ServerState {
    /// A column by its name, such as `srv_addr`.
    pub fn column(&self, name: &str) -> &str {
        let place = COLUMNS.iter().position(|column| *column == name);
        place.and_then(|place| self.values.split(' ').nth(place)).unwrap_or_default()
    }

    /// A column as a number; 0 if it is none.
    pub fn number(&self, name: &str) -> i64 {
        self.column(name).parse().unwrap_or(0)
    }

    fn flags(&self) -> u32 {
        self.column("srv_admin_state").parse().unwrap_or(0)
    }

    /// What was decided about it, by whomever.
    pub fn admin_state(&self) -> AdminState {
        let flags = self.flags();
        if flags & (FORCED_MAINTENANCE | OTHER_MAINTENANCE) != 0 {
            AdminState::Maintenance
        } else if flags & (FORCED_DRAIN | INHERITED_DRAIN) != 0 {
            AdminState::Drain
        } else {
            AdminState::Ready
        }
    }

    /// What a command decided about it, rather than its configuration.
    pub fn forced_state(&self) -> Option<AdminState> {
        let flags = self.flags();
        match () {
            () if flags & FORCED_MAINTENANCE != 0 => Some(AdminState::Maintenance),
            () if flags & FORCED_DRAIN != 0 => Some(AdminState::Drain),
            () => None,
        }
    }

    /// Returns whether the configuration that was loaded says `disabled` of it, whatever was decided since.
    pub fn was_disabled(&self) -> bool {
        self.flags() & DISABLED != 0
    }

    /// Its weight.
    pub fn weight(&self) -> i64 {
        self.number("srv_uweight")
    }
}
