//! A comparison as tables of texts, for terminals and pages alike.

use super::{ComparedStudy, Comparison};
use crate::number;
use crate::parts::Parts;

/// A table of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparisonTable {
    /// Names of the columns.
    pub header: Vec<String>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl ComparedStudy {
    /// The verdict on its winner.
    pub fn verdict(&self) -> &str {
        self.judged.as_ref().map_or("not judged", |winner| winner.headline.as_str())
    }
}

impl Comparison {
    /// The settings in which they differ, a column for each study.
    pub fn settings_table(&self) -> ComparisonTable {
        let names = self.studies.iter().map(|study| study.study.clone());
        let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".into());
        let rows = self.settings.iter().map(|setting| {
            std::iter::once(setting.name.clone()).chain(setting.values.iter().map(cell)).collect()
        });
        ComparisonTable {
            header: std::iter::once("setting".into()).chain(names).collect(),
            rows: rows.collect(),
        }
    }

    /// The best trial of each study, a row for each part of the data.
    pub fn results_table(&self) -> ComparisonTable {
        let judged = self.studies.iter().filter_map(|study| study.judged.as_ref()?.parts.as_ref());
        // Figures that some study has, in their order.
        let mut labels: Vec<String> = Vec::new();
        for row in judged.flat_map(Parts::summary).filter(|row| !row.label.starts_with("Return of ")) {
            if !labels.contains(&row.label) {
                labels.push(row.label);
            }
        }
        let mut header: Vec<String> = ["study", "part", "trial", "objective"].map(Into::into).into();
        header.extend(labels.iter().map(|label| match label.as_str() {
            "Excess Return [%]" => "beyond benchmark [%]".to_owned(),
            label => label.to_owned(),
        }));
        let mut table = ComparisonTable { header, rows: Vec::new() };
        for study in &self.studies {
            let Some((winner, parts)) = study.judged.as_ref().and_then(|it| Some((it, it.parts.as_ref()?)))
            else {
                let (trial, best) = study.best.unzip();
                let trial = trial.map_or_else(|| "–".into(), number::count);
                let mut cells = vec![study.study.clone(), "in sample".into(), trial, number::short(best)];
                cells.resize(table.header.len(), "–".into());
                table.rows.push(cells);
                continue;
            };
            let figures = parts.summary();
            for (at, part) in parts.shown().into_iter().enumerate() {
                let mut cells = vec![
                    String::new(),
                    part.part.label().into(),
                    String::new(),
                    number::short(part.objective),
                ];
                if at == 0 {
                    cells[0].clone_from(&study.study);
                    cells[2] = number::count(winner.trial);
                }
                cells.extend(labels.iter().map(|label| {
                    let row = figures.iter().find(|row| row.label == *label);
                    number::metric(label, row.and_then(|row| row.values[at]))
                }));
                table.rows.push(cells);
            }
        }
        table
    }

    /// The best value after so many trials.
    pub fn convergence_table(&self) -> ComparisonTable {
        let milestones = self.milestones();
        let header = std::iter::once("study".into()).chain(milestones.iter().map(|n| number::count(*n)));
        let row = |study: &ComparedStudy| {
            let values = milestones.iter().map(|n| number::short(study.best_after(*n)));
            std::iter::once(study.study.clone()).chain(values).collect()
        };
        ComparisonTable { header: header.collect(), rows: self.studies.iter().map(row).collect() }
    }
}
