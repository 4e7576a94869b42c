//! The server: listens, and ends at once when it is dropped.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::folder::Folder;
use super::guard::Guard;
use super::route::{App, router};
use super::source::RunSource;
use super::token::Token;

/// How a dashboard is served.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder beneath which runs are, or one run.
    pub folder: PathBuf,
    /// Whether the folder is itself a run.
    pub is_run: bool,
    /// Where to listen.
    pub address: SocketAddr,
    /// The token that requests must carry. An address that others can reach needs one.
    pub token: Option<Token>,
    /// Version of the program, shown on the pages.
    pub version: String,
}

/// Why the dashboard cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// There is no such folder.
    #[error("cannot open the folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The underlying error.
        source: io::Error,
    },
    /// Others could reach the address, and there is no token.
    #[error("{address} can be reached from other machines, so a token is needed")]
    NoToken {
        /// The address.
        address: SocketAddr,
    },
    /// Threads cannot be started.
    #[error("cannot start the server")]
    Start(#[source] io::Error),
}

/// A dashboard that is being served, until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    token: Option<Token>,
    runtime: Option<Runtime>,
}

/// Starts the server. Returns as soon as browsers can connect.
pub fn serve(options: Options, source: impl RunSource) -> Result<Server, WebError> {
    let address = options.address;
    if !address.ip().is_loopback() && options.token.is_none() {
        return Err(WebError::NoToken { address });
    }
    let folder = Folder::new(&options.folder, options.is_run)
        .map_err(|source| WebError::Folder { path: options.folder.clone(), source })?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("dash")
        .enable_all()
        .build()
        .map_err(WebError::Start)?;
    let listener = runtime
        .block_on(TcpListener::bind(address))
        .map_err(|source| WebError::Listen { address, source })?;
    // Port 0 has become a real one.
    let address = listener.local_addr().map_err(|source| WebError::Listen { address, source })?;
    let guard = Guard { addr: address, token: options.token.clone() };
    let app = App::new(Box::new(source), folder, options.version);
    let router = router(Arc::new(app), Arc::new(guard));
    runtime.spawn(async move {
        // It ends with the runtime, and not before.
        let _ = axum::serve(listener, router).await;
    });
    Ok(Server { address, token: options.token, runtime: Some(runtime) })
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// URL to open in a browser; with the token, if there is one.
    pub fn link(&self) -> String {
        let mut address = self.address;
        // "All addresses" is nothing to connect to.
        if address.ip().is_unspecified() {
            let ip =
                if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
            address.set_ip(ip);
        }
        match &self.token {
            Some(token) => format!("http://{address}/?token={}", token.text()),
            None => format!("http://{address}/"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Streams never end by themselves, and nothing that is under way has to be finished.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
