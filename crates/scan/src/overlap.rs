//! How much of the transfers was hidden behind computation.

use crate::event::{Stage, StageSpan};

/// How the time of a device was used, from the spans of its stages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overlap {
    /// From the first beginning to the last end.
    pub wall_ms: f64,
    /// Time with at least one kernel at work.
    pub kernel_ms: f64,
    /// Time with at least one transfer under way.
    pub transfer_ms: f64,
    /// Time with both.
    pub hidden_ms: f64,
}

impl Overlap {
    /// Sums up the spans of one device.
    pub fn of(spans: &[StageSpan]) -> Self {
        // Beginnings and ends in the order of time; at one moment, ends first.
        let mut edges: Vec<(f64, bool, i32)> = Vec::with_capacity(2 * spans.len());
        for span in spans {
            let is_kernel = span.stage == Stage::Kernel;
            edges.extend([(span.begin_ms, is_kernel, 1), (span.end_ms, is_kernel, -1)]);
        }
        edges.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
        let (Some(first), Some(last)) = (edges.first(), edges.last()) else { return Self::default() };
        let mut sums = Self { wall_ms: last.0 - first.0, ..Self::default() };
        let (mut kernels, mut transfers, mut before) = (0, 0, first.0);
        for (at, is_kernel, step) in edges {
            let lasted = at - before;
            before = at;
            sums.kernel_ms += if kernels > 0 { lasted } else { 0.0 };
            sums.transfer_ms += if transfers > 0 { lasted } else { 0.0 };
            sums.hidden_ms += if kernels > 0 && transfers > 0 { lasted } else { 0.0 };
            *(if is_kernel { &mut kernels } else { &mut transfers }) += step;
        }
        sums
    }

    /// Share of the transfers that ran beside a kernel, 0 to 1.
    pub fn hidden_share(&self) -> f64 {
        if self.transfer_ms > 0.0 { self.hidden_ms / self.transfer_ms } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(stage: Stage, begin_ms: f64, end_ms: f64) -> StageSpan {
        StageSpan { stage, device: Some(0), stream: 0, begin_ms, end_ms }
    }

    #[test]
    fn time_beside_a_kernel_is_counted_once() {
        let spans = [
            span(Stage::Upload, 0.0, 2.0),
            span(Stage::Kernel, 2.0, 6.0),
            span(Stage::Upload, 2.0, 4.0),
            span(Stage::Kernel, 4.0, 8.0),
            span(Stage::Download, 7.0, 9.0),
        ];
        let overlap = Overlap::of(&spans);
        assert_eq!((overlap.wall_ms, overlap.kernel_ms), (9.0, 6.0));
        assert_eq!((overlap.transfer_ms, overlap.hidden_ms), (6.0, 3.0));
        assert_eq!(overlap.hidden_share(), 0.5);
    }

    #[test]
    fn what_follows_one_another_does_not_overlap() {
        let spans = [span(Stage::Upload, 1.0, 2.0), span(Stage::Kernel, 2.0, 3.0)];
        assert_eq!(Overlap::of(&spans).hidden_ms, 0.0);
        assert_eq!(Overlap::of(&[]), Overlap::default());
    }
}
