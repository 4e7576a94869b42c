//! Random strategy files: typed expression trees over everything the language has, in rules that do trade. One file because the kinds of
//! expressions contain one another.

use std::fmt::Write;

use tidemill_market::Universe;
use tidemill_market::indicator::Group::{Averages, Elsewhere, Extremes};
use tidemill_market::timeframe::{WEEK_MS, format_duration};

use super::tape::Tape;
use crate::compile::{Arg, Signature, functions};

/// Series of sessions, in one day and over midnight.
const SESSIONS: [&str; 4] = [
    "session_bar('Europe/London', '08:00-16:30')",
    "session_left('Europe/London', '08:00-16:30')",
    "session_bar('Australia/Lord_Howe', '18:00-04:15')",
    "session_left('Asia/Kolkata', '00:00-24:00')",
];

/// The names that a random file may use.
struct Writer<'t, 'n> {
    tape: &'t mut Tape<'n>,
    numbers: Vec<Named>,
    conditions: Vec<Named>,
    /// Names of all symbols.
    symbols: Vec<String>,
    /// Timeframes that all of them can be made into.
    frames: Vec<String>,
    /// Whether all of them have one timeframe.
    is_even: bool,
    /// What the expression being written is about.
    place: Place,
    /// Whether it has been about other bars.
    went_elsewhere: bool,
    /// Whether a side has a size of its own, which is a share of equity.
    has_size: bool,
}

/// A name under `[let]`.
#[derive(Clone)]
struct Named {
    name: String,
    /// Whether it is about the symbol's own bars alone, and so may stand anywhere.
    is_plain: bool,
}

/// The bars that an expression is about, which decides what may stand in it.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Own,
    Longer,
    OtherSymbol,
}

/// A whole strategy file for this data.
pub fn strategy(tape: &mut Tape, universe: &Universe) -> String {
    let base: Vec<i64> = universe.symbols.iter().map(|bars| bars.timeframe_ms).collect();
    let longest = base.iter().copied().max().unwrap_or(1);
    let multiples = [4, 1, 2, 24, 3, 7, 168].map(|times| times * longest);
    let mut writer = Writer {
        tape,
        numbers: Vec::new(),
        conditions: Vec::new(),
        symbols: universe.symbols.iter().map(|bars| bars.symbol.clone()).collect(),
        frames: multiples.into_iter().filter(|ms| *ms <= WEEK_MS).map(format_duration).collect(),
        is_even: base.iter().all(|timeframe_ms| *timeframe_ms == longest),
        place: Place::Own,
        went_elsewhere: false,
        has_size: false,
    };
    let mut out = String::from("name = \"random\"\n");
    writer.params(&mut out);
    writer.lets(&mut out);
    let (mut long, mut short) = (writer.enter(), writer.enter());
    let mut sides = writer.tape.below(4);
    if writer.tape.chance(12) {
        // Stop and reverse, which chance seldom finds.
        (long, short) = ("close > open".into(), "close <= open".into());
        sides = 2;
    }
    if sides != 1 {
        writer.side(&mut out, true, &long, &short);
    }
    if sides != 0 {
        writer.side(&mut out, false, &short, &long);
    }
    writer.execution(&mut out);
    out
}

impl Writer<'_, '_> {
    fn one_of(&mut self, options: &[&str]) -> String {
        self.tape.pick(options).to_string()
    }

    fn params(&mut self, out: &mut String) {
        let windows = ["[2, 9]", "[1, 20]", "[2, 4]", "[-1, 3]", "[1, 500]", "[5, 6000000000]"];
        let conditions = ["b0", "not b0", "m0 == 'wide'", "m0 != 'off' and b0", "f0 > 1", "c0 >= 1 or b0"];
        let when = |writer: &mut Self| match writer.tape.chance(40) {
            true => format!(", when = \"{}\"", writer.one_of(&conditions)),
            false => String::new(),
        };
        out.push_str("[params]\nb0 = { bool = true }\nm0 = { choice = [\"wide\", \"tight\", \"off\"] }\n");
        let floats =
            ["[0.5, 3.0]", "[0.0, 1.0]", "[-1.0, 2.0]", "[0.5, 2.0], step = 0.5", "[0.1, 10.0], log = true"];
        let _ = writeln!(out, "f0 = {{ float = {} }}", self.one_of(&floats));
        let choices = ["[0.5, 1.0, 2.0]", "[1.0, 1.5]", "[2, 3, 5]", "[0.0, -1.0, 4.5]"];
        let _ = writeln!(out, "c0 = {{ choice = {} }}", self.one_of(&choices));
        for name in ["w0", "w1", "w2"] {
            let (range, when) = (self.one_of(&windows), when(self));
            let _ = writeln!(out, "{name} = {{ int = {range}{when} }}");
        }
        let (range, condition) = (self.one_of(&floats), when(self));
        let _ = writeln!(out, "f1 = {{ float = {range}{condition} }}");
        let (range, condition) = (self.one_of(&["[0, 4]", "[1, 2]", "[-2, 3]"]), when(self));
        let _ = writeln!(out, "k0 = {{ int = {range}{condition} }}");
        let condition = when(self);
        let _ = writeln!(out, "b1 = {{ bool = false{condition} }}");
        let _ = writeln!(out, "i0 = {{ choice = {}{} }}", self.one_of(&["[3, 7]", "[2, 5, 11]"]), when(self));
        out.push_str("n0 = 3\ng0 = 0.75\n");
        let frames: Vec<String> = (0..1 + self.tape.below(3)).map(|_| self.frame()).collect();
        let mut different: Vec<&String> = Vec::new();
        for frame in &frames {
            if !different.contains(&frame) {
                different.push(frame);
            }
        }
        let when = when(self);
        let _ = writeln!(out, "d0 = {{ choice = {different:?}{when} }}");
    }

    fn lets(&mut self, out: &mut String) {
        out.push_str("[let]\n");
        for at in 0..self.tape.below(5) {
            self.went_elsewhere = false;
            if self.tape.chance(40) {
                let condition = self.condition(2);
                let _ = writeln!(out, "q{at} = \"{condition}\"");
                let is_plain = self.is_plain(&condition);
                self.conditions.push(Named { name: format!("q{at}"), is_plain });
            } else {
                let series = self.series(3);
                let _ = writeln!(out, "v{at} = \"{series}\"");
                let is_plain = self.is_plain(&series);
                self.numbers.push(Named { name: format!("v{at}"), is_plain });
            }
        }
    }

    /// Whether what was just written is about the symbol's own bars alone, with all that it names.
    fn is_plain(&self, text: &str) -> bool {
        let names = self.numbers.iter().chain(&self.conditions);
        !self.went_elsewhere && !names.filter(|named| !named.is_plain).any(|named| text.contains(&named.name))
    }

    /// The names that may stand here.
    fn usable(&mut self, names: &[Named]) -> Vec<String> {
        let own = self.place == Place::Own;
        names.iter().filter(|named| own || named.is_plain).map(|named| named.name.clone()).collect()
    }

    /// A timeframe that all symbols can be made into.
    fn frame(&mut self) -> String {
        let frames = self.frames.clone();
        self.tape.pick(&frames).clone()
    }

    /// Writes something about other bars.
    fn at(&mut self, place: Place, write: impl FnOnce(&mut Self) -> String) -> String {
        let outer = std::mem::replace(&mut self.place, place);
        let out = write(self);
        (self.place, self.went_elsewhere) = (outer, true);
        out
    }

    /// What `write` writes, of longer bars or of another symbol; as it is where neither may stand.
    fn elsewhere(&mut self, write: impl FnOnce(&mut Self) -> String) -> String {
        let frame = if self.tape.chance(25) { "d0".to_owned() } else { format!("'{}'", self.frame()) };
        let symbols = self.symbols.clone();
        let symbol = self.tape.pick(&symbols).clone();
        let age = self.one_of(&["", "", ", '1h'", ", '30d'", ", '1ms'"]);
        match (self.place, self.tape.below(3)) {
            (Place::Longer, _) => write(self),
            (Place::OtherSymbol, 0) => write(self),
            (Place::Own, 0) => {
                format!("of('{symbol}', {}{age})", self.at(Place::OtherSymbol, write))
            }
            (Place::Own, 1) if self.tape.chance(40) => {
                let x = self.at(Place::Longer, write);
                format!("of('{symbol}', tf({frame}, {x}){age})")
            }
            _ => format!("tf({frame}, {})", self.at(Place::Longer, write)),
        }
    }

    /// A recursion.
    fn recursion(&mut self, depth: usize) -> String {
        let (start, x) = (self.number(depth), self.series(depth));
        let next = match self.tape.below(6) {
            0 => format!("if({}, {x}, self)", self.condition(depth)),
            1 => format!("self + {} * ({x} - self)", self.one_of(&["0.1", "0.5", "f0 / 4"])),
            2 => format!("max(min(self, {x}), {})", self.number(depth)),
            3 => format!("if(self < {x}, self + {}, {x})", self.scalar()),
            4 => format!("if({x} > 0, self + recur({}, self * 0.5 + {x}), {x})", self.scalar()),
            _ => format!("if(is_na({x}), self - 1, -self)"),
        };
        format!("recur({start}, {next})")
    }

    /// A function over all symbols, where there are some.
    fn over(&mut self, depth: usize) -> String {
        if self.place != Place::Own || self.symbols.len() < 2 || !self.is_even {
            return self.series(depth);
        }
        self.went_elsewhere = true;
        let function = self.one_of(&[
            "rank",
            "rank",
            "mean_over",
            "sum_over",
            "count_over",
            "max_over",
            "min_over",
            "share_over",
        ]);
        let x = if function == "share_over" { self.series_condition(depth) } else { self.series(depth) };
        format!("{function}({x})")
    }

    /// An integer of parameters, as a window.
    fn window(&mut self) -> String {
        let options = [
            "3",
            "w0",
            "w1",
            "w2",
            "1",
            "2",
            "5",
            "n0",
            "i0",
            "w0 + 2",
            "2 * w1",
            "max(w0, 2)",
            "bars('1h')",
            "bars('1d')",
            "round(f0 * 4)",
            "abs(w2)",
            "min(w0, w1)",
            "floor(f1 * 5)",
            "if(b0, w0, 4)",
            "13",
            "clip(w1, 1, 8)",
            "w0 - w1",
            "ceil(sqrt(abs(w1)))",
        ];
        self.one_of(&options)
    }

    /// How many bars ago.
    fn ago(&mut self) -> String {
        self.one_of(&["1", "0", "2", "k0", "k0 + 1", "n0", "w0", "i0 - k0", "bars('1h')"])
    }

    /// A number of parameters.
    fn scalar(&mut self) -> String {
        self.one_of(&[
            "1",
            "0",
            "2",
            "f0",
            "f1",
            "c0",
            "g0",
            "0.5",
            "-1",
            "f0 * c0",
            "i0 / 2",
            "w0 * 1.0",
            "if(b1, f0, f1)",
            "0 / 0",
            "1e3",
            "-f1",
            "k0",
            "if(m0 == 'wide', 2, 0.5)",
        ])
    }

    /// A number that changes from bar to bar.
    fn series(&mut self, depth: usize) -> String {
        if depth == 0 || self.tape.below(100) < 15 {
            let mut leaves =
                vec!["close", "open", "high", "low", "volume", "x", "y", "bar_index", "hour", "weekday"];
            leaves.extend(["hl2", "hlc3", "ohlc4", "minute", "day", "month", "year"]);
            leaves.extend(SESSIONS);
            leaves.extend(["close", "close", "high", "low", "tr()", "obv()"]);
            let own = self.usable(&self.numbers.clone());
            leaves.extend(own.iter().map(String::as_str));
            return self.one_of(&leaves);
        }
        let d = depth - 1;
        match self.tape.below(46) {
            0..8 => self.price(d),
            8..11 => {
                let op = self.one_of(&["+", "-", "*", "/"]);
                format!("({} {op} {})", self.series(d), self.number(d))
            }
            11..13 => {
                let op = self.one_of(&["+", "-", "*", "/"]);
                format!("({} {op} {})", self.scalar(), self.series(d))
            }
            13 => format!("(-{})", self.series(d)),
            14 => format!("min({}, {})", self.series(d), self.number(d)),
            15 => format!("max({}, {}, {})", self.number(d), self.series(d), self.scalar()),
            16 => format!("clip({}, {}, {})", self.series(d), self.number(d), self.scalar()),
            17 => {
                let function = self.one_of(&["abs", "sqrt", "floor", "ceil", "round"]);
                format!("{function}({})", self.series(d))
            }
            18..20 => format!("if({}, {}, {})", self.condition(d), self.series(d), self.number(d)),
            20..23 => format!("({})[{}]", self.series(d), self.ago()),
            23..26 => self.elsewhere(|writer| writer.series(d)),
            26..28 => self.over(d),
            28 => self.recursion(d),
            _ => {
                let of = |arg: &Arg| {
                    matches!(arg, Arg::Series | Arg::Condition | Arg::Window | Arg::Scalar | Arg::Anchor)
                };
                let of_series =
                    |function: &Signature| function.group != Elsewhere && function.args.iter().all(of);
                self.call(of_series, &|writer| writer.series(d), d)
            }
        }
    }

    /// A call of one of some functions, with series from elsewhere and conditions of some depth.
    fn call(
        &mut self,
        is_wanted: impl Fn(&Signature) -> bool,
        series: &impl Fn(&mut Self) -> String,
        depth: usize,
    ) -> String {
        let wanted: Vec<&Signature> = functions().iter().filter(|function| is_wanted(function)).collect();
        let function = *self.tape.pick(&wanted);
        let call = function.write(|arg| match arg {
            Arg::Condition => self.condition(depth),
            Arg::Anchor if self.tape.chance(50) => self.one_of(&["'1d'", "'1w'", "'4h'", "'45m'"]),
            Arg::Anchor => self.series_condition(depth),
            Arg::Window => self.window(),
            Arg::Scalar => self.scalar(),
            Arg::Series | Arg::Number | Arg::Any | Arg::Duration | Arg::Text | Arg::Frame | Arg::Symbol => {
                series(self)
            }
        });
        match &function.number_fields()[..] {
            [] => call,
            fields => format!("{call}.{}", self.tape.pick(fields)),
        }
    }

    /// A series on the scale of the price.
    fn price(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.one_of(&["close", "open", "high", "low", "y"]);
        }
        match self.tape.below(14) {
            12 => self.elsewhere(|writer| writer.price(depth - 1)),
            13 => format!("recur({}, self + 0.2 * ({} - self))", self.price(0), self.price(depth - 1)),
            0..7 => {
                let of_prices = |function: &Signature| matches!(function.group, Averages | Extremes);
                self.call(of_prices, &|writer| writer.price(depth - 1), depth - 1)
            }
            7..9 => format!("{}[{}]", self.one_of(&["close", "high", "low", "open"]), self.ago()),
            9 => {
                let field = self.one_of(&["upper", "middle", "lower"]);
                format!("bollinger({}, {}, {}).{field}", self.price(depth - 1), self.window(), self.scalar())
            }
            10 => format!("value_when({}, {})", self.condition(depth - 1), self.price(depth - 1)),
            _ => self.one_of(&["close", "open", "high", "low", "y"]),
        }
    }

    /// Any number.
    fn number(&mut self, depth: usize) -> String {
        if self.tape.chance(60) { self.series(depth) } else { self.scalar() }
    }

    fn comparison(&mut self) -> String {
        self.one_of(&[">", "<", ">=", "<=", "==", "!="])
    }

    /// A condition that changes from bar to bar.
    fn series_condition(&mut self, depth: usize) -> String {
        let op = self.comparison();
        if depth == 0 {
            let left = self.one_of(&["close", "high", "low", "x", "close"]);
            let right = self.one_of(&["close[1]", "open", "low[1]", "y", "high[2]"]);
            return format!("{left} {op} {right}");
        }
        let d = depth - 1;
        match self.tape.below(13) {
            12 => {
                // What a switch leaves of it can be a comparison of two numbers.
                let switch = self.one_of(&["b0", "b1", "not b0", "m0 == 'wide'", "c0 > f0"]);
                let (series, scalar) = (self.series(d), self.scalar());
                format!("if({switch}, {series}, {scalar}) {op} {}", self.scalar())
            }
            10 => self.elsewhere(|writer| writer.series_condition(d)),
            11 => format!("{} {op} {}", self.over(d), self.one_of(&["0.5", "1", "f0", "0", "close"])),
            0..4 => format!("{} {op} {}", self.price(d), self.price(d)),
            4 => format!("{} {op} {}", self.series(d), self.number(d)),
            5 => {
                let function = self.one_of(&["crosses_above", "crosses_below"]);
                format!("{function}({}, {})", self.price(d), self.price(d))
            }
            6 => {
                let function = self.one_of(&["crosses_above", "crosses_below"]);
                format!("{function}({}, {})", self.series(d), self.scalar())
            }
            7 if self.tape.chance(30) => format!("supertrend({}, {}).up", self.window(), self.scalar()),
            7 => format!("rsi(close, {}) {op} {}", self.window(), self.one_of(&["50", "30", "70"])),
            8 => format!("({})[{}]", self.series_condition(d), self.ago()),
            _ => format!("is_na({})", self.series(d)),
        }
    }

    /// A condition, of bars or of parameters.
    fn condition(&mut self, depth: usize) -> String {
        let own = self.usable(&self.conditions.clone());
        if !own.is_empty() && self.tape.chance(15) {
            return self.tape.pick(&own).clone();
        }
        if depth == 0 || self.tape.below(100) < 45 {
            return self.series_condition(depth);
        }
        let d = depth - 1;
        match self.tape.below(8) {
            0..2 => format!("({} and {})", self.condition(d), self.condition(d)),
            2..4 => format!("({} or {})", self.condition(d), self.condition(d)),
            4 => format!("not ({})", self.condition(d)),
            5 => format!("if({}, {}, {})", self.condition(d), self.condition(d), self.condition(d)),
            _ => self.one_of(&[
                "session('America/New_York', '09:30-16:00')",
                "b0",
                "b1",
                "m0 == 'wide'",
                "'tight' != m0",
                "c0 > f0",
                "true",
                "w0 < w1",
                "false",
            ]),
        }
    }

    /// An entry condition that is true now and then.
    fn enter(&mut self) -> String {
        let often = |writer: &mut Self| {
            writer.one_of(&[
                "close > close[1]",
                "close < open",
                "crosses_above(close, sma(close, w0))",
                "crosses_below(close, ema(close, w1))",
                "bar_index - 7 * floor(bar_index / 7) == 0",
                "close >= highest(high[1], 3)",
                "weekday == 2 or hour == 3",
                "session('Asia/Tokyo', '22:00-05:30')",
                "low <= lowest(low, w2)",
                "true",
            ])
        };
        match self.tape.below(10) {
            0..3 => often(self),
            3..5 => format!("{} and {}", often(self), self.condition(2)),
            5..7 => format!("{} and not ({})", often(self), self.series_condition(2)),
            7 => format!("{} or {}", self.condition(3), often(self)),
            _ => self.condition(3),
        }
    }

    /// One side; `opposite` is when the other one enters.
    fn side(&mut self, out: &mut String, long: bool, enter: &str, opposite: &str) {
        let name = if long { "long" } else { "short" };
        let (against, favour) = if long { ("-", "+") } else { ("+", "-") };
        let _ = writeln!(out, "[{name}]\nenter = \"{enter}\"");
        let mut kinds: Vec<&str> = (0..self.tape.below(6))
            .map(|_| {
                *self.tape.pick(&[
                    "stop",
                    "target",
                    "trail",
                    "signal",
                    "time",
                    "breakeven",
                    "stop",
                    "target",
                    "signal",
                ])
            })
            .collect();
        if self.tape.chance(15) {
            kinds = vec!["signal"];
        }
        let has_stop = kinds.contains(&"stop");
        if self.tape.chance(25) {
            let mut options = vec!["0.02 * entry", "atr(3)", "0 / 0", "-1", "f0 * atr(w0)", "close - open"];
            if has_stop {
                options.extend(["abs(entry - stop) * f0", "if(is_na(stop), entry / 50, abs(entry - stop))"]);
            }
            let risk = self.one_of(&options);
            let _ = writeln!(out, "risk = \"{risk}\"");
        }
        if self.tape.chance(20) {
            let mut options = vec![
                "0.5",
                "f0",
                "0.01 * entry / risk",
                "atr(w0) / close",
                "0 / 0",
                "if(close > open, 0.3, 0)",
                "0.2 / stddev(roc(close, 1), w1)",
            ];
            if has_stop {
                options.push("0.02 * entry / abs(entry - stop)");
            }
            let _ = writeln!(out, "size = \"{}\"", self.one_of(&options));
            self.has_size = true;
        }
        let mut used = Vec::new();
        let short_form = self.tape.chance(40);
        for kind in kinds {
            let value = match kind {
                "signal" if self.tape.chance(50) => opposite.to_string(),
                _ => self.exit_value(kind, against, favour, has_stop),
            };
            if short_form {
                let key = match kind {
                    "signal" => "exit",
                    "time" => "max_hold",
                    other => other,
                };
                if !used.contains(&key) {
                    used.push(key);
                    let _ = writeln!(out, "{key} = \"{value}\"");
                }
                continue;
            }
            let follows = kind == "stop" && self.tape.chance(35);
            let value = if follows { self.price(2) } else { value };
            let key = match kind {
                "stop" if follows => "series",
                "stop" | "target" => "level",
                "trail" => "distance",
                "breakeven" => "after",
                "signal" => "signal",
                _ => "bars",
            };
            let _ = writeln!(out, "[[{name}.exits]]\nkind = \"{kind}\"\n{key} = \"{value}\"");
            if self.tape.chance(35) {
                let when = self.condition(1);
                let _ = writeln!(out, "when = \"{when}\"");
            }
            if self.tape.chance(25) {
                let label = self.one_of(&["OUT", "P_{f0:.2}", "{100 * c0}%", "W{w0}_{f1 / c0:.3}_x"]);
                let _ = writeln!(out, "label = \"{label}\"");
            }
            if self.tape.chance(15) {
                let _ = writeln!(out, "gap_label = \"{}\"", self.one_of(&["GAP", "G{w1}"]));
            }
        }
    }

    fn exit_value(&mut self, kind: &str, against: &str, favour: &str, has_stop: bool) -> String {
        let (below, above) = if against == "-" { ("low", "high") } else { ("high", "low") };
        let part = self.one_of(&["0.01", "0.03", "0.002", "f0 / 50", "c0 / 40", "0.1"]);
        let factor = self.one_of(&["1", "f0", "c0", "0.5", "2", "f1"]);
        let window = self.window();
        let plain = self.price(2);
        let options = match kind {
            "stop" => vec![
                format!("entry * (1 {against} {part})"),
                format!("{below} {against} {factor} * atr({window})"),
                format!("entry {against} {factor} * tr()"),
                format!("if(b0, {below}, 0 / 0)"),
                format!("{below} {against} {factor}"),
                plain,
            ],
            "target" => {
                let mut options = vec![
                    format!("entry {favour} {factor} * risk"),
                    format!("entry * (1 {favour} {part})"),
                    format!("{above} {favour} {factor} * atr({window})"),
                    format!("{above}[1]"),
                    plain,
                ];
                if has_stop {
                    options.push(format!("entry + {factor} * (entry - stop)"));
                }
                options
            }
            "trail" => vec![
                format!("{part} * entry"),
                format!("{factor} * atr({window})"),
                format!("{factor} * risk"),
                "0".into(),
                format!("{part} * close - x"),
            ],
            "breakeven" => {
                vec![factor, "0.3".into(), "0".into(), format!("x * {part}"), "entry / close".into()]
            }
            "signal" => {
                vec![self.series_condition(2), self.condition(2), "close < close[1]".into(), self.enter()]
            }
            _ => vec![
                "4".into(),
                "1".into(),
                "0".into(),
                window,
                "f0 * 5".into(),
                "if(close > open, 2, 6)".into(),
                "bars('1d')".into(),
                "x * 3".into(),
            ],
        };
        self.tape.pick(&options).clone()
    }

    fn execution(&mut self, out: &mut String) {
        out.push_str("[execution]\n");
        let settings: [(&str, &[&str]); 11] = [
            ("fill", &["\"next_open\"", "\"close\""]),
            ("first_check", &["\"entry_bar\"", "\"next_bar\""]),
            ("gap_fill_stop", &["\"open\"", "\"level\""]),
            ("gap_fill_target", &["\"open\"", "\"level\""]),
            ("invalid_stop", &["\"skip\"", "\"take\""]),
            ("invalid_target", &["\"skip\"", "\"take\""]),
            ("end_of_data", &["\"close\"", "\"discard\""]),
            ("cooldown", &["0", "0", "0", "1", "2", "7", "1000000000"]),
            (
                "sizing",
                &["\"all_in\"", "{ fraction = 0.25 }", "{ risk = 0.02 }", "\"unit\"", "{ risk = 1.0 }"],
            ),
            (
                "fee_bps",
                &[
                    "0",
                    "5.0",
                    "12.5",
                    "0.1",
                    "900",
                    "6000",
                    "4600",
                    "4000",
                    "{ market = 5.5, limit = 2 }",
                    "{ market = 10, stop = 4000, limit = 0.1 }",
                ],
            ),
            ("slippage_bps", &["0", "5.0", "3.3", "{ market = 2, stop = 6, limit = 0 }"]),
        ];
        for (key, options) in settings {
            // Without equity there is no share of it.
            let options: Vec<&str> =
                options.iter().copied().filter(|option| !(self.has_size && *option == "\"unit\"")).collect();
            if self.tape.chance(70) {
                let _ = writeln!(out, "{key} = {}", self.tape.pick(&options));
            }
        }
    }
}
