//! What a person sees in the terminal, compared with files in `terminal/expected`.
//!
//! `TIDEMILL_RENEW=1 cargo test -p tidemill-dash --test terminal` writes the files anew; look at the difference before you commit it.

#[path = "terminal/specimen.rs"]
mod specimen;

use std::path::Path;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use specimen::Specimen;
use tidemill_dash::terminal::screen::{App, ScreenExit};
use tidemill_dash::terminal::{
    Page, ProcessState, RunStatus, ScreenInput, Summary, Theme, View, check_phases, draw, line, picture,
    summary,
};
use tidemill_telemetry::{Snapshot, Timestamp};

fn folded(run: &Specimen) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for event in &run.events {
        snapshot.apply(event);
    }
    snapshot
}

/// The screen of a run some seconds after its last event.
fn shown(run: &Specimen, view: &View, theme: Theme, size: (u16, u16)) -> Buffer {
    let snapshot = folded(run);
    let now = Timestamp::from_ms(run.end_ms() + 2000);
    let status = RunStatus::of(&snapshot, now, ProcessState::Unknown);
    ScreenInput { snapshot: &snapshot, view, status, now, theme, pace: None, silence: "run" }
        .drawn(size.0, size.1)
}

fn text(buffer: &Buffer) -> String {
    let rows = (buffer.area.top()..buffer.area.bottom()).map(|y| {
        let row: String =
            (buffer.area.left()..buffer.area.right()).map(|x| buffer[(x, y)].symbol()).collect();
        row.trim_end().to_owned() + "\n"
    });
    rows.collect()
}

#[track_caller]
fn is_as_expected(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal/expected").join(name);
    if std::env::var_os("TIDEMILL_RENEW").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == actual, "{} expects\n{expected}\nbut there is\n{actual}", path.display());
}

#[test]
fn the_overview_fits_every_size() {
    for (columns, rows) in [(200, 50), (100, 30), (60, 20), (40, 10)] {
        let buffer =
            shown(&specimen::gpu_sweep(400, 4), &View::default(), Theme::coloured(), (columns, rows));
        is_as_expected(&format!("overview-{columns}x{rows}.txt"), &text(&buffer));
    }
}

#[test]
fn every_page_shows_what_it_is_for() {
    for page in Page::ALL {
        let view = View { page, ..View::default() };
        let buffer = shown(&specimen::tuned(), &view, Theme::coloured(), (110, 32));
        is_as_expected(&format!("page-{}.txt", page.name().to_lowercase()), &text(&buffer));
    }
}

#[test]
fn a_run_of_another_kind_shows_its_own_values() {
    let buffer = shown(&specimen::coloring(), &View::default(), Theme::coloured(), (100, 30));
    let text = text(&buffer);
    is_as_expected("coloring.txt", &text);
    for part in ["k=48", "conflicts=", "1.9e8 it/s", "iterations/s", "tempering"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("trial") && !text.contains("best="), "{text}");
}

#[test]
fn a_fall_back_a_kill_and_a_resumption_are_seen_at_once() {
    let size = (100, 30);
    let see = |run: &Specimen| text(&shown(run, &View::default(), Theme::plain(), size));
    assert!(see(&specimen::fallback()).contains("fell back to the CPU: the device was lost"));
    assert!(see(&specimen::resumed()).contains("resumed 1×"));
    let killed = specimen::killed();
    let snapshot = folded(&killed);
    let now = Timestamp::from_ms(killed.end_ms() + 60_000);
    let status = RunStatus::of(&snapshot, now, ProcessState::Unknown);
    let view = View::default();
    let input = ScreenInput {
        snapshot: &snapshot,
        view: &view,
        status,
        now,
        theme: Theme::plain(),
        pace: None,
        silence: "",
    };
    assert!(
        text(&input.drawn(100, 30)).contains("killed or silent since 2026-01-06 12:00:00 UTC (1m00s ago)")
    );
}

#[test]
fn no_colour_is_used_where_none_is_wanted() {
    let size = (120, 40);
    for page in Page::ALL {
        let view = View { page, ..View::default() };
        let plain = shown(&specimen::fallback(), &view, Theme::plain(), size);
        let is_plain = |cell: &ratatui::buffer::Cell| {
            (cell.fg, cell.bg) == (ratatui::style::Color::Reset, ratatui::style::Color::Reset)
        };
        assert!(plain.content.iter().all(is_plain));
        let coloured = shown(&specimen::fallback(), &view, Theme::coloured(), size);
        assert_eq!(text(&plain), text(&coloured), "what a colour says, a word says too");
        assert!(!coloured.content.iter().all(is_plain));
    }
}

#[test]
fn no_size_and_no_run_is_too_odd_to_be_drawn() {
    let runs = [specimen::tuned(), specimen::fallback()];
    let mut snapshots: Vec<Snapshot> = runs.iter().map(folded).collect();
    snapshots.push(Snapshot::default());
    for snapshot in &snapshots {
        for columns in [0, 1, 3, 7, 12, 20, 30, 40, 45, 60, 80, 90] {
            for rows in [0, 1, 2, 3, 4, 5, 6, 9, 10, 13, 17, 26] {
                for page in Page::ALL {
                    let is_help = rows % 2 == 0;
                    let (scroll, pan, zoom) = (1000, 3, -12);
                    let view = View { page, is_help, scroll, pan, zoom, ..View::default() };
                    let now = Timestamp::from_ms(specimen::START_MS);
                    let status = RunStatus::of(snapshot, now, ProcessState::Alive);
                    let input = ScreenInput {
                        snapshot,
                        view: &view,
                        status,
                        now,
                        theme: Theme::coloured(),
                        pace: None,
                        silence: "x",
                    };
                    input.drawn(columns, rows);
                }
            }
        }
    }
}

#[test]
fn a_filter_hides_the_other_phases() {
    let view = View { filter: "kern".into(), page: Page::Events, ..View::default() };
    let text = text(&shown(&specimen::gpu_sweep(100, 2), &view, Theme::plain(), (120, 30)));
    assert!(text.contains("[KERNEL]") && !text.contains("[ASK]"), "{text}");
    assert!(text.contains("only kern"));
}

#[test]
fn the_summary_tells_everything_and_with_a_phase_that_phase() {
    let runs = specimen::all();
    for (name, run) in &runs {
        let snapshot = &folded(run);
        let now = Timestamp::from_ms(run.end_ms() + 60_000);
        let of = Summary { snapshot, phases: &[], now, process: ProcessState::Unknown };
        is_as_expected(&format!("summary-{name}.txt"), &summary(&of));
    }
    let snapshot = &folded(&runs[0].1);
    let now = Timestamp::from_ms(specimen::START_MS);
    let phases = &["kernel".to_owned()];
    let text = summary(&Summary { snapshot, phases, now, process: ProcessState::Unknown });
    assert!(text.contains("kernel") && !text.contains("upload") && !text.contains("trial_"), "{text}");
}

#[test]
fn an_unknown_phase_lists_those_there_are() {
    let snapshot = folded(&specimen::coloring());
    assert_eq!(check_phases(&snapshot, &["tabu".into(), "improvement".into()]), Ok(()));
    let error = check_phases(&snapshot, &["kernel".into()]).unwrap_err();
    assert!(error.to_string().contains("no phase `kernel`") && error.to_string().contains("tabu, tempering"));
}

#[test]
fn lines_have_the_documented_form() {
    let run = specimen::fallback();
    let snapshot = folded(&run);
    let lines: String = run
        .events
        .iter()
        .take(8)
        .chain(&run.events[360..])
        .map(|event| line(event, &snapshot) + "\n")
        .collect();
    is_as_expected("lines.txt", &lines);
}

#[test]
fn the_picture_holds_the_text_of_the_screen() {
    let svg = picture(&shown(&specimen::gpu_sweep(40, 2), &View::default(), Theme::coloured(), (100, 30)));
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("ema-cross\u{a0}on\u{a0}BTCUSDT") && svg.contains("prefers-color-scheme:dark"));
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
}

fn press(app: &mut App<'_>, code: KeyCode) -> Option<ScreenExit> {
    app.key(KeyEvent::new(code, KeyModifiers::NONE)).unwrap()
}

#[test]
fn the_screen_follows_a_journal_that_comes_later_and_replays_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
    let journal = dir.path().join("journal.jsonl");
    let mut app = App::new(&journal, View::default(), Theme::plain(), || ProcessState::Unknown);
    let began = Instant::now();
    let mut see = |app: &mut App<'_>| {
        terminal.draw(|frame| app.draw(frame.area(), frame.buffer_mut())).unwrap();
        text(terminal.backend().buffer())
    };
    app.tick(began).unwrap();
    assert!(see(&mut app).contains("waiting for a journal"));
    press(&mut app, KeyCode::Char('r'));
    assert!(see(&mut app).contains("waiting for a journal"), "there is nothing to replay");

    specimen::gpu_sweep(50, 2).write(dir.path());
    app.tick(began + Duration::from_secs(1)).unwrap();
    let screen = see(&mut app);
    assert!(screen.contains(" complete ") && screen.contains("204,800 of 204,800 trials"), "{screen}");

    press(&mut app, KeyCode::Char('r'));
    app.tick(began + Duration::from_secs(1)).unwrap();
    app.tick(began + Duration::from_millis(1100)).unwrap();
    let screen = see(&mut app);
    assert!(screen.contains(" replay 1× ") && !screen.contains("204,800 of"), "{screen}");
    press(&mut app, KeyCode::Char(' '));
    app.tick(began + Duration::from_secs(60)).unwrap();
    assert!(see(&mut app).contains("1× paused"));
    press(&mut app, KeyCode::Char(' '));
    app.tick(began + Duration::from_secs(120)).unwrap();
    let screen = see(&mut app);
    assert!(screen.contains("at its end") && screen.contains("204,800 of 204,800"), "{screen}");
    press(&mut app, KeyCode::Esc);
    app.tick(began + Duration::from_secs(121)).unwrap();
    assert!(see(&mut app).contains(" complete "));
    assert_eq!(press(&mut app, KeyCode::Char('q')), Some(ScreenExit::Quit));
}

#[test]
fn a_list_stops_at_its_end() {
    let dir = tempfile::tempdir().unwrap();
    specimen::gpu_sweep(100, 2).write(dir.path());
    let view = View { page: Page::Events, ..View::default() };
    let mut app = App::new(dir.path(), view, Theme::plain(), || ProcessState::Unknown);
    app.tick(Instant::now()).unwrap();
    let see = |app: &mut App<'_>| {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 100, 30));
        app.draw(buffer.area, &mut buffer);
        text(&buffer)
    };
    let first = see(&mut app);
    press(&mut app, KeyCode::End);
    let end = see(&mut app);
    press(&mut app, KeyCode::Down);
    assert_eq!(see(&mut app), end);
    press(&mut app, KeyCode::Up);
    assert_ne!(see(&mut app), end, "one step up is seen at once");
    press(&mut app, KeyCode::Home);
    assert_eq!(see(&mut app), first);
}

#[test]
fn two_hundred_thousand_events_are_drawn_from_as_little_as_ten_thousand() {
    let (short, long) = (specimen::gpu_sweep(2_000, 4), specimen::gpu_sweep(40_000, 4));
    assert!(short.events.len() >= 10_000 && long.events.len() >= 200_000);
    // A frame is drawn from the fold and from nothing else, and the fold does not grow.
    let len = |run: &Specimen| serde_json::to_string(&folded(run)).unwrap().len();
    let (short_len, long_len) = (len(&short), len(&long));
    assert!(long_len < short_len * 3 / 2, "{short_len} bytes, then {long_len}");
    let run = long;
    let snapshot = folded(&run);
    let view = View::default();
    let now = Timestamp::from_ms(run.end_ms());
    let status = RunStatus::of(&snapshot, now, ProcessState::Unknown);
    let input = ScreenInput {
        snapshot: &snapshot,
        view: &view,
        status,
        now,
        theme: Theme::coloured(),
        pace: None,
        silence: "",
    };
    let mut buffer = Buffer::empty(Rect::new(0, 0, 200, 50));
    draw(&input, buffer.area, &mut buffer);
    assert!(text(&buffer).contains("163,840,000 of 163,840,000 trials"));
}
