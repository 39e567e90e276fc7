//! The endpoints by which a long-running command is seen from outside.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use setpoint_observe::{Observed, ServeError, Server};
use tokio_util::sync::CancellationToken;

use crate::error::Reportable;

/// Why the endpoints are not served.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct EndpointsError(#[from] ServeError);

impl Reportable for EndpointsError {}

/// The endpoints. They are served until this is dropped, on a thread of their own: requests are answered whatever the command
/// does meanwhile, and learns if it does nothing any more.
#[derive(Debug)]
pub(crate) struct Endpoints {
    address: SocketAddr,
    cancel: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Endpoints {
    /// Serves them on an address; returns when they are served.
    pub(crate) fn serve(address: SocketAddr, observed: Arc<dyn Observed>) -> Result<Self, EndpointsError> {
        let cancel = CancellationToken::new();
        let (bound, (sender, result)) = (cancel.clone(), mpsc::channel());
        let serve = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => return drop(sender.send(Err(ServeError::Serve(error)))),
            };
            runtime.block_on(async {
                match Server::bind(address, observed).await {
                    Ok(server) => {
                        // `serve` waits for it.
                        let _ = sender.send(Ok(server.address().unwrap_or(address)));
                        server.run(bound).await;
                    }
                    Err(error) => drop(sender.send(Err(error))),
                }
            });
        };
        let thread = std::thread::Builder::new().name("endpoints".to_owned()).spawn(serve);
        let thread = thread.map_err(ServeError::Serve)?;
        let address =
            result.recv().unwrap_or_else(|_| Err(ServeError::Serve(std::io::ErrorKind::Other.into())))?;
        Ok(Self { address, cancel, thread: Some(thread) })
    }

    /// Where they are served; a port that was left open is known here.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoints {
    fn drop(&mut self) {
        self.cancel.cancel();
        // It ends within a second.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
