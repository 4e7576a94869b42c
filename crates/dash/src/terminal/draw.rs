//! The whole screen: which panels, where, and how large. Small terminals get fewer panels, never squeezed ones.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use tidemill_telemetry::{Snapshot, Timestamp};

use super::panel::{busy, convergence, event, foot, head, help, lane, note, phase, top};
use super::replay::Pace;
use super::standing::Standing;
use super::theme::Theme;
use super::view::{Page, View};

/// All that the screen is made of.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The run.
    pub snapshot: &'a Snapshot,
    /// What of it is looked at.
    pub view: &'a View,
    /// How the run stands.
    pub standing: Standing,
    /// The present, or the time that a replay has reached.
    pub now: Timestamp,
    /// Colours.
    pub theme: Theme,
    /// The replay, if it is one.
    pub pace: Option<Pace>,
    /// What there is to say while the run has said nothing.
    pub silence: &'a str,
}

impl Scene<'_> {
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

/// Draws the screen. Returns the most lines by which its list can be moved.
pub fn draw(scene: &Scene<'_>, area: Rect, buf: &mut Buffer) -> usize {
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
    head::draw(scene, head_area, buf);
    foot::draw(scene, foot_area, buf);
    let most = match scene.view.page {
        _ if scene.standing == Standing::Waiting => head::draw_waiting(scene, body, buf),
        Page::Overview => overview(scene, body, buf),
        Page::Lanes => lanes(scene, body, buf),
        Page::Best => best(scene, body, buf),
        Page::Events => events(scene, body, buf),
    };
    if scene.view.is_help {
        help::draw(scene, body, buf);
    }
    most
}

fn overview(scene: &Scene<'_>, area: Rect, buf: &mut Buffer) -> usize {
    if area.width < 80 {
        return narrow(scene, area, buf);
    }
    let phase_rows = phase::n_rows(scene).max(lane::n_rows(scene));
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
    convergence::draw(scene, left, buf);
    through_time(scene, right, buf);
    if let Some(row) = rows.get(1) {
        let [left, right] = halves(*row, 50);
        phase::draw(scene, left, buf);
        lane::draw(scene, right, buf, 0);
    }
    let Some(row) = rows.get(2) else { return 0 };
    let [left, right] = halves(*row, 45);
    top::draw(scene, left, buf, 0);
    event::draw(scene, right, buf)
}

/// Draws a panel and returns by how many lines its list can be moved.
type Panel = fn(&Scene<'_>, Rect, &mut Buffer) -> usize;

/// One panel beneath the other, as many as there is room for.
fn narrow(scene: &Scene<'_>, area: Rect, buf: &mut Buffer) -> usize {
    let panels: [(u16, Panel); 4] = [
        (PANEL_ROWS, convergence::draw),
        (phase::n_rows(scene).clamp(5, 9), phase::draw),
        (lane::n_rows(scene).clamp(5, 9), |scene, area, buf| lane::draw(scene, area, buf, 0)),
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
    panels.iter().zip(areas.iter()).fold(0, |most, ((_, draw), area)| most.max(draw(scene, *area, buf)))
}

fn lanes(scene: &Scene<'_>, area: Rect, buf: &mut Buffer) -> usize {
    if area.height < 2 * PANEL_ROWS {
        return lane::draw(scene, area, buf, scene.view.scroll);
    }
    let phase_rows = phase::n_rows(scene).min(area.height / 2);
    let lane_rows = lane::n_roomy_rows(scene);
    // Lanes are not stretched: what they do not need shows the time before.
    let left_over = area.height.saturating_sub(phase_rows + lane_rows);
    let left_over = if left_over >= PANEL_ROWS { Constraint::Fill(1) } else { Constraint::Length(0) };
    let [above, middle, below] =
        Layout::vertical([Constraint::Min(lane_rows), Constraint::Length(phase_rows), left_over]).areas(area);
    phase::draw(scene, middle, buf);
    if below.height >= PANEL_ROWS {
        let [left, right] = halves(below, 50);
        busy::draw_busy(scene, left, buf);
        busy::draw_rate(scene, right, buf);
    }
    lane::draw(scene, above, buf, scene.view.scroll)
}

fn best(scene: &Scene<'_>, area: Rect, buf: &mut Buffer) -> usize {
    if area.height < 2 * PANEL_ROWS {
        return top::draw(scene, area, buf, scene.view.scroll);
    }
    let [above, below] = Layout::vertical([Constraint::Percentage(45), Constraint::Fill(1)]).areas(area);
    convergence::draw(scene, above, buf);
    top::draw(scene, below, buf, scene.view.scroll)
}

fn events(scene: &Scene<'_>, area: Rect, buf: &mut Buffer) -> usize {
    let n_notes = note::n_rows(scene, area.width);
    if n_notes == 0 || area.height < 2 * PANEL_ROWS {
        return event::draw(scene, area, buf);
    }
    let rows = n_notes.min(area.height * 2 / 5);
    let [above, below] = Layout::vertical([Constraint::Length(rows), Constraint::Fill(1)]).areas(area);
    note::draw(scene, above, buf);
    event::draw(scene, below, buf)
}

/// The device's share and the pace, one above the other; what was never told takes no room.
fn through_time(scene: &Scene<'_>, area: Rect, buf: &mut Buffer) {
    let has_busy = scene.snapshot.busy.newest().is_some();
    if !has_busy {
        busy::draw_rate(scene, area, buf);
    } else if area.height < PANEL_ROWS + 4 {
        busy::draw_busy(scene, area, buf);
    } else {
        let [above, below] = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas(area);
        busy::draw_busy(scene, above, buf);
        busy::draw_rate(scene, below, buf);
    }
}

fn halves(area: Rect, left_percent: u16) -> [Rect; 2] {
    Layout::horizontal([Constraint::Percentage(left_percent), Constraint::Fill(1)]).areas(area)
}
