//! The full screen: keys, the clock and the journal in, pictures out.
//!
//! The loop is thin; what it does on a key or a tick is in [`App`], which needs no terminal. The picture is drawn anew only when something
//! changed, ten times a second at most.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event as Input, KeyEvent};
use ratatui::layout::Rect;
use tidemill_telemetry::{Event, Follower, ReadError, Timestamp, read_all};

use super::draw::{ScreenInput, draw};
use super::key::KeyAction;
use super::replay::Replay;
use super::status::{ProcessState, RunStatus};
use super::theme::Theme;
use super::view::View;

/// The shortest time between two pictures, and the longest until keys and the journal are polled.
const TICK: Duration = Duration::from_millis(100);

/// A picture is drawn this often even if nothing changed, because a failure to draw shows that the terminal is gone.
const DRAW_ANYWAY: Duration = Duration::from_secs(1);

/// A failure of the screen.
#[derive(Debug, thiserror::Error)]
pub enum ScreenError {
    /// The terminal cannot be drawn to or read from.
    #[error("cannot use the terminal")]
    Terminal(#[from] io::Error),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] ReadError),
}

/// Why the screen was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenExit {
    /// The user quit.
    Quit,
    /// Ctrl-C or a signal.
    Interrupted,
}

/// Shows the journal of a file or folder until the user quits or `stop` is set. The terminal is as before afterwards, also after an
/// error or a panic.
pub fn run(mut app: App<'_>, stop: &AtomicBool) -> Result<ScreenExit, ScreenError> {
    let mut session = Session::open()?;
    // The first look at a long journal may take a while.
    session.terminal.draw(|frame| app.draw(frame.area(), frame.buffer_mut()))?;
    app.is_changed = true;
    let inputs = listen();
    let mut drawn = None;
    loop {
        app.tick(Instant::now())?;
        let since = drawn.map_or(DRAW_ANYWAY, |drawn: Instant| drawn.elapsed());
        if (app.is_changed && since >= TICK) || since >= DRAW_ANYWAY {
            session.terminal.draw(|frame| app.draw(frame.area(), frame.buffer_mut()))?;
            drawn = Some(Instant::now());
        }
        let mut patience = TICK;
        loop {
            match inputs.recv_timeout(patience) {
                Ok(Ok(Input::Key(key))) => {
                    if let Some(left) = app.key(key)? {
                        return Ok(left);
                    }
                }
                Ok(Ok(Input::Resize(..))) => app.is_changed = true,
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error.into()),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(ScreenExit::Interrupted),
            }
            patience = Duration::ZERO;
        }
        if stop.load(Ordering::SeqCst) {
            return Ok(ScreenExit::Interrupted);
        }
    }
}

/// Keys and changes of size, from a thread of their own: reading a terminal that went away may never return, and the screen has to
/// notice it all the same, by the signal or by the picture that cannot be drawn.
fn listen() -> Receiver<io::Result<Input>> {
    let (send, inputs) = mpsc::channel();
    std::thread::spawn(move || {
        loop {
            let input = event::read();
            let is_over = input.is_err();
            if send.send(input).is_err() || is_over {
                return;
            }
        }
    });
    inputs
}

/// The terminal in its other state, for as long as this lives. A panic restores it too, before its message is shown.
struct Session {
    terminal: ratatui::DefaultTerminal,
}

impl Session {
    fn open() -> io::Result<Self> {
        Ok(Self { terminal: ratatui::try_init()? })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A failure here cannot be returned.
        let _ = ratatui::try_restore();
    }
}

/// The state of the screen: the run, the view, and a replay if there is one.
pub struct App<'a> {
    path: PathBuf,
    follower: Follower,
    replay: Option<Replay<Events>>,
    view: View,
    theme: Theme,
    process: Box<dyn FnMut() -> ProcessState + 'a>,
    status: RunStatus,
    ticked: Option<Instant>,
    /// Whether what is drawn would differ from what was drawn last.
    is_changed: bool,
    /// The second that is shown.
    second: i64,
}

type Events = Box<dyn Iterator<Item = Event>>;

impl<'a> App<'a> {
    /// Shows the journal of a file, or of the folder that holds it. `process` is called about once a second.
    pub fn new(path: &Path, view: View, theme: Theme, process: impl FnMut() -> ProcessState + 'a) -> Self {
        Self {
            path: path.to_owned(),
            follower: Follower::open(path),
            replay: None,
            view,
            theme,
            process: Box::new(process),
            status: RunStatus::Waiting,
            ticked: None,
            is_changed: true,
            second: 0,
        }
    }

    /// Handles what happened since the last tick.
    pub fn tick(&mut self, at: Instant) -> Result<(), ReadError> {
        let elapsed =
            self.ticked.replace(at).map_or(Duration::ZERO, |before| at.saturating_duration_since(before));
        if let Some(replay) = &mut self.replay {
            if !self.view.is_paused {
                // The clock in the head moves even where nothing happens.
                self.is_changed |= replay.advance(elapsed) | !replay.pace(false).is_over;
            }
            return Ok(());
        }
        if self.view.is_paused {
            return Ok(());
        }
        let polled = self.follower.poll(|_| {})?;
        self.is_changed |= polled.n_events > 0 || polled.is_restarted;
        let now = Timestamp::now();
        let second = now.as_ms() / 1000;
        if second != self.second || polled.n_events > 0 {
            self.second = second;
            let status = RunStatus::of(self.follower.snapshot(), now, (self.process)());
            // Ages and durations are shown to the second, of what is not over.
            self.is_changed |= status != self.status || !status.is_over() || status == RunStatus::Silent;
            self.status = status;
        }
        Ok(())
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Result<Option<ScreenExit>, ReadError> {
        self.is_changed = true;
        match self.view.key(key) {
            KeyAction::None => {}
            KeyAction::Quit => return Ok(Some(ScreenExit::Quit)),
            KeyAction::Interrupt => return Ok(Some(ScreenExit::Interrupted)),
            KeyAction::Replay => self.start_replay()?,
            KeyAction::Faster => self.replay.iter_mut().for_each(Replay::faster),
            KeyAction::Slower => self.replay.iter_mut().for_each(Replay::slower),
            KeyAction::Present => {
                self.replay = None;
                self.view.is_paused = false;
            }
        }
        Ok(None)
    }

    fn start_replay(&mut self) -> Result<(), ReadError> {
        if self.status == RunStatus::Waiting {
            return Ok(());
        }
        // A line that is not an event is skipped; a file that cannot be read ends the replay there.
        let events = read_all(&self.path)?
            .take_while(|event| !matches!(event, Err(ReadError::Io { .. })))
            .filter_map(Result::ok);
        self.replay = Some(Replay::new(Box::new(events), self.follower.snapshot().elapsed_s()));
        self.view.is_paused = false;
        Ok(())
    }

    /// Draws the current view.
    pub fn draw(&mut self, area: Rect, buf: &mut Buffer) {
        let verb = if self.ticked.is_none() { "reading" } else { "waiting for a journal:" };
        let silence = format!("{verb} {}", self.path.display());
        let most = match &mut self.replay {
            None => draw(&self.present(Timestamp::now(), &silence), area, buf),
            Some(replay) => {
                let pace = Some(replay.pace(self.view.is_paused));
                let (snapshot, now) = (replay.snapshot(), replay.now());
                let status = RunStatus::of(snapshot, now, ProcessState::Unknown);
                let (view, theme, silence) = (&self.view, self.theme, silence.as_str());
                draw(&ScreenInput { snapshot, view, status, now, theme, pace, silence }, area, buf)
            }
        };
        self.view.scroll = self.view.scroll.min(most);
        self.is_changed = false;
    }

    fn present<'b>(&'b self, now: Timestamp, silence: &'b str) -> ScreenInput<'b> {
        ScreenInput {
            snapshot: self.follower.snapshot(),
            view: &self.view,
            status: self.status,
            now,
            theme: self.theme,
            pace: None,
            silence,
        }
    }
}
