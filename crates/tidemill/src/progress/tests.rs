//! Progress lines in a terminal emulator.

use std::io;
use std::num::NonZero;

use indicatif::TermLike;
use tidemill_market::{LoadProgress, LoadStage, LoadState};

use super::loading::{loading_bar, loading_text};
use super::*;

/// The widths that tables and progress lines are looked at in.
const WIDTHS: [u16; 5] = [60, 80, 100, 130, 200];

/// A terminal of ten rows.
#[derive(Clone)]
struct Emulator(Arc<Mutex<vt100::Parser>>);

impl std::fmt::Debug for Emulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Emulator")
    }
}

impl Emulator {
    fn new(width: u16) -> Self {
        Self(Arc::new(Mutex::new(vt100::Parser::new(size(10), size(width), 0))))
    }

    fn send(&self, bytes: &str) -> io::Result<()> {
        self.0.lock().unwrap().process(bytes.as_bytes());
        Ok(())
    }

    /// The rows that are not empty; none may be the second part of another.
    fn rows(&self) -> Vec<String> {
        let parser = self.0.lock().unwrap();
        let screen = parser.screen();
        let (n_rows, width) = (screen.size().0.get(), screen.size().1.get());
        for row in 0..n_rows {
            assert!(!screen.row_wrapped(row), "a line wraps at {width}: {}", screen.contents());
        }
        screen.rows(0, width).map(|row| row.trim_end().to_owned()).filter(|row| !row.is_empty()).collect()
    }
}

impl TermLike for Emulator {
    fn width(&self) -> u16 {
        self.0.lock().unwrap().screen().size().1.get()
    }
    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        if n > 0 { self.send(&format!("\x1b[{n}A")) } else { Ok(()) }
    }
    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        if n > 0 { self.send(&format!("\x1b[{n}B")) } else { Ok(()) }
    }
    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        if n > 0 { self.send(&format!("\x1b[{n}C")) } else { Ok(()) }
    }
    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        if n > 0 { self.send(&format!("\x1b[{n}D")) } else { Ok(()) }
    }
    fn write_line(&self, text: &str) -> io::Result<()> {
        self.send(&format!("{text}\r\n"))
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        self.send(text)
    }
    fn clear_line(&self) -> io::Result<()> {
        self.send("\r\x1b[2K")
    }
    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

fn size(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).unwrap()
}

fn parts(done: u64, total: u64, message: &str) -> LineParts {
    LineParts {
        speed: speed(48_211.7),
        left: left(Duration::from_secs(754)),
        ..LineParts::new(done, Some(total), "trials", message.into())
    }
}

#[test]
fn a_line_gives_up_the_speed_then_the_time_then_the_message_and_never_the_count() {
    let line = |width| parts(1_250_000, 5_000_000, "best 2.310").text(width);
    assert_eq!(
        line(200),
        "████████░░░░░░░░░░░░░░░░░░░░░░░░ 1,250,000/5,000,000 trials  48,211/s  13m left  best 2.310"
    );
    assert_eq!(line(130), line(200));
    assert_eq!(line(100), line(200));
    assert_eq!(line(80), "█████░░░░░░░░░░░░░░░ 1,250,000/5,000,000 trials  48,211/s  13m left  best 2.310");
    assert_eq!(line(60), "1,250,000/5,000,000 trials  48,211/s  13m left  best 2.310");
    assert_eq!(line(58), "██░░░░░░ 1,250,000/5,000,000 trials  13m left  best 2.310");
    assert_eq!(line(45), "1,250,000/5,000,000 trials  best 2.310");
    assert_eq!(line(30), "1,250,000/5,000,000 trials");
    assert_eq!(line(10), "1,250,000");
    for width in 0..240 {
        for (done, total) in [(0, 0), (7, 10), (9_999_999_999, 10_000_000_000)] {
            for message in
                ["", "best –", "perps-trend on NVIDIA GeForce RTX 4090, 24 GiB, 128 multiprocessors"]
            {
                let line = parts(done, total, message).text(width);
                assert!(line.chars().count() < width.max(1), "{width}: {line}");
            }
        }
    }
}

#[test]
fn the_line_stays_one_row_of_the_terminal_while_it_grows_and_others_print() {
    for width in WIDTHS {
        let emulator = Emulator::new(width);
        let target = ProgressDrawTarget::term_like(Box::new(emulator.clone()));
        let line = ProgressLine::drawn_on(target, 10_000_000, "trials", move || width.into());
        for done in [0, 1, 999, 123_456, 9_999_999, 10_000_000] {
            line.set_position(done);
            line.set_message(format!("best {}", number::short(Some(done as f64 / 7.0))));
            line.bar.force_draw();
            let rows = emulator.rows();
            assert_eq!(rows.len(), 1, "{width}: {rows:?}");
            assert!(rows[0].contains(&format!("{}/10,000,000 trials", number::count(done))), "{rows:?}");
        }
        line.suspend(|| emulator.write_line("note: something happened").unwrap());
        line.bar.force_draw();
        assert_eq!(emulator.rows().len(), 2);
        line.finish_and_clear();
        assert_eq!(emulator.rows(), ["note: something happened"]);
    }
}

fn state(stage: LoadStage, bytes: Option<u64>, bytes_done: u64) -> LoadState {
    LoadState { stage, files: 12, files_done: 3, bytes, bytes_done }
}

#[test]
fn a_load_says_what_it_is_doing_once_it_takes_longer_than_a_second() {
    let text = |state: &LoadState, ms| loading_text(state, Duration::from_millis(ms), 100);
    let half = state(LoadStage::Reading, Some(1_180_000_000), 590_000_000);
    assert_eq!(text(&half, 999), "");
    assert_eq!(
        text(&half, 2_000),
        "████████████████░░░░░░░░░░░░░░░░ 590/1,180 MB  295/s  2s left  3 of 12 files"
    );
    let piped = state(LoadStage::Reading, None, 590_000_000);
    assert_eq!(text(&piped, 2_000), "590 MB  295/s  3 of 12 files");
    let small = state(LoadStage::Reading, Some(4_200), 0);
    assert_eq!(text(&small, 2_000), "░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ 0/4 kB  0/s  3 of 12 files");
    assert_eq!(text(&state(LoadStage::Cleaning(1), None, 0), 2_000), "cleaning 1 symbol");
    assert_eq!(text(&state(LoadStage::Finding, None, 0), 2_000), "looking for files");
    let joined =
        LoadState { files: 1, ..state(LoadStage::Joining("ml/scores.parquet".into()), Some(8_000_000), 8) };
    assert_eq!(text(&joined, 9_000), "░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ 0/8,000 kB  joining scores.parquet");
}

#[test]
fn the_line_of_a_load_is_gone_when_it_is_over() {
    let emulator = Emulator::new(80);
    let target = ProgressDrawTarget::term_like(Box::new(emulator.clone()));
    let bar = loading_bar(target, LoadProgress::default(), || 80).with_elapsed(Duration::from_secs(5));
    bar.force_draw();
    assert_eq!(emulator.rows(), ["looking for files"]);
    bar.finish_and_clear();
    assert_eq!(emulator.rows(), Vec::<String>::new());
}
