//! Who is refused, and that no name leads out of the folder.

use std::net::{SocketAddr, TcpStream};

use tidemill_dash::web::{Options, WebError, serve};

use crate::client::{ask, get};
use crate::specimen::{Echo, Place, options};

const TOKEN: &str = "a-token-of-a-test";

#[test]
fn a_name_that_was_bound_to_this_machine_is_refused() {
    let place = Place::new();
    let asked = |host: &str| ask(place.address(), "GET", "/api/runs", &[("Host", host)]).status;
    assert_eq!(asked("evil.example"), 421);
    assert_eq!(asked(&format!("evil.example:{}", place.address().port())), 421);
    assert_eq!(asked("localhost:1234"), 200);
    assert_eq!(ask(place.address(), "GET", "/", &[("Host", "evil.example")]).status, 421);
}

#[test]
fn pages_of_other_origins_are_refused() {
    let place = Place::new();
    let host = place.address().to_string();
    let asked =
        |more: (&str, &str)| ask(place.address(), "GET", "/api/runs", &[("Host", &host), more]).status;
    assert_eq!(asked(("Origin", "https://evil.example")), 403);
    assert_eq!(asked(("Origin", "null")), 403);
    assert_eq!(asked(("Sec-Fetch-Site", "cross-site")), 403);
    assert_eq!(asked(("Origin", &format!("http://{host}"))), 200);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        assert_eq!(ask(place.address(), method, "/api/runs", &[("Host", &host)]).status, 405, "{method}");
    }
}

#[test]
fn every_answer_carries_the_headers() {
    let place = Place::new();
    let address = place.address();
    let replies = [
        get(address, "/"),
        get(address, "/main.js"),
        get(address, "/api/runs"),
        get(address, "/api/runs/none"),
        ask(address, "GET", "/", &[("Host", "evil.example")]),
    ];
    for reply in replies {
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let place = Place::new();
    std::fs::create_dir_all(place.dir.path().join("outside")).unwrap();
    std::fs::write(place.dir.path().join("outside/journal.jsonl"), "secret").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(place.dir.path().join("outside"), place.run("link")).unwrap();
    for name in [
        "..%2Foutside",
        "%2e%2e%2Foutside",
        "first%2F..%2F..%2Foutside",
        "%2Fetc",
        "..",
        "%2e%2e",
        "link",
        "C:%5CWindows",
        "first%00",
        "..%5Coutside",
        "%252e%252e%252foutside",
    ] {
        for rest in ["", "/events", "/trials", "/bars", "/parameters", "/trials/0"] {
            let reply = get(place.address(), &format!("/api/runs/{name}{rest}"));
            assert_eq!(reply.status, 404, "{name}{rest}: {}", reply.body);
            assert!(!reply.body.contains("secret"));
        }
    }
    for path in ["/../Cargo.toml", "/..%2f..%2fCargo.toml", "//etc/passwd", "/api/../../etc/passwd"] {
        assert_eq!(get(place.address(), path).status, 404, "{path}");
    }
}

#[test]
fn a_token_lets_in_by_header_or_once_by_the_address() {
    let place = Place::with_token(Some(TOKEN));
    let (address, host) = (place.address(), place.address().to_string());
    let asked = |target: &str, more: (&str, &str)| ask(address, "GET", target, &[("Host", &host), more]);
    for target in
        ["/", "/main.js", "/api/runs", "/api/runs/first/events", "/?token=a-token-of-a-tesT", "/?token="]
    {
        assert_eq!(get(address, target).status, 401, "{target}");
    }
    assert_eq!(asked("/api/runs", ("Authorization", &format!("Bearer {TOKEN}"))).status, 200);
    assert_eq!(asked("/api/runs", ("X-Tidemill-Token", TOKEN)).status, 200);
    assert_eq!(asked("/api/runs", ("Authorization", "Bearer a-token-of-a-tesu")).status, 401);
    // The address of an API call is logged by too many to carry a secret.
    assert_eq!(get(address, &format!("/api/runs?token={TOKEN}")).status, 401);

    let first = get(address, &format!("/?token={TOKEN}"));
    assert_eq!((first.status, first.header("location")), (303, Some("/")));
    let cookie = first.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(asked("/api/runs", ("Cookie", pair)).status, 200);
    assert_eq!(asked("/", ("Cookie", &format!("other=1; {pair}"))).status, 200);
    let away = get(address, &format!("//evil.example/?token={TOKEN}"));
    assert_eq!(away.header("location"), Some("/evil.example/"));
}

#[test]
fn an_address_for_others_needs_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let wanted: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let open = Options { address: wanted, ..options(dir.path(), None) };
    assert!(matches!(serve(open, Echo), Err(WebError::NoToken { address }) if address == wanted));
    let server = serve(Options { address: wanted, ..options(dir.path(), Some(TOKEN)) }, Echo).unwrap();
    let address: SocketAddr = ([127, 0, 0, 1], server.address().port()).into();
    assert_eq!(ask(address, "GET", "/api/runs", &[("Host", "machine.example")]).status, 401);
    let known = [("Host", "machine.example"), ("X-Tidemill-Token", TOKEN)];
    assert_eq!(ask(address, "GET", "/api/runs", &known).status, 200);
    assert!(server.link().starts_with("http://127.0.0.1:") && server.link().ends_with(TOKEN));
}

#[test]
fn a_server_that_is_dropped_ends_at_once_also_with_streams_open() {
    let place = Place::new();
    let address = place.address();
    let events = crate::client::Events::open(address, "/api/runs/first/events");
    // A server that waited for its streams would wait here for ever: the stream is open until this thread lets go of it.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(place);
        let _ = tell.send(());
    });
    told.recv_timeout(crate::client::LONG).expect("the server ends although a stream is open");
    events.end();
}

#[test]
fn nonsense_breaks_nothing() {
    use std::io::{Read, Write};
    let place = Place::new();
    for bytes in [
        &b"\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"\xff\xfe\x00\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(place.address()).unwrap();
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
    }
    assert_eq!(get(place.address(), "/api/runs").status, 200);
}
