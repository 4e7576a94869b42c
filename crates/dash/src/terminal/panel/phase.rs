//! Where the time goes, phase by phase.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::super::draw::ScreenInput;
use super::super::table::{Column, lines};
use super::super::{number, phase};

/// Columns of the bar that shows a share.
const BAR_COLUMNS: usize = 12;

/// Rows that the panel would fill, its frame and header included.
pub fn n_rows(input: &ScreenInput<'_>) -> u16 {
    let n = input.snapshot.phases.keys().filter(|name| input.view.shows(name)).count();
    n.clamp(1, 100) as u16 + 3
}

/// Draws the phases that the filter lets through, with as many figures as there is room for.
pub fn draw(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) -> usize {
    let inside = super::frame("phases", input.theme, area, buf);
    let rows = phase::rows(input.snapshot, |name| input.view.shows(name));
    if rows.is_empty() {
        super::nothing("none yet", input.theme, inside, buf);
        return 0;
    }
    let largest = rows.iter().map(|row| row.share).fold(f64::MIN_POSITIVE, f64::max);
    let bar = |share: f64| {
        let n = (share / largest * BAR_COLUMNS as f64).round().max(0.0) as usize;
        "━".repeat(n.min(BAR_COLUMNS))
    };
    let names = rows.iter().map(|row| number::clean(row.name)).collect();
    let mut columns = vec![
        Column::left("phase", names, 9).styled(rows.iter().map(|row| input.theme.phase(row.idx)).collect()),
        Column::right("of wall", rows.iter().map(|row| number::percent(row.share)).collect(), 8),
        Column::left("", rows.iter().map(|row| bar(row.share)).collect(), 2)
            .styled(rows.iter().map(|row| input.theme.phase(row.idx)).collect()),
        Column::right("count", rows.iter().map(phase::PhaseRow::count).collect(), 5),
        Column::right("total", rows.iter().map(phase::PhaseRow::total).collect(), 3),
    ];
    let figures: Vec<[String; 3]> = rows.iter().map(phase::PhaseRow::figures).collect();
    for (at, (name, keep)) in [("mean", 7), ("p50", 1), ("p99", 6)].into_iter().enumerate() {
        columns.push(Column::right(name, figures.iter().map(|figures| figures[at].clone()).collect(), keep));
    }
    columns.push(Column::left("on", rows.iter().map(|row| row.place().to_owned()).collect(), 4));
    let lines = lines(columns, inside.width.into(), input.theme);
    super::list(&lines, 0, inside, buf);
    0
}
