//! How well the time was used, from the spans of the work.

use crate::pool::Purpose;

/// How a pipeline has run. Times are the device's own.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineStatistics {
    /// Batches that went through.
    pub iterations: u64,
    /// From the beginning of the first batch to the end of the last.
    pub wall_ms: f64,
    /// Mean time from the beginning to the end of one batch.
    pub mean_ms: f64,
    /// Batches per second.
    pub throughput: f64,
    /// Time with at least one computation.
    pub busy_ms: f64,
    /// The same as a part of `wall_ms`, 0 to 1.
    pub busy_share: f64,
    /// Time of the computations, each times the share of the device that its launches fill, as a part of `wall_ms`. More than 1 where
    /// computations that would fill the device run side by side.
    pub fill: f64,
    /// Time with at least two stages running.
    pub overlap_ms: f64,
    /// Time with no stage running.
    pub idle_ms: f64,
    /// The stages in their order.
    pub stages: Vec<StageStatistics>,
}

/// How one stage of a pipeline has run.
#[derive(Debug, Clone, PartialEq)]
pub struct StageStatistics {
    /// Name of the stage.
    pub name: String,
    /// Purpose of the stage, which chooses its stream.
    pub purpose: Purpose,
    /// Time of all its runs together.
    pub total_ms: f64,
    /// Mean time of one run.
    pub mean_ms: f64,
}

/// The run of a stage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StageRun {
    /// Number of the stage.
    pub stage: usize,
    pub start: f64,
    pub end: f64,
    /// The share of the device that its launches fill.
    pub fill: f64,
}

/// Sums up the runs of `iterations` batches; `latency_ms` is the sum of their times.
pub(crate) fn summarise(
    stages: &[(String, Purpose)],
    runs: &[StageRun],
    iterations: u64,
    latency_ms: f64,
) -> PipelineStatistics {
    let begin = runs.iter().map(|run| run.start).fold(f64::INFINITY, f64::min);
    let end = runs.iter().map(|run| run.end).fold(f64::NEG_INFINITY, f64::max);
    let wall_ms = if runs.is_empty() { 0.0 } else { end - begin };
    let all: Vec<_> = runs.iter().map(|run| (run.start, run.end)).collect();
    let computing: Vec<&StageRun> =
        runs.iter().filter(|run| stages[run.stage].1 == Purpose::Compute).collect();
    let [busy_ms, _] = covered(&computing.iter().map(|run| (run.start, run.end)).collect::<Vec<_>>());
    let filled_ms: f64 = computing.iter().map(|run| (run.end - run.start) * run.fill).sum();
    let [some_ms, overlap_ms] = covered(&all);
    let stages = stages.iter().enumerate().map(|(number, (name, purpose))| {
        let total_ms = runs.iter().filter(|run| run.stage == number).map(|run| run.end - run.start).sum();
        StageStatistics {
            name: name.clone(),
            purpose: *purpose,
            total_ms,
            mean_ms: ratio(total_ms, iterations as f64),
        }
    });
    PipelineStatistics {
        iterations,
        wall_ms,
        mean_ms: ratio(latency_ms, iterations as f64),
        throughput: ratio(iterations as f64 * 1e3, wall_ms),
        busy_ms,
        busy_share: ratio(busy_ms, wall_ms),
        fill: ratio(filled_ms, wall_ms),
        overlap_ms,
        idle_ms: (wall_ms - some_ms).max(0.0),
        stages: stages.collect(),
    }
}

/// How long at least one of the spans lasts, and how long at least two do.
fn covered(spans: &[(f64, f64)]) -> [f64; 2] {
    let mut edges: Vec<(f64, i32)> = spans.iter().flat_map(|&(start, end)| [(start, 1), (end, -1)]).collect();
    edges.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut depth = 0;
    let mut last = 0.0;
    let mut sums = [0.0; 2];
    for (at, step) in edges {
        for (sum, level) in sums.iter_mut().zip(1..) {
            if depth >= level {
                *sum += at - last;
            }
        }
        depth += step;
        last = at;
    }
    sums
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_once_however_many_share_it() {
        assert_eq!(covered(&[]), [0.0, 0.0]);
        assert_eq!(covered(&[(1.0, 3.0), (2.0, 5.0), (2.5, 2.75), (7.0, 8.0)]), [5.0, 1.0]);
        assert_eq!(covered(&[(0.0, 1.0), (1.0, 2.0)]), [2.0, 0.0], "touching is no overlap");
        assert_eq!(covered(&[(0.0, 4.0), (0.0, 4.0), (0.0, 4.0)]), [4.0, 4.0]);
    }

    #[test]
    fn a_summary_adds_up() {
        let stages = [("up".to_string(), Purpose::Upload), ("work".to_string(), Purpose::Compute)];
        // Two batches: the upload of the second overlaps the work of the first; then nothing for 1 ms.
        let runs = [(0, 10.0, 12.0, 0.0), (1, 12.0, 16.0, 0.5), (0, 12.0, 14.0, 0.0), (1, 17.0, 20.0, 1.0)]
            .map(|(stage, start, end, fill)| StageRun { stage, start, end, fill });
        let summary = summarise(&stages, &runs, 2, 14.0);
        assert_eq!((summary.wall_ms, summary.mean_ms, summary.throughput), (10.0, 7.0, 200.0));
        assert_eq!((summary.busy_ms, summary.busy_share), (7.0, 0.7));
        assert_eq!(summary.fill, 0.5, "4 ms at a half and 3 ms in full, of 10 ms");
        assert_eq!((summary.overlap_ms, summary.idle_ms), (2.0, 1.0));
        assert_eq!(summary.stages[0].total_ms, 4.0);
        assert_eq!(summary.stages[1].mean_ms, 3.5);
        let nothing = summarise(&stages, &[], 0, 0.0);
        assert_eq!((nothing.wall_ms, nothing.busy_share, nothing.throughput), (0.0, 0.0, 0.0));
    }
}
