//! The figures of a parameter set by part, for people.

use tidemill_dash::terminal::wrapped;
use tidemill_lab::Parts;
use tidemill_page::kit::parts::{PartColumn, PartsRow, PartsTable};

use crate::table::{Screen, Table, TextColumn};

/// Columns below which the days of the parts stand beneath the table, so that all parts fit beside one another.
const LEAST_FOR_DAYS: usize = 78;

/// The figures that say most, a column for each part. `title` stands above their names.
pub fn text(title: &str, parts: &Parts, screen: &Screen) -> String {
    let shown = parts.shown();
    let columns = shown.iter().map(|part| TextColumn::new(part.part.label()).keep(10));
    let mut table = Table::new([TextColumn::new(title).keep(10)].into_iter().chain(columns));
    let is_narrow = shown.len() > 1 && screen.width.is_some_and(|width| width < LEAST_FOR_DAYS);
    for (label, end) in [("From", 0), ("To", 1)].into_iter().filter(|_| !is_narrow) {
        let days = shown.iter().map(|part| [&part.from, &part.to][end].clone());
        table.row([label.to_owned()].into_iter().chain(days));
    }
    for row in parts.summary() {
        table.row([row.label.clone()].into_iter().chain(row.texts()));
    }
    let mut out = table.render(1, screen);
    if is_narrow {
        let days: Vec<String> =
            shown.iter().map(|part| format!("{} {} to {}", part.part.label(), part.from, part.to)).collect();
        let room = screen.width.unwrap_or(LEAST_FOR_DAYS).max(20);
        out += &format!("{}\n", wrapped(&days.join(", "), room).join("\n"));
    }
    if parts.searched && parts.out_of_sample.is_none() && parts.holdout.is_none() {
        out += "All data was searched: nothing here is a test (--split and --holdout keep data for one).\n";
    }
    out
}

/// The same for a page.
pub fn page_table(parts: &Parts) -> PartsTable {
    PartsTable {
        columns: parts
            .shown()
            .into_iter()
            .map(|part| PartColumn {
                key: part.part.key().into(),
                label: part.part.label().into(),
                from: part.from.clone(),
                to: part.to.clone(),
            })
            .collect(),
        rows: parts
            .summary()
            .into_iter()
            .map(|row| PartsRow {
                key: row.key.into(),
                texts: row.texts().collect(),
                label: row.label,
                values: row.values,
            })
            .collect(),
    }
}
