//! Out-of-sample columns of stored trials.

use std::path::Path;

use tidemill_backtest::{METRICS, compile, space};
use tidemill_lab::test_column::{TEST_METRICS, TEST_OBJECTIVE};
use tidemill_lab::{Dataset, Experiment, SweepReport, open_strategy};
use tidemill_search::{ExportFormat, StudyFolder, TrialBatch, export};

fn experiment() -> Experiment {
    Experiment::new(open_strategy("zscore-dip", &Default::default()).unwrap(), Dataset::generated())
        .split(0.7)
}

fn swept(experiment: &Experiment, dir: &Path, trials: u64) -> SweepReport {
    let sweep = experiment.sweep().trials(trials).seed(7).verdict(false);
    sweep.folder(dir).run().unwrap()
}

fn stored(dir: &Path) -> TrialBatch {
    let folder = StudyFolder::open(dir).unwrap();
    folder.trials().unwrap().in_batches_of(1 << 20).next().unwrap().unwrap()
}

fn column<'a>(batch: &'a TrialBatch, name: &str) -> Option<&'a Vec<Option<f64>>> {
    batch.metrics.iter().find(|(own, _)| own == name).map(|(_, values)| values)
}

#[test]
fn trials_of_a_study_with_a_split_have_the_figures_that_an_evaluation_out_of_sample_gives() {
    let dir = tempfile::tempdir().unwrap();
    let report = swept(&experiment(), dir.path(), 64);
    let batch = stored(dir.path());
    assert!(report.best.len() > 3);
    for best in &report.best {
        let at = best.trial.number as usize;
        let (scores, metrics) = best.test.as_ref().unwrap();
        assert_eq!(column(&batch, TEST_OBJECTIVE).unwrap()[at], scores[0].ok());
        for (metric, name, _) in TEST_METRICS {
            assert_eq!(column(&batch, name).unwrap()[at], metrics.get(metric), "{name} of trial {at}");
        }
    }
    let mut csv = Vec::new();
    export(dir.path(), ExportFormat::Csv, &mut csv).unwrap();
    let header = String::from_utf8(csv).unwrap().lines().next().unwrap().to_owned();
    assert!(header.ends_with("test_win_rate,test_profit_factor,objective"), "{header}");

    let whole = tempfile::tempdir().unwrap();
    swept(&experiment().layout(Default::default()), whole.path(), 8);
    assert_eq!(
        stored(whole.path()).metrics.len(),
        METRICS.len(),
        "without a split there is nothing to store"
    );
}

#[test]
fn a_study_of_an_earlier_version_goes_on_without_them() {
    let dir = tempfile::tempdir().unwrap();
    let experiment = experiment();
    swept(&experiment, dir.path(), 64);
    let new = stored(dir.path());
    // The same trials as a version without these columns stored them.
    let folder = StudyFolder::open(dir.path()).unwrap();
    for entry in std::fs::read_dir(dir.path().join("trials")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let program = compile::compile(&experiment.strategy, &compile::DataNames::default()).unwrap();
    let space = space::space(&experiment.strategy, &program);
    let names: Vec<&str> = METRICS.iter().map(|(_, name, _)| *name).collect();
    let mut writer = folder.writer(&space, &names, 1).unwrap();
    let metrics: Vec<Vec<f64>> = new.to_metrics().into_iter().take(METRICS.len()).collect();
    writer.append(&new.to_points(&space).unwrap(), &new.to_scores(), &metrics).unwrap();
    writer.finish().unwrap();

    let report = swept(&experiment, dir.path(), 96);
    assert_eq!((report.summary.n_replayed, report.summary.n_trials), (64, 96));
    let batch = stored(dir.path());
    assert_eq!((batch.trials.len(), batch.metrics.len()), (96, METRICS.len()));
    // Nothing else depends on them.
    let other = tempfile::tempdir().unwrap();
    swept(&experiment, other.path(), 64);
    swept(&experiment, other.path(), 96);
    let raised = stored(other.path());
    assert!(column(&raised, TEST_OBJECTIVE).is_some());
    assert_eq!((raised.params, raised.scores), (batch.params, batch.scores));
}
