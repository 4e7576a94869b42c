//! A client that sends requests verbatim, also such as no browser would.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Asks with these headers alone.
pub fn ask(address: SocketAddr, method: &str, target: &str, headers: &[(&str, &str)]) -> Reply {
    let mut stream = connect(address);
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(stream, "{method} {target} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").unwrap();
    let mut input = BufReader::new(stream);
    let (status, headers) = head(&mut input);
    let mut body = String::new();
    input.read_to_string(&mut body).unwrap();
    Reply { status, headers, body }
}

/// Asks as a browser on this machine would.
pub fn get(address: SocketAddr, target: &str) -> Reply {
    ask(address, "GET", target, &[("Host", &address.to_string())])
}

/// A stream of events.
pub struct Events {
    input: BufReader<TcpStream>,
}

impl Events {
    pub fn open(address: SocketAddr, target: &str) -> Self {
        let mut stream = connect(address);
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
        let mut input = BufReader::new(stream);
        let (status, headers) = head(&mut input);
        assert_eq!(status, 200);
        assert!(headers.iter().any(|(name, value)| name == "content-type" && value == "text/event-stream"));
        Self { input }
    }

    /// Waits for the end of the stream, which the server brings about.
    pub fn end(mut self) {
        let mut rest = Vec::new();
        // A connection that is cut has ended as well; one that stays silent has not.
        if let Err(error) = self.input.read_to_end(&mut rest) {
            assert!(!matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
        }
    }

    /// The next event, which must come within the time limit of the connection.
    pub fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.input.read_line(&mut line).unwrap(), 0, "the stream ended");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data.trim_end()).unwrap();
            }
        }
    }
}

/// Ends a test that hangs; long enough for any machine.
pub const LONG: Duration = Duration::from_secs(600);

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

fn head(input: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    input.read_line(&mut line).unwrap();
    let status =
        line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{line:?}"));
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    (status, headers)
}
