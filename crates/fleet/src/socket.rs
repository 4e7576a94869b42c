//! Workers behind sockets: the worker listens, the coordinator connects, and each shows the other that it knows the token.
//!
//! Nothing is encrypted. The token keeps strangers out of a port; against somebody who can read or change what is on the wire, use a tunnel.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use socket2::{SockRef, TcpKeepalive};
use tidemill_search::EvaluateError;

use crate::in_process::drain;
use crate::link::{FrameSender, report_answers, serve};
use crate::message::{Message, Refusal, RefusalCode};
use crate::token::Token;
use crate::transport::{Transport, TransportEvent, WorkerId};
use crate::worker::Worker;

/// How long connecting, and each step of the proof, may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait before connecting again: at first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];

/// Strangers that may try to show a token at a time.
const MOST_STRANGERS: usize = 16;

/// Finds a peer that is gone without a word after a minute.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let keepalive =
        TcpKeepalive::new().with_time(Duration::from_secs(15)).with_interval(Duration::from_secs(15));
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// The proof is over; from here on whoever is silent may be at work.
fn trusted(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)
}

/// Serves one coordinator after another on a socket, for ever. `hear` is told who came and went.
///
/// Those that do not show the token are told nothing; some of them at a time are heard, for a while. A coordinator that comes while another one is
/// served is told so and let go; it tries again.
pub fn listen(
    listener: &TcpListener,
    token: &Token,
    worker: &Arc<Worker>,
    hear: impl Fn(&str) + Send + Sync + 'static,
) -> io::Result<()> {
    let (hear, is_busy) = (Arc::new(hear), Arc::new(Mutex::new(())));
    let n_strangers = Arc::new(AtomicUsize::new(0));
    loop {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            // A connection that was gone before it was taken; anything lasting comes again, and must not make a busy loop.
            Err(_) => {
                std::thread::sleep(PAUSES[0]);
                continue;
            }
        };
        if n_strangers.load(Ordering::SeqCst) >= MOST_STRANGERS {
            continue;
        }
        n_strangers.fetch_add(1, Ordering::SeqCst);
        let (token, worker, hear) = (token.clone(), worker.clone(), hear.clone());
        let (is_busy, n_strangers) = (is_busy.clone(), n_strangers.clone());
        std::thread::Builder::new().name("coordinator".into()).spawn(move || {
            let admitted = admit(stream, &token);
            n_strangers.fetch_sub(1, Ordering::SeqCst);
            match admitted {
                Ok(Some(stream)) => {
                    let Ok(_only) = is_busy.try_lock() else {
                        // It may have gone already.
                        drop(say_busy(stream));
                        return hear(&format!("{peer} was let go: another coordinator is served"));
                    };
                    hear(&format!("{peer} is served"));
                    let ends = stream.try_clone().and_then(|reader| Ok((reader, stream.try_clone()?)));
                    let served = ends.and_then(|(reader, to)| serve(&worker, BufReader::new(reader), to));
                    // Threads that still read must not answer it any more.
                    drop(stream.shutdown(Shutdown::Both));
                    match served {
                        Ok(()) => hear(&format!("{peer} has gone")),
                        Err(error) => hear(&format!("{peer} has gone: {error}")),
                    }
                }
                Ok(None) => hear(&format!("{peer} was let go: it does not know the token")),
                Err(error) if is_timeout(&error) => {
                    hear(&format!("{peer} was let go: it said nothing for {} s", PATIENCE.as_secs()));
                }
                Err(error) => hear(&format!("{peer} was let go: it did not show the token ({error})")),
            }
        })?;
    }
}

/// Tells a coordinator that has shown the token why it is let go, and waits until it has read that.
fn say_busy(mut stream: TcpStream) -> io::Result<()> {
    let text = "it is busy with another search, and is asked again until it is free".to_owned();
    let busy = Message::Refusal(Refusal { session: 0, shard: None, code: RefusalCode::Failed, text });
    stream.set_read_timeout(Some(PATIENCE))?;
    crate::frame::write(&mut stream, &busy.encode())?;
    stream.shutdown(Shutdown::Write)?;
    io::copy(&mut stream.take(u64::from(u32::MAX)), &mut io::sink()).map(drop)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn admit(mut stream: TcpStream, token: &Token) -> io::Result<Option<TcpStream>> {
    prepare(&stream)?;
    if !token.admit(&mut stream)? {
        return Ok(None);
    }
    trusted(&stream)?;
    Ok(Some(stream))
}

/// A worker that is connected.
struct Connection {
    frames: FrameSender,
    stream: TcpStream,
    address: Arc<Address>,
}

/// A worker to connect to, again and again.
struct Address {
    text: String,
    is_given_up: AtomicBool,
}

type Connections = Arc<Mutex<BTreeMap<WorkerId, Connection>>>;

/// Workers behind sockets.
pub struct Sockets {
    connections: Connections,
    reported: Receiver<TransportEvent>,
    addresses: Vec<Arc<Address>>,
    is_closed: bool,
}

impl Sockets {
    /// Connects to the workers at these addresses, and again whenever a connection is lost.
    pub fn new(addresses: &[String], token: &Token) -> io::Result<Self> {
        let (report, reported) = unbounded();
        let connections = Connections::default();
        let n_joined = Arc::new(AtomicU64::new(0));
        let address =
            |text: &String| Arc::new(Address { text: text.clone(), is_given_up: AtomicBool::new(false) });
        let addresses: Vec<Arc<Address>> = addresses.iter().map(address).collect();
        for address in &addresses {
            let dialer = Dialer {
                address: address.clone(),
                token: token.clone(),
                connections: connections.clone(),
                report: report.clone(),
                n_joined: n_joined.clone(),
            };
            std::thread::Builder::new().name("to-socket".into()).spawn(move || dialer.run())?;
        }
        Ok(Self { connections, reported, addresses, is_closed: false })
    }
}

fn lock(connections: &Connections) -> std::sync::MutexGuard<'_, BTreeMap<WorkerId, Connection>> {
    connections.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the connection to one worker.
struct Dialer {
    address: Arc<Address>,
    token: Token,
    connections: Connections,
    report: Sender<TransportEvent>,
    n_joined: Arc<AtomicU64>,
}

impl Dialer {
    fn run(self) {
        let label = &self.address.text;
        let mut pause = PAUSES[0];
        while !self.address.is_given_up.load(Ordering::SeqCst) {
            let is_heard = match self.connect() {
                Ok(stream) => {
                    let began = Instant::now();
                    let conversed = self.converse(stream);
                    if began.elapsed() > PAUSES[1] {
                        // It was at work, and may be back soon.
                        pause = PAUSES[0];
                    }
                    conversed.unwrap_or_else(|error| self.unreached(label, &error))
                }
                Err(error) => self.unreached(label, &error),
            };
            if !is_heard {
                return;
            }
            let until = Instant::now() + pause;
            pause = (pause * 2).min(PAUSES[1]);
            while Instant::now() < until && !self.address.is_given_up.load(Ordering::SeqCst) {
                std::thread::sleep(PAUSES[0]);
            }
        }
    }

    fn unreached(&self, label: &str, error: &io::Error) -> bool {
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                "it closed the connection before both had shown the token\n  hint: both sides need the same --token-file, and a worker serves one coordinator at a time"
                    .to_owned()
            }
            io::ErrorKind::ConnectionRefused => {
                "nobody listens there, and it is tried again until somebody does\n  hint: start `tidemill worker --listen` there".to_owned()
            }
            _ if is_timeout(error) => "it does not answer as a worker does".to_owned(),
            _ => error.to_string(),
        };
        self.report.send(TransportEvent::Unreached { label: label.to_owned(), reason }).is_ok()
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "there is no such host");
        for address in self.address.text.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(mut stream) => {
                    prepare(&stream)?;
                    if !self.token.present(&mut stream)? {
                        return Err(io::Error::other(
                            "it does not know the token\n  hint: both sides need the same --token-file",
                        ));
                    }
                    trusted(&stream)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Carries frames until the connection is lost; false if nobody listens any more.
    fn converse(&self, stream: TcpStream) -> io::Result<bool> {
        let frames = FrameSender::new(stream.try_clone()?)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let worker = self.n_joined.fetch_add(1, Ordering::SeqCst);
        lock(&self.connections).insert(worker, Connection { frames, stream, address: self.address.clone() });
        let label = self.address.text.clone();
        if self.report.send(TransportEvent::Joined { worker, label }).is_err() {
            return Ok(false);
        }
        let reason = report_answers(worker, &mut reader, &self.report);
        lock(&self.connections).remove(&worker);
        Ok(self.report.send(TransportEvent::Lost { worker, reason }).is_ok())
    }
}

impl Transport for Sockets {
    fn submit(&mut self, worker: WorkerId, frame: Vec<u8>) {
        if let Some(connection) = lock(&self.connections).get(&worker) {
            connection.frames.send(frame);
        }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Vec<TransportEvent>, EvaluateError> {
        let mut events = drain(&self.reported, timeout);
        let is_given_up = |address: &Arc<Address>| address.is_given_up.load(Ordering::SeqCst);
        if self.addresses.iter().all(is_given_up) && !std::mem::replace(&mut self.is_closed, true) {
            events.push(TransportEvent::Closed { reason: "none of the workers can take part".into() });
        }
        Ok(events)
    }

    fn dismiss(&mut self, worker: WorkerId, may_return: bool) {
        if let Some(connection) = lock(&self.connections).remove(&worker) {
            connection.address.is_given_up.fetch_or(!may_return, Ordering::SeqCst);
            // It may be gone already.
            drop(connection.stream.shutdown(Shutdown::Both));
        }
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        self.addresses.iter().for_each(|address| address.is_given_up.store(true, Ordering::SeqCst));
        for connection in std::mem::take(&mut *lock(&self.connections)).into_values() {
            drop(connection.stream.shutdown(Shutdown::Both));
        }
    }
}
