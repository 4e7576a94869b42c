//! The figures of a parameter set by part, for people.

use tidemill_lab::Parts;
use tidemill_page::kit::parts::{PartColumn, PartsRow, PartsTable};

use crate::table::{Screen, Table};

/// The figures that say most, a column for each part. `title` stands above their names.
pub fn text(title: &str, parts: &Parts, screen: &Screen) -> String {
    let mut table = Table::new(
        [title.to_owned()].into_iter().chain(parts.shown().iter().map(|part| part.part.label().to_owned())),
    );
    for (label, end) in [("From", 0), ("To", 1)] {
        let days = parts.shown().into_iter().map(|part| [&part.from, &part.to][end].clone());
        table.row([label.to_owned()].into_iter().chain(days));
    }
    for row in parts.summary() {
        table.row([row.label.clone()].into_iter().chain(row.texts()));
    }
    let mut out = table.render(1, screen);
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
