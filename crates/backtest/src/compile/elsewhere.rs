//! Series of longer bars, of other symbols, over all symbols, and recursions: what may stand in what, and how it becomes nodes.

use std::ops::Range;

use tidemill_market::timeframe::{self, WEEK_MS, format_duration};
use tidemill_search::{Choice, Domain};

use super::function::Signature;
use super::{Builder, Itself, Scope};
use crate::diagnostic::nearest;
use crate::expr::{Expr, Kind};
use crate::graph::{Age, Grid, Node, NodeId, Op2, Over, Type};
use crate::point;

/// `recur(start, next)`.
pub(super) fn recur(
    b: &mut Builder<'_>,
    call: &'static Signature,
    arguments: &[Expr],
    _: &Range<usize>,
) -> Option<NodeId> {
    let start = b.around(Itself::Hidden, |b| b.argument(call, call.args[0], &arguments[0], Scope::Plain));
    let next = b.around(Itself::Known, |b| b.argument(call, call.args[1], &arguments[1], Scope::Plain));
    let node = Node::Recur(start?, next?, b.grid);
    Some(b.graph.add(node))
}

/// `tf(d, x)`.
pub(super) fn tf(
    b: &mut Builder<'_>,
    call: &'static Signature,
    arguments: &[Expr],
    span: &Range<usize>,
) -> Option<NodeId> {
    if b.grid.bucket_ms.is_some() {
        let hint = "one `tf` of longer bars is enough: tf('1d', x) beside tf('4h', y), not inside";
        return b.error_with_hint(span, "`tf` cannot stand inside `tf`", hint);
    }
    let outer = b.grid;
    // A choice of words is a case for each of them, of which a trial needs one.
    let mut cases = Vec::new();
    for (when, bucket_ms) in b.frames(&arguments[0])? {
        let grid = Grid { bucket_ms: Some(bucket_ms), ..outer };
        let x = b.on(grid, |b| b.elsewhere(call, &arguments[1]))?;
        cases.push((when, b.gathered(x, outer, Age::Any)));
    }
    let (_, last) = cases.pop()?;
    Some(cases.into_iter().rev().fold(last, |rest, (when, x)| match when {
        Some(when) => b.graph.add(Node::Select(when, x, rest)),
        None => x,
    }))
}

/// `of(s, x)` and `of(s, x, max_age)`.
pub(super) fn of(
    b: &mut Builder<'_>,
    call: &'static Signature,
    arguments: &[Expr],
    span: &Range<usize>,
) -> Option<NodeId> {
    let outer = b.grid;
    if outer.bucket_ms.is_some() {
        let hint = "longer bars of another symbol are of('BTCUSDT', tf('4h', x))";
        return b.error_with_hint(span, "`of` cannot stand inside `tf`", hint);
    }
    if outer.symbol.is_some() {
        return b.error_with_hint(span, "`of` cannot stand inside `of`", "write one beside the other");
    }
    let symbol = b.symbol(&arguments[0])?;
    let age = match arguments.get(2) {
        None => Age::Usual,
        Some(age) => Age::Most(b.milliseconds(age)?),
    };
    let x = b.on(Grid { symbol: Some(symbol), bucket_ms: None }, |b| b.elsewhere(call, &arguments[1]))?;
    Some(b.gathered(x, outer, age))
}

/// The functions over all symbols.
fn over(
    b: &mut Builder<'_>,
    over: Over,
    call: &'static Signature,
    arguments: &[Expr],
    span: &Range<usize>,
) -> Option<NodeId> {
    let name = call.name;
    if b.grid.bucket_ms.is_some() {
        let hint = format!("compare the longer bars of all symbols by {name}(tf('4h', x))");
        return b.error_with_hint(span, format!("`{name}` cannot stand inside `tf`"), hint);
    }
    if b.grid.symbol.is_some() {
        let hint = "it is about the symbol that is traded, among all of them";
        return b.error_with_hint(span, format!("`{name}` cannot stand inside `of`"), hint);
    }
    let x = b.around(Itself::Hidden, |b| b.argument(call, call.args[0], &arguments[0], Scope::Plain))?;
    if b.data.symbols.len() < 2 {
        let hint = "name more files, or more symbols by --symbols";
        return b.error_with_hint(
            span,
            format!("`{name}` compares symbols, and the data has only one"),
            hint,
        );
    }
    if !b.graph.info(x).series {
        let message = format!("`{name}` needs a series here, found a number");
        return b.error_with_hint(&arguments[0].span, message, format!("write {}", call.usage));
    }
    let mut timeframes: Vec<i64> = b.data.symbols.iter().map(|(_, timeframe)| *timeframe).collect();
    timeframes.sort_unstable();
    timeframes.dedup();
    if timeframes.len() > 1 && b.counts_bars(x) {
        let all: Vec<String> = timeframes.into_iter().map(format_duration).collect();
        let message = format!("`bars` means another number for each symbol inside `{name}`");
        let hint = format!("the symbols have bars of {}; write the number of bars", all.join(", "));
        return b.error_with_hint(&arguments[0].span, message, hint);
    }
    let x = b.as_number(x);
    Some(b.graph.add(Node::Over(over, x)))
}

/// One function for each of what is computed over all symbols.
macro_rules! over_symbols {
    ($($name:ident => $over:expr),* $(,)?) => {$(
        pub(super) fn $name(
            b: &mut Builder<'_>,
            call: &'static Signature,
            arguments: &[Expr],
            span: &Range<usize>,
        ) -> Option<NodeId> {
            over(b, $over, call, arguments, span)
        }
    )*};
}

over_symbols! {
    rank => Over::Rank,
    mean_over => Over::Mean,
    sum_over => Over::Sum,
    max_over => Over::Max,
    min_over => Over::Min,
    count_over => Over::Count,
    // Of ones and zeros.
    share_over => Over::Mean,
}

impl Builder<'_> {
    /// `self` by itself.
    pub(super) fn itself(&mut self, span: &Range<usize>) -> Option<NodeId> {
        match self.itself {
            Itself::Known => Some(self.graph.add(Node::Itself(self.grid))),
            Itself::Outside => self.error_with_hint(
                span,
                "`self` is not known here",
                "it is the last value in the second argument of recur(start, next)",
            ),
            Itself::Hidden => self.error_with_hint(
                span,
                "`self` of a recursion further out is not known here",
                "it has a value on the bars of its own recursion alone: take it out of tf, of, rank or the inner recur",
            ),
        }
    }

    /// Compiles something with another meaning of `self`.
    fn around<T>(&mut self, itself: Itself, compile: impl FnOnce(&mut Self) -> T) -> T {
        // What is hidden from within a recursion is only unknown outside of any.
        let itself = match (itself, self.itself) {
            (Itself::Hidden, Itself::Outside) => Itself::Outside,
            (itself, _) => itself,
        };
        let around = std::mem::replace(&mut self.itself, itself);
        let out = compile(self);
        self.itself = around;
        out
    }

    /// Compiles something about other bars.
    fn on<T>(&mut self, grid: Grid, compile: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.grid, grid);
        let out = self.around(Itself::Hidden, compile);
        self.grid = outer;
        out
    }

    /// A name of `[let]` on other bars: the same expression, about them.
    pub(super) fn let_elsewhere(&mut self, at: usize) -> Option<NodeId> {
        // What is wrong by itself was said already.
        if matches!(self.let_states[at], super::LetState::Done(None)) {
            return None;
        }
        if let Some(known) = self.lets_elsewhere.get(&(at, self.grid)) {
            return *known;
        }
        let strategy = self.strategy;
        let node = self.around(Itself::Outside, |b| b.expr(&strategy.lets[at].1, Scope::Plain));
        self.lets_elsewhere.insert((at, self.grid), node);
        node
    }

    /// The series of a call, about the bars that it is on.
    fn elsewhere(&mut self, call: &Signature, expr: &Expr) -> Option<NodeId> {
        let x = self.expr(expr, Scope::Plain)?;
        if !self.graph.info(x).series {
            let message = format!("`{}` needs a series here, found a number", call.name);
            return self.error_with_hint(&expr.span, message, format!("write {}", call.usage));
        }
        Some(x)
    }

    /// A condition as 1, 0 or not available.
    fn as_number(&mut self, x: NodeId) -> NodeId {
        if self.graph.info(x).ty != Type::Bool {
            return x;
        }
        let (one, zero) = (self.graph.constant(1.0), self.graph.constant(0.0));
        self.graph.add(Node::Select(x, one, zero))
    }

    /// A series of other bars as these bars see it.
    fn gathered(&mut self, x: NodeId, to: Grid, age: Age) -> NodeId {
        let number = self.as_number(x);
        let gathered = self.graph.add(Node::Gather(number, to, age));
        if number == x {
            return gathered;
        }
        let one = self.graph.constant(1.0);
        self.graph.add(Node::Binary(Op2::Eq, gathered, one))
    }

    /// A duration in bars of what is being compiled: a number where these bars have one length.
    pub(super) fn bars(&mut self, duration_ms: i64) -> NodeId {
        let of_symbol = |at: u32| self.data.symbols[at as usize].1;
        match self.grid.bucket_ms.or(self.grid.symbol.map(of_symbol)) {
            Some(length_ms) => self.graph.constant(point::duration_in_bars(duration_ms, length_ms)),
            None => self.graph.add(Node::Bars(duration_ms)),
        }
    }

    /// Whether a node depends on how many bars a duration has.
    fn counts_bars(&self, root: NodeId) -> bool {
        let mut seen = vec![false; self.graph.nodes.len()];
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if matches!(self.graph.node(id), Node::Bars(_)) {
                return true;
            }
            if !std::mem::replace(&mut seen[id as usize], true) {
                stack.extend(self.graph.children(id));
            }
        }
        false
    }

    /// A quoted duration.
    fn milliseconds(&mut self, expr: &Expr) -> Option<i64> {
        let parsed = match &expr.kind {
            Kind::Text(text) => timeframe::parse_duration(text).ok(),
            _ => None,
        };
        parsed.or_else(|| {
            self.error_with_hint(&expr.span, "expected a duration", "for example '15m', '4h', '1d'")
        })
    }

    /// The lengths of bars that the first argument of `tf` stands for, each with the condition that chooses it.
    fn frames(&mut self, expr: &Expr) -> Option<Vec<(Option<NodeId>, i64)>> {
        let Kind::Name(name) = &expr.kind else {
            let Kind::Text(text) = &expr.kind else {
                let hint = "for example tf('4h', close), or a parameter: choice = [\"1h\", \"4h\"]";
                return self.error_with_hint(&expr.span, "expected a timeframe", hint);
            };
            return Some(vec![(None, self.frame(text, None, &expr.span)?)]);
        };
        let param = self.params.get(name.as_str()).copied();
        let options = param.and_then(|at| match &self.strategy.params[at].domain {
            Domain::Choice { options } => Some(options.clone()),
            _ => None,
        });
        let (Some(at), Some(options)) = (param, options) else {
            let is_free =
                param.is_none() && !super::is_built_in(name) && !self.lets.contains_key(name.as_str());
            let hint = match param.is_some() || is_free {
                true => format!("{name} = {{ choice = [\"1h\", \"4h\", \"1d\"] }} under [params]"),
                false => "the timeframe stands first: tf('4h', close)".into(),
            };
            return self.error_with_hint(&expr.span, format!("`{name}` is no choice of timeframes"), hint);
        };
        let mut out = Vec::new();
        for (code, option) in options.iter().enumerate() {
            let Choice::Text(text) = option else {
                let hint = "quote its options: choice = [\"1h\", \"4h\"]";
                return self.error_with_hint(&expr.span, format!("`{name}` is a choice of numbers"), hint);
            };
            let bucket_ms = self.frame(text, Some(name), &expr.span)?;
            let chosen = self.graph.add_param(at, Type::Int);
            let code = self.graph.constant(code as f64);
            out.push((Some(self.graph.add(Node::Binary(Op2::Eq, chosen, code))), bucket_ms));
        }
        Some(out)
    }

    /// The length of longer bars: a whole multiple of those that they are made of.
    fn frame(&mut self, text: &str, of: Option<&str>, span: &Range<usize>) -> Option<i64> {
        let option = of.map(|name| format!(", an option of `{name}`,")).unwrap_or_default();
        let Ok(bucket_ms) = timeframe::parse_duration(text) else {
            let message = format!("'{text}'{option} is no timeframe");
            return self.error_with_hint(span, message, "for example '15m', '4h', '1d', '1w'");
        };
        if bucket_ms > WEEK_MS {
            return self
                .error(span, format!("'{text}'{option} is longer than a week, the longest timeframe"));
        }
        let own = self.grid.symbol;
        let symbols = self.data.symbols.iter().enumerate();
        let wrong = symbols
            .filter(|(at, _)| own.is_none_or(|own| own as usize == *at))
            .find(|(_, (_, timeframe_ms))| *timeframe_ms > 0 && bucket_ms % timeframe_ms != 0)
            .map(|(_, (name, timeframe_ms))| (name.clone(), *timeframe_ms));
        let Some((symbol, timeframe_ms)) = wrong else { return Some(bucket_ms) };
        let base = format_duration(timeframe_ms);
        let (message, hint) = if bucket_ms < timeframe_ms {
            let message = format!("'{text}'{option} is shorter than the bars of the data, {base}");
            (message, format!("{symbol} has bars of {base}; load shorter ones, or name {base} or longer"))
        } else {
            let message = format!("'{text}'{option} is not a whole number of the bars of the data, {base}");
            let near = (bucket_ms / timeframe_ms * timeframe_ms).max(timeframe_ms);
            (message, format!("{symbol} has bars of {base}: '{}' would do", format_duration(near)))
        };
        self.error_with_hint(span, message, hint)
    }

    /// The symbol of this name.
    fn symbol(&mut self, expr: &Expr) -> Option<u32> {
        let Kind::Text(name) = &expr.kind else {
            let hint = "for example of('BTCUSDT', close)";
            return self.error_with_hint(&expr.span, "expected the name of a symbol in quotes", hint);
        };
        let names = || self.data.symbols.iter().map(|(name, _)| name.as_str());
        if let Some(at) = names().position(|known| known == name) {
            return Some(at as u32);
        }
        // A base without its quote currency is meant more often than anything else that begins so.
        let begins =
            |known: &&str| !name.is_empty() && known.to_uppercase().starts_with(&name.to_uppercase());
        let hint = match nearest(name, names()).or_else(|| names().find(begins)) {
            Some(near) => format!("did you mean '{near}'?"),
            None => {
                let known: Vec<&str> = names().take(8).collect();
                let more = if self.data.symbols.len() > known.len() { ", …" } else { "" };
                let known = known.join(", ");
                format!("the data has {known}{more}: add that of {name} to --data, or name one of these")
            }
        };
        self.error_with_hint(&expr.span, format!("there is no symbol '{name}' in the data"), hint)
    }
}
