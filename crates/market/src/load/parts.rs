//! How the files of one symbol follow each other: where they overlap and where bars are missing between them.

use crate::bars::Bars;
use crate::clean::{Calendar, Source, SymbolRows};
use crate::load::table::NO_TIME;
use crate::report::{JoinedSymbol, Seam};

/// One file's rows of a symbol in time.
pub(crate) struct Span {
    file: String,
    /// Readable times, rising.
    times: Vec<i64>,
}

/// The spans of a symbol's files, if there are several, ordered by their first time.
pub(crate) fn spans(gathered: &SymbolRows, sources: &[Source]) -> Vec<Span> {
    let by_file: Vec<_> = gathered.runs.chunk_by(|a, b| a.file_idx == b.file_idx).collect();
    if by_file.len() < 2 {
        return Vec::new();
    }
    let mut spans: Vec<Span> = by_file
        .into_iter()
        .map(|runs| {
            let source = &sources[runs[0].file_idx];
            let rows = runs.iter().flat_map(|run| &source.table.ts_ms[run.rows.clone()]);
            let mut times: Vec<i64> = rows.copied().filter(|ts_ms| *ts_ms != NO_TIME).collect();
            times.sort_unstable();
            times.dedup();
            Span { file: source.file.clone(), times }
        })
        .filter(|span| !span.times.is_empty())
        .collect();
    spans.sort_by_key(|span| span.times[0]);
    spans
}

/// What there is to say about spans that became these bars; `None` for a single file.
pub(crate) fn joined(spans: &[Span], bars: &Bars) -> Option<JoinedSymbol> {
    let calendar = Calendar::of(bars);
    let mut joined = JoinedSymbol {
        symbol: bars.symbol.clone(),
        files: spans.len(),
        overlaps: Vec::new(),
        holes: Vec::new(),
    };
    // The file that reaches furthest so far.
    let mut furthest = spans.first()?;
    for next in &spans[1..] {
        let end_ms = last(furthest);
        let seam = |from_ms, to_ms, bars| Seam {
            first: furthest.file.clone(),
            second: next.file.clone(),
            from_ms,
            to_ms,
            bars,
        };
        let missing = calendar.missing(end_ms, next.times[0]);
        if next.times[0] <= end_ms {
            let n_shared = next.times.partition_point(|ts_ms| *ts_ms <= end_ms);
            joined.overlaps.push(seam(next.times[0], next.times[n_shared - 1], n_shared as u64));
        } else if missing > 0 {
            joined.holes.push(seam(end_ms, next.times[0], missing));
        }
        if last(next) > end_ms {
            furthest = next;
        }
    }
    (spans.len() > 1).then_some(joined)
}

fn last(span: &Span) -> i64 {
    span.times.last().copied().unwrap_or(NO_TIME)
}
