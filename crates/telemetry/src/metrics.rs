//! Serves a page of metrics to programs on this machine.
//!
//! It answers `GET /metrics` and nothing else, one request at a time, and only to this machine: there are no secrets in it, and
//! no reason to be reached from elsewhere either.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::prometheus::CONTENT_TYPE;

/// The longest request that is read.
const MAX_REQUEST_BYTES: usize = 8192;

/// Time limit of a request, and of its answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// A page that is being served, until it is dropped.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Serves what `page` gives at `/metrics` of an address of this machine, such as `127.0.0.1:9184`; port 0 takes a free one.
///
/// An address that other machines can reach is refused.
pub fn serve(addr: impl ToSocketAddrs, page: impl Fn() -> String + Send + 'static) -> io::Result<Server> {
    serve_with(addr, PATIENCE, page)
}

fn serve_with(
    addr: impl ToSocketAddrs,
    patience: Duration,
    page: impl Fn() -> String + Send + 'static,
) -> io::Result<Server> {
    let addrs: Vec<SocketAddr> = addr.to_socket_addrs()?.collect();
    if let Some(addr) = addrs.iter().find(|addr| !addr.ip().is_loopback()) {
        let text = format!("{addr} can be reached from other machines; use 127.0.0.1:{}", addr.port());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let listener = TcpListener::bind(addrs.as_slice())?;
    let addr = listener.local_addr()?;
    let is_stopped = Arc::new(AtomicBool::new(false));
    let sees_stop = Arc::clone(&is_stopped);
    let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
        for client in listener.incoming() {
            if sees_stop.load(Ordering::SeqCst) {
                break;
            }
            // A client that went away is no error of ours.
            let _ = client.and_then(|client| answer(&client, patience, &page));
        }
    })?;
    Ok(Server { addr, is_stopped, thread: Some(thread) })
}

impl Server {
    /// Where it is, with the port that it took.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // The thread waits for a client; this is one.
        let is_woken = TcpStream::connect_timeout(&self.addr, PATIENCE).is_ok();
        if let Some(thread) = self.thread.take()
            && is_woken
        {
            // A page that panics has ended it already.
            let _ = thread.join();
        }
    }
}

fn answer(mut client: &TcpStream, patience: Duration, page: &impl Fn() -> String) -> io::Result<()> {
    let (status, body) = match read_request(client, patience)? {
        Some(line) if is_for_metrics(&line) => ("200 OK", page()),
        Some(_) => ("404 Not Found", "there is only GET /metrics here\n".to_owned()),
        None => ("400 Bad Request", "not an HTTP request\n".to_owned()),
    };
    let content_type = if status == "200 OK" { CONTENT_TYPE } else { "text/plain; charset=utf-8" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    client.set_write_timeout(Some(patience))?;
    client.write_all((head + &body).as_bytes())
}

/// The first line of a request, once its head is there; none if it is too long.
fn read_request(mut client: &TcpStream, patience: Duration) -> io::Result<Option<String>> {
    let began = Instant::now();
    let mut request = Vec::new();
    let mut block = [0; 1024];
    while memchr::memmem::find(&request, b"\r\n\r\n").is_none() {
        let left = patience.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        let n_read = client.read(&mut block)?;
        request.extend_from_slice(&block[..n_read]);
        if n_read == 0 || request.len() > MAX_REQUEST_BYTES {
            return Ok(None);
        }
    }
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    Ok(Some(String::from_utf8_lossy(line).into_owned()))
}

fn is_for_metrics(line: &str) -> bool {
    let mut words = line.split(' ');
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    let path = target.split('?').next();
    method == Some("GET")
        && path == Some("/metrics")
        && words.next().is_some_and(|word| word.starts_with("HTTP/1."))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// Ends a test that hangs; long enough for any machine.
    const LONG: Duration = Duration::from_secs(120);

    fn ask(addr: SocketAddr, request: &[u8]) -> String {
        let mut client = TcpStream::connect(addr).unwrap();
        client.set_read_timeout(Some(LONG)).unwrap();
        // The server refuses a client that takes too long, even while it sends.
        let _ = client.write_all(request);
        let mut said = String::new();
        // A request that is too long is cut off; its beginning counts.
        let _ = client.read_to_string(&mut said);
        said
    }

    #[test]
    fn the_page_is_made_for_every_request_and_all_else_is_not_found() {
        let n_asked = AtomicU64::new(0);
        let server = serve_with("127.0.0.1:0", LONG, move || {
            format!("asked {}\n", n_asked.fetch_add(1, Ordering::SeqCst))
        })
        .unwrap();
        for nth in 0..3 {
            let said = ask(server.addr(), b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
            assert!(said.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{said}");
            assert!(
                said.contains("\r\nContent-Length: 8\r\n")
                    && said.ends_with(&format!("\r\n\r\nasked {nth}\n"))
            );
        }
        for request in ["GET / HTTP/1.1", "POST /metrics HTTP/1.1", "GET /metrics/x HTTP/1.1", "nonsense", ""]
        {
            let said = ask(server.addr(), format!("{request}\r\n\r\n").as_bytes());
            assert!(said.starts_with("HTTP/1.1 404 Not Found\r\n"), "{request}: {said}");
        }
    }

    #[test]
    fn too_long_a_request_is_refused() {
        let server = serve_with("127.0.0.1:0", LONG, || "ok\n".to_owned()).unwrap();
        let long = format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(3 * MAX_REQUEST_BYTES));
        let said = ask(server.addr(), long.as_bytes());
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{said}");
    }

    #[test]
    fn a_silent_client_does_not_stay() {
        let server = serve_with("127.0.0.1:0", Duration::from_millis(50), || "ok\n".to_owned()).unwrap();
        let silent = TcpStream::connect(server.addr()).unwrap();
        // On a busy machine this client, too, may be slower than the server is patient; it asks again.
        let began = Instant::now();
        while !ask(server.addr(), b"GET /metrics?x=1 HTTP/1.0\r\n\r\n").ends_with("ok\n") {
            assert!(began.elapsed() < LONG, "nobody is answered while one is silent");
        }
        drop(silent);
    }

    #[test]
    fn dropping_it_frees_the_port_and_a_taken_or_public_one_is_refused() {
        let is_freed = |_| {
            let server = serve("127.0.0.1:0", String::new).unwrap();
            let addr = server.addr();
            assert!(serve(addr, String::new).is_err());
            drop(server);
            serve(addr, String::new).is_ok()
        };
        // Somebody else on this machine may be given the same port in between, but not each time.
        assert!((0..20).any(is_freed));
        let error = serve("0.0.0.0:0", String::new).unwrap_err();
        assert!(error.to_string().contains("use 127.0.0.1:0"), "{error}");
    }
}
