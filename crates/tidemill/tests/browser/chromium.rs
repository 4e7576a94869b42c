//! A headless Chromium, driven by its own protocol: one page, what it logs and what it asks for.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

/// How long anything may take that a test waits for. Programs that are not optimised on a busy machine are slow.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// A browser with one page.
pub struct Page {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    n_asked: u64,
    /// Errors that the page logged, and scripts that broke.
    pub problems: Vec<String>,
    /// Requested URLs.
    pub requests: Vec<String>,
    _profile: TempDir,
}

/// The browser of this machine; `None` with a stated reason if there is none and none is required.
pub fn open() -> Option<Page> {
    let Some(program) = find() else {
        let reason = "no Chromium or Chrome was found; TIDEMILL_BROWSER may name one";
        tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_BROWSER", reason);
        return None;
    };
    Some(Page::new(&program))
}

fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("TIDEMILL_BROWSER").filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

impl Page {
    fn new(program: &std::path::Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let process = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-port=0", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It writes its port, then the path of its socket.
        let file = profile.path().join("DevToolsActivePort");
        let text = until("the browser starts", || {
            let text = std::fs::read_to_string(&file).ok()?;
            (text.lines().count() >= 2).then_some(text)
        });
        let (port, path) = text.trim().split_once('\n').unwrap();
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, _) = tungstenite::client(format!("ws://127.0.0.1:{port}{path}"), stream).unwrap();
        let mut page = Self {
            process,
            socket,
            session: None,
            n_asked: 0,
            problems: Vec::new(),
            requests: Vec::new(),
            _profile: profile,
        };
        let target = page.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = page.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page.size(1280, 900);
        page
    }

    /// Sends a command and waits for its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.n_asked += 1;
        let mut message = json!({ "id": self.n_asked, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let mut heard: Value = serde_json::from_str(&text).unwrap();
            if heard["id"] == self.n_asked {
                assert!(heard.get("error").is_none(), "{method}: {}", heard["error"]);
                return heard["result"].take();
            }
            self.hear(&heard);
        }
    }

    fn hear(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.problems.push(params["exceptionDetails"]["exception"]["description"].to_string());
            }
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.problems.push(format!("{} {}", params["entry"]["text"], params["entry"]["url"]));
            }
            Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                self.problems.push(params["args"].to_string());
            }
            Some("Network.requestWillBeSent") => {
                self.requests.extend(params["request"]["url"].as_str().map(str::to_owned));
            }
            _ => {}
        }
    }

    /// What an expression of the page is.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// A text of the page.
    pub fn text(&mut self, selector: &str) -> String {
        let found = self.eval(&format!("document.querySelector({})?.textContent ?? null", json!(selector)));
        found.as_str().unwrap_or_else(|| panic!("there is no {selector}")).to_owned()
    }

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        let began = Instant::now();
        while self.eval(&format!("Boolean({expression})")) != true {
            if began.elapsed() > PATIENCE {
                let body = self.eval("document.body.innerText");
                panic!(
                    "not within {PATIENCE:?}: {expression}\n{}\n{:?}",
                    body.as_str().unwrap_or(""),
                    self.problems
                );
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses the button of the mouse in the middle of what is found.
    pub fn click(&mut self, selector: &str) {
        let place = self.eval(&format!(
            "(() => {{ const node = document.querySelector({}); node.scrollIntoView({{ block: 'center' }}); \
             const box = node.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        ));
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            let button = if kind == "mouseMoved" { "none" } else { "left" };
            let params =
                json!({ "type": kind, "x": place[0], "y": place[1], "button": button, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", params);
        }
    }

    /// Clicks until something holds: what is drawn anew between press and release hears of no click, and a person tries again.
    pub fn click_until(&mut self, selector: &str, expression: &str) {
        let began = Instant::now();
        while self.eval(&format!("Boolean({expression})")) != true && began.elapsed() < PATIENCE {
            if self.eval(&format!("document.querySelector({}) !== null", json!(selector))) == true {
                self.click(selector);
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        self.wait(expression);
    }

    /// Presses a key, such as `Tab` or `Enter`.
    pub fn key(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { "" };
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let params =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", params);
        }
    }

    /// Writes into what has the focus.
    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Goes to an address.
    pub fn go(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        self.wait("document.readyState === 'complete' && document.querySelector('#main')");
    }

    /// Sets the size of the window; a narrow one is a phone.
    pub fn size(&mut self, width: u32, height: u32) {
        let params =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", params);
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until there is something.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
