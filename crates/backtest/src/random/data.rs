//! Random bars: walks with gaps, flats and repeated prices, on calendars with and without weekends.

use tidemill_market::{Bars, DAY_MS, Universe};

use crate::segment::{Layout, Role, Segment};

use super::tape::{Stream, Tape};

const MINUTE_MS: i64 = 60_000;

/// Several symbols with the same further columns `x` and `y`.
pub fn universe(tape: &mut Tape) -> Universe {
    let n_symbols = [1, 1, 2, 3][tape.below(4)];
    let timeframe_ms = MINUTE_MS * tape.pick(&[60, 240, 1440, 15, 1, 90]);
    // Sometimes those after the first have longer bars.
    let times = *tape.pick(&[1, 1, 1, 1, 4, 2]);
    let weekdays_only = tape.chance(30);
    let most = *tape.pick(&[120, 60, 400, 200, 10, 700, 3]);
    let symbols = (0..n_symbols)
        .map(|at| {
            let name = format!("S{at}");
            let n_bars = 1 + tape.below(most);
            let timeframe_ms = if at == 0 { timeframe_ms } else { times * timeframe_ms };
            bars(tape, name, n_bars, timeframe_ms, weekdays_only)
        })
        .collect();
    Universe { symbols }
}

fn bars(tape: &mut Tape, symbol: String, n_bars: usize, timeframe_ms: i64, weekdays_only: bool) -> Bars {
    // Steps of the price; prices repeat often where they are coarse.
    let tick = *tape.pick(&[0.25, 1.0, 0.01, 1e-6]);
    let base = tick * *tape.pick(&[400.0, 100.0, 2_000.0, 30.0]);
    let wildness = *tape.pick(&[0.02, 0.005, 0.1, 0.4]);
    let flat_percent = *tape.pick(&[5.0, 0.0, 40.0]);
    let gap_percent = *tape.pick(&[5.0, 0.0, 30.0]);
    let hole_percent = *tape.pick(&[0.0, 5.0, 30.0]);
    let missing_percent = *tape.pick(&[10.0, 0.0, 100.0]);
    let start_day = 20_000 + tape.below(12) as i64;
    let mut stream = tape.stream();
    let mut out = Bars { symbol, timeframe_ms, ..Bars::default() };
    let mut ts_ms = start_day * DAY_MS + stream.below(24) as i64 * 3_600_000;
    let round = |price: f64| ((price / tick).round() * tick).max(tick);
    let mut close = base;
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for _ in 0..n_bars {
        while weekdays_only && (ts_ms.div_euclid(DAY_MS) + 3).rem_euclid(7) >= 5 {
            ts_ms = (ts_ms.div_euclid(DAY_MS) + 1) * DAY_MS;
        }
        let mut step = |scale: f64| 1.0 + scale * (stream.unit() - 0.5);
        let (gap, up, down, body) = (step(wildness), step(wildness), step(wildness), step(wildness));
        let open = if stream.chance(gap_percent) { round(close * gap) } else { close };
        if stream.chance(flat_percent) {
            close = open;
            out.high.push(open);
            out.low.push(open);
        } else {
            close = round(open * body);
            let (top, bottom) = (open.max(close), open.min(close));
            out.high.push(round(top * up.max(1.0)).max(top));
            out.low.push(round(bottom * down.min(1.0)).min(bottom));
        }
        out.open.push(open);
        out.close.push(close);
        out.volume.push(if stream.chance(10.0) { 0.0 } else { (stream.unit() * 20.0).round() * 5.0 });
        out.ts_ms.push(ts_ms);
        x.push(missing(&mut stream, missing_percent).unwrap_or_else(|| stream_value(close)));
        y.push(missing(&mut stream, missing_percent).unwrap_or(open));
        ts_ms += timeframe_ms;
        while stream.chance(hole_percent) {
            ts_ms += timeframe_ms;
        }
    }
    out.extra = vec![("x".into(), x), ("y".into(), y)];
    out
}

/// A value that moves around zero with the price.
fn stream_value(close: f64) -> f64 {
    libm::sin(close * 7.0)
}

/// Sometimes a value that is not a finite number.
fn missing(stream: &mut Stream, percent: f64) -> Option<f64> {
    let kind = stream.below(10);
    stream.chance(percent).then_some(match kind {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        _ => f64::NAN,
    })
}

/// Any layout of the command line, or a few arbitrary ranges.
pub fn segments(tape: &mut Tape, universe: &Universe) -> Vec<Segment> {
    let times: Vec<i64> = universe.symbols.iter().flat_map(|bars| bars.ts_ms.iter().copied()).collect();
    let any_time = |tape: &mut Tape| times[tape.below(times.len())];
    let mut layout = Layout::default();
    match tape.below(7) {
        0 | 1 => {}
        2 => layout.folds = Some(1 + tape.below(5)),
        3 => layout.split = Some((1 + tape.below(9)) as f64 / 10.0),
        4 => {
            layout.split = Some((1 + tape.below(9)) as f64 / 10.0);
            layout.folds = Some(1 + tape.below(4));
        }
        5 => {
            layout.from_ms = Some(any_time(tape));
            layout.to_ms = tape.chance(50).then(|| any_time(tape));
            layout.folds = tape.chance(30).then(|| 1 + tape.below(4));
        }
        _ => return arbitrary(tape, universe),
    }
    layout.segments(universe).or_else(|_| Layout::default().segments(universe)).expect("there are bars")
}

fn arbitrary(tape: &mut Tape, universe: &Universe) -> Vec<Segment> {
    let mut out = Vec::new();
    for (symbol, bars) in universe.symbols.iter().enumerate() {
        for _ in 0..1 + tape.below(3) {
            let (a, b) = (tape.below(bars.len()), tape.below(bars.len()));
            let role = if tape.chance(30) { Role::Test } else { Role::Train };
            out.push(Segment {
                symbol,
                range: a.min(b)..a.max(b) + 1,
                role,
                name: format!("part {}", out.len()),
            });
        }
    }
    out
}
