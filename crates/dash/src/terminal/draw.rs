//! The whole screen: which panels, where, and how large. Small terminals get fewer panels, never squeezed ones.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use tidemill_telemetry::{Snapshot, Timestamp};

use super::panel::{busy, convergence, event, foot, head, help, lane, note, phase, top};
use super::replay::ReplaySpeed;
use super::status::RunStatus;
use super::theme::Theme;
use super::view::{Page, View};

/// Input of the screen.
#[derive(Clone, Copy, Debug)]
pub struct ScreenInput<'a> {
    /// The run.
    pub snapshot: &'a Snapshot,
    /// The chosen page and filters.
    pub view: &'a View,
    /// State of the run.
    pub status: RunStatus,
    /// The present, or the time that a replay has reached.
    pub now: Timestamp,
    /// Colours.
    pub theme: Theme,
    /// The replay, if it is one.
    pub pace: Option<ReplaySpeed>,
    /// Text to show before the first event of the run.
    pub silence: &'a str,
}

impl ScreenInput<'_> {
    /// The whole screen at this size.
    pub fn drawn(&self, columns: u16, rows: u16) -> Buffer {
        let area = Rect::new(0, 0, columns, rows);
        let mut buffer = Buffer::empty(area);
        draw(self, area, &mut buffer);
        buffer
    }
}

/// Rows at which a panel begins to be of use.
const PANEL_ROWS: u16 = 6;

/// Draws the screen. Returns by how many lines its list can scroll.
pub fn draw(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) -> usize {
    let area = area.intersection(buf.area);
    if area.is_empty() {
        return 0;
    }
    let head_rows = match area.height {
        0..4 => 1,
        4..9 => 2,
        _ => 3,
    };
    let foot_rows = u16::from(area.height > 2);
    let [head_area, body, foot_area] =
        Layout::vertical([Constraint::Length(head_rows), Constraint::Fill(1), Constraint::Length(foot_rows)])
            .areas(area);
    head::draw(input, head_area, buf);
    foot::draw(input, foot_area, buf);
    let most = match input.view.page {
        _ if input.status == RunStatus::Waiting => head::draw_waiting(input, body, buf),
        Page::Overview => overview(input, body, buf),
        Page::Lanes => lanes(input, body, buf),
        Page::Best => best(input, body, buf),
        Page::Events => events(input, body, buf),
    };
    if input.view.is_help {
        help::draw(input, body, buf);
    }
    most
}

fn overview(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) -> usize {
    if area.width < 80 {
        return narrow(input, area, buf);
    }
    let phase_rows = phase::n_rows(input).max(lane::n_rows(input));
    let rows: Vec<Rect> = match area.height {
        0..12 => Layout::vertical([Constraint::Fill(1)]).split(area).to_vec(),
        12..22 => Layout::vertical([Constraint::Fill(3), Constraint::Length(phase_rows.clamp(6, 9))])
            .split(area)
            .to_vec(),
        _ => {
            let middle = phase_rows.clamp(7, area.height / 3);
            Layout::vertical([Constraint::Fill(4), Constraint::Length(middle), Constraint::Fill(3)])
                .split(area)
                .to_vec()
        }
    };
    let [left, right] = halves(rows[0], 55);
    convergence::draw(input, left, buf);
    through_time(input, right, buf);
    if let Some(row) = rows.get(1) {
        let [left, right] = halves(*row, 50);
        phase::draw(input, left, buf);
        lane::draw(input, right, buf, 0);
    }
    let Some(row) = rows.get(2) else { return 0 };
    let [left, right] = halves(*row, 45);
    top::draw(input, left, buf, 0);
    event::draw(input, right, buf)
}

/// Draws a panel and returns by how many lines its list can scroll.
type Panel = fn(&ScreenInput<'_>, Rect, &mut Buffer) -> usize;

/// One panel beneath the other, as many as there is room for.
fn narrow(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) -> usize {
    let panels: [(u16, Panel); 4] = [
        (PANEL_ROWS, convergence::draw),
        (phase::n_rows(input).clamp(5, 9), phase::draw),
        (lane::n_rows(input).clamp(5, 9), |input, area, buf| lane::draw(input, area, buf, 0)),
        (PANEL_ROWS, event::draw),
    ];
    let mut left = area.height;
    let mut n_shown = 0;
    for (rows, _) in &panels {
        if n_shown > 0 && *rows > left {
            break;
        }
        left = left.saturating_sub(*rows);
        n_shown += 1;
    }
    // The first and the last of them share what is left over.
    let constraints = panels[..n_shown].iter().enumerate().map(|(at, (rows, _))| match at {
        0 | 3 => Constraint::Min(*rows),
        _ => Constraint::Length(*rows),
    });
    let areas = Layout::vertical(constraints).split(area);
    panels.iter().zip(areas.iter()).fold(0, |most, ((_, draw), area)| most.max(draw(input, *area, buf)))
}

fn lanes(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) -> usize {
    if area.height < 2 * PANEL_ROWS {
        return lane::draw(input, area, buf, input.view.scroll);
    }
    let phase_rows = phase::n_rows(input).min(area.height / 2);
    let lane_rows = lane::n_roomy_rows(input);
    // Lanes are not stretched: what they do not need shows the time before.
    let left_over = area.height.saturating_sub(phase_rows + lane_rows);
    let left_over = if left_over >= PANEL_ROWS { Constraint::Fill(1) } else { Constraint::Length(0) };
    let [above, middle, below] =
        Layout::vertical([Constraint::Min(lane_rows), Constraint::Length(phase_rows), left_over]).areas(area);
    phase::draw(input, middle, buf);
    if below.height >= PANEL_ROWS {
        let [left, right] = halves(below, 50);
        busy::draw_busy(input, left, buf);
        busy::draw_rate(input, right, buf);
    }
    lane::draw(input, above, buf, input.view.scroll)
}

fn best(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) -> usize {
    if area.height < 2 * PANEL_ROWS {
        return top::draw(input, area, buf, input.view.scroll);
    }
    let [above, below] = Layout::vertical([Constraint::Percentage(45), Constraint::Fill(1)]).areas(area);
    convergence::draw(input, above, buf);
    top::draw(input, below, buf, input.view.scroll)
}

fn events(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) -> usize {
    let n_notes = note::n_rows(input, area.width);
    if n_notes == 0 || area.height < 2 * PANEL_ROWS {
        return event::draw(input, area, buf);
    }
    let rows = n_notes.min(area.height * 2 / 5);
    let [above, below] = Layout::vertical([Constraint::Length(rows), Constraint::Fill(1)]).areas(area);
    note::draw(input, above, buf);
    event::draw(input, below, buf)
}

/// The device's share and the pace, one above the other; what was never reported takes no room.
fn through_time(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) {
    let has_busy = input.snapshot.busy.newest().is_some();
    if !has_busy {
        busy::draw_rate(input, area, buf);
    } else if area.height < PANEL_ROWS + 4 {
        busy::draw_busy(input, area, buf);
    } else {
        let [above, below] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
        busy::draw_busy(input, above, buf);
        busy::draw_rate(input, below, buf);
    }
}

fn halves(area: Rect, left_percent: u16) -> [Rect; 2] {
    Layout::horizontal([Constraint::Percentage(left_percent), Constraint::Fill(1)]).areas(area)
}
