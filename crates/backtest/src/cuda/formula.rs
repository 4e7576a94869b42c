//! Writes one formula as device code.

use std::fmt::Write;

use super::code::{comparison, is_flexible};
use crate::graph::{Op1, Op2, Position};
use crate::plan::{Op, Plan, Tape};

/// Writes the operations of a formula, and its result.
pub(super) fn formula(plan: &Plan, tape: &Tape, truth: bool, indent: &str) -> String {
    let mut body = Body::new(plan, tape, indent);
    let last = tape.ops.len() - 1;
    body.emit(last);
    body.line(&format!("return {}{last};", if truth { 'y' } else { 'v' }));
    body.out
}

/// A recursion's next value in two parts: what can be computed without the value before, and the rest.
pub(super) struct SplitFormula {
    /// Declarations of what the first part hands to the second.
    pub(super) fields: String,
    /// The first part.
    pub(super) ahead: String,
    /// The second, which finds the first in `ahead`.
    pub(super) rest: String,
}

/// Splits the next value of a recursion, so that what it reads can be on its way long before it is needed.
pub(super) fn split(plan: &Plan, tape: &Tape, indent: &str) -> SplitFormula {
    let depends = depends_on_the_last(tape);
    // What the dependent operations read of the others; numbers that are the same on every bar are at hand anyway.
    let last = tape.ops.len() - 1;
    let mut is_handed = vec![false; tape.ops.len()];
    is_handed[last] = !depends[last];
    for op in (0..=last).filter(|&at| depends[at]).map(|at| &tape.ops[at]) {
        op.operands(|operand| is_handed[operand] |= !depends[operand]);
    }
    let scalar = scalar_only(tape);
    let handed: Vec<usize> = (0..=last).filter(|&at| is_handed[at] && !scalar[at]).collect();

    let [mut ahead, mut rest] = [(); 2].map(|()| Body::new(plan, tape, indent));
    let mut fields = String::new();
    ahead.line("Ahead ahead;");
    for at in handed {
        ahead.emit(at);
        let is_truth = matches!(
            tape.ops[at],
            Op::Truth(_) | Op::Compare(..) | Op::IsNa(_) | Op::Not(_) | Op::Logic(..) | Op::SelectTruth(..)
        );
        let parts: &[&str] = if is_truth { &["y", "n"] } else { &["v"] };
        for part in parts {
            let kind = if *part == "v" { "double" } else { "bool" };
            let _ = write!(fields, " {kind} {part}{at};");
            ahead.line(&format!("ahead.{part}{at} = {part}{at};"));
            rest.line(&format!("{kind} {part}{at} = ahead.{part}{at};"));
        }
        rest.known[0][at] = true;
    }
    ahead.line("return ahead;");
    rest.emit(last);
    rest.line(&format!("return v{last};"));
    SplitFormula { fields, ahead: ahead.out, rest: rest.out }
}

/// Whether the next value of a recursion is one of those that it reads, chosen by the last one, or that itself: a stop that follows the price. What is
/// computed with the last value, as a mean or a sum, forgets late or never how it began.
pub(super) fn is_chosen(next: &Tape) -> bool {
    let computes = |op: &Op| match op {
        Op::Unary(..) => true,
        Op::Binary(of, ..) => !matches!(of, Op2::Min | Op2::Max),
        _ => false,
    };
    let depends = depends_on_the_last(next);
    !next.ops.iter().zip(depends).any(|(op, is_dependent)| is_dependent && computes(op))
}

/// Which operations of a recursion need the last value.
fn depends_on_the_last(tape: &Tape) -> Vec<bool> {
    let mut depends: Vec<bool> = Vec::with_capacity(tape.ops.len());
    for op in &tape.ops {
        let mut is_dependent = matches!(op, Op::Position(_));
        op.operands(|operand| is_dependent |= depends[operand]);
        depends.push(is_dependent);
    }
    depends
}

/// Writes what the switches of a trial make of a condition on every bar: `ALWAYS_TRUE`, `NEVER_TRUE` or `OPEN`. Nothing where there are no switches.
pub(super) fn decided(tape: &Tape, indent: &str) -> String {
    let mut out = String::new();
    // Whether it can be known of each operation that it is true, and that it is false.
    let mut known: Vec<(bool, bool)> = Vec::with_capacity(tape.ops.len());
    for (at, op) in tape.ops.iter().enumerate() {
        let yes = |a: &usize| if known[*a].0 { format!("y{a}") } else { "false".into() };
        let no = |a: &usize| if known[*a].1 { format!("n{a}") } else { "false".into() };
        let (is_true, is_false) = match op {
            Op::Truth(scalar) => (format!("f.k{scalar} == 1.0"), format!("f.k{scalar} == 0.0")),
            Op::Not(a) => (no(a), yes(a)),
            Op::Logic(Op2::And, a, b) => {
                (format!("{} && {}", yes(a), yes(b)), format!("{} || {}", no(a), no(b)))
            }
            Op::Logic(_, a, b) => (format!("{} || {}", yes(a), yes(b)), format!("{} && {}", no(a), no(b))),
            _ => (String::new(), String::new()),
        };
        let can = match op {
            Op::Truth(_) => (true, true),
            Op::Not(a) => (known[*a].1, known[*a].0),
            Op::Logic(Op2::And, a, b) => (known[*a].0 && known[*b].0, known[*a].1 || known[*b].1),
            Op::Logic(_, a, b) => (known[*a].0 || known[*b].0, known[*a].1 && known[*b].1),
            _ => (false, false),
        };
        if can.0 {
            let _ = writeln!(out, "{indent}bool y{at} = {is_true};");
        }
        if can.1 {
            let _ = writeln!(out, "{indent}bool n{at} = {is_false};");
        }
        known.push(can);
    }
    let last = tape.ops.len() - 1;
    match known[last] {
        (false, false) => return String::new(),
        (yes, no) => {
            let yes = if yes { format!("y{last} ? ALWAYS_TRUE : ") } else { String::new() };
            let no = if no { format!("n{last} ? NEVER_TRUE : ") } else { String::new() };
            let _ = writeln!(out, "{indent}return {yes}{no}OPEN;");
        }
    }
    out
}

/// Which operations of a formula have one value for all bars.
fn scalar_only(tape: &Tape) -> Vec<bool> {
    let mut out: Vec<bool> = Vec::with_capacity(tape.ops.len());
    for op in &tape.ops {
        let scalar = match op {
            Op::Scalar(_) | Op::Truth(_) => true,
            Op::Column { .. } | Op::Point { .. } | Op::Position(_) => false,
            Op::Unary(_, a) | Op::IsNa(a) | Op::Not(a) => out[*a],
            Op::Binary(_, a, b) | Op::Compare(_, a, b) | Op::Logic(_, a, b) => out[*a] && out[*b],
            Op::Select(c, a, b) | Op::SelectTruth(c, a, b) => out[*c] && out[*a] && out[*b],
        };
        out.push(scalar);
    }
    out
}

/// Which operations of a formula read a value that may have to be computed from others.
fn costly(plan: &Plan, tape: &Tape) -> Vec<bool> {
    let mut out: Vec<bool> = Vec::with_capacity(tape.ops.len());
    for op in &tape.ops {
        let mut is_costly = matches!(op, Op::Column { slot, .. } if is_flexible(plan, *slot));
        op.operands(|operand| is_costly |= out[operand]);
        out.push(is_costly);
    }
    out
}

/// Writes one formula: each operation where it is first needed, and not before it is known to be needed.
///
/// A switch of the strategy decides for a whole warp which side of an `or` or of an `if` counts; the other side is never read.
struct Body<'a> {
    plan: &'a Plan,
    tape: &'a Tape,
    /// For each open block, the operations that were written in it.
    known: Vec<Vec<bool>>,
    scalar: Vec<bool>,
    costly: Vec<bool>,
    out: String,
    indent: String,
}

impl<'a> Body<'a> {
    fn new(plan: &'a Plan, tape: &'a Tape, indent: &str) -> Self {
        Self {
            plan,
            tape,
            known: vec![vec![false; tape.ops.len()]],
            scalar: scalar_only(tape),
            costly: costly(plan, tape),
            out: String::new(),
            indent: indent.to_owned(),
        }
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}{text}", self.indent);
    }

    /// Writes a block that leaves something out if it is not needed.
    fn block(&mut self, head: &str, write: impl FnOnce(&mut Self)) {
        self.line(head);
        self.known.push(vec![false; self.tape.ops.len()]);
        self.indent.push_str("  ");
        write(self);
        self.indent.truncate(self.indent.len() - 2);
        self.known.pop();
        self.line("}");
    }

    fn emit(&mut self, at: usize) {
        if self.known.iter().any(|block| block[at]) {
            return;
        }
        self.write(at);
        if let Some(block) = self.known.last_mut() {
            block[at] = true;
        }
    }

    fn write(&mut self, at: usize) {
        let tape = self.tape;
        let line = match &tape.ops[at] {
            Op::Column { slot, shift } => {
                let value = match (is_flexible(self.plan, *slot), shift) {
                    (false, None) => format!("f.c{slot}[bar]"),
                    (false, Some(shift)) => format!("read(f.c{slot}, bar, f.s{shift})"),
                    (true, None) => format!("f.at{slot}((u32)bar)"),
                    (true, Some(shift)) => {
                        format!(
                            "f.s{shift} >= 0 && f.s{shift} <= bar ? f.at{slot}((u32)(bar - f.s{shift})) : NA"
                        )
                    }
                };
                format!("double v{at} = {value};")
            }
            Op::Point { .. } => unreachable!("a plan for many trials has slots only"),
            Op::Scalar(scalar) => format!("double v{at} = f.k{scalar};"),
            Op::Truth(scalar) => format!("bool y{at} = f.k{scalar} == 1.0, n{at} = f.k{scalar} == 0.0;"),
            Op::Position(position) => {
                let field = match position {
                    Position::Entry => "entry",
                    Position::Stop => "stop",
                    Position::Risk => "risk",
                    Position::Itself => "itself",
                };
                format!("double v{at} = opening.{field};")
            }
            Op::Unary(op, a) => {
                self.emit(*a);
                format!("double v{at} = {};", unary(*op, &format!("v{a}")))
            }
            Op::Binary(op, a, b) => {
                self.emit(*a);
                self.emit(*b);
                format!("double v{at} = {};", binary(*op, &format!("v{a}"), &format!("v{b}")))
            }
            Op::Compare(op, a, b) => {
                self.emit(*a);
                self.emit(*b);
                let (yes, no) = (compared(*op, *a, *b), compared(op.opposite(), *a, *b));
                format!("bool y{at} = {yes}, n{at} = {no};")
            }
            Op::IsNa(a) => {
                self.emit(*a);
                format!("bool y{at} = is_na(v{a}), n{at} = !y{at};")
            }
            Op::Not(a) => {
                self.emit(*a);
                format!("bool y{at} = n{a}, n{at} = y{a};")
            }
            Op::Logic(op, a, b) => return self.logic(at, *op, *a, *b),
            Op::Select(c, a, b) => return self.select(at, *c, *a, *b, &['v']),
            Op::SelectTruth(c, a, b) => return self.select(at, *c, *a, *b, &['y', 'n']),
        };
        self.line(&line);
    }

    /// `a ∘ b`, where `b` is evaluated only if `a` does not decide, or if it is cheap.
    fn logic(&mut self, at: usize, op: Op2, a: usize, b: usize) {
        // What is the same for all bars decides for a whole warp, so it goes first.
        let (a, b) = if self.scalar[b] && !self.scalar[a] { (b, a) } else { (a, b) };
        self.emit(a);
        if !self.scalar[a] && !self.costly[b] {
            // Some lane of a warp nearly always needs the other side. Without a branch its reads need not wait for this side.
            self.emit(b);
            let (yes, no) = if op == Op2::And { ("&", "|") } else { ("|", "&") };
            self.line(&format!("bool y{at} = y{a} {yes} y{b}, n{at} = n{a} {no} n{b};"));
            return;
        }
        let (needs_yes, needs_no) = self.tape.needs[at];
        let (decided, join) = match op {
            Op2::And => (if needs_no { format!("n{a}") } else { format!("!y{a}") }, ("&&", "||")),
            _ => (if needs_no && !needs_yes { format!("!n{a}") } else { format!("y{a}") }, ("||", "&&")),
        };
        // Decided: an `and` by what is not true, an `or` by what is true. What is not needed may be anything.
        let value = if op == Op2::And { "false" } else { "true" };
        let other = if op == Op2::And { "true" } else { "false" };
        self.line(&format!("bool y{at} = {value}, n{at} = {other};"));
        self.block(&format!("if (!({decided})) {{"), |body| {
            body.emit(b);
            body.line(&format!("y{at} = y{a} {} y{b};", join.0));
            body.line(&format!("n{at} = n{a} {} n{b};", join.1));
        });
    }

    /// `if(c, a, b)`, which evaluates only the chosen side.
    fn select(&mut self, at: usize, c: usize, a: usize, b: usize, parts: &[char]) {
        self.emit(c);
        for part in parts {
            let none = if *part == 'v' {
                "double v"
            } else if *part == 'y' {
                "bool y"
            } else {
                "bool n"
            };
            let value = if *part == 'v' { "NA" } else { "false" };
            self.line(&format!("{none}{at} = {value};"));
        }
        for (truth, side) in [('y', a), ('n', b)] {
            self.block(&format!("if ({truth}{c}) {{"), |body| {
                body.emit(side);
                for part in parts {
                    body.line(&format!("{part}{at} = {part}{side};"));
                }
            });
        }
    }
}

/// A comparison that is false where a side is not available; `!=` alone would be true there.
fn compared(op: Op2, a: usize, b: usize) -> String {
    match op {
        Op2::Ne => format!("v{a} < v{b} || v{a} > v{b}"),
        _ => format!("v{a} {} v{b}", comparison(op)),
    }
}

pub(super) fn unary(op: Op1, a: &str) -> String {
    match op {
        Op1::Neg => format!("-{a}"),
        Op1::Not | Op1::IsNa => unreachable!("a truth value"),
        Op1::Abs => format!("fabs({a})"),
        Op1::Sqrt => format!("sqrt({a})"),
        Op1::Floor => format!("floor({a})"),
        Op1::Ceil => format!("ceil({a})"),
        Op1::Round => format!("rint({a})"),
    }
}

pub(super) fn binary(op: Op2, a: &str, b: &str) -> String {
    match op {
        Op2::Add => format!("{a} + {b}"),
        Op2::Sub => format!("{a} - {b}"),
        Op2::Mul => format!("{a} * {b}"),
        Op2::Div => format!("{a} / {b}"),
        Op2::Min => format!("minimum({a}, {b})"),
        _ => format!("maximum({a}, {b})"),
    }
}

#[cfg(test)]
mod tests {
    use tidemill_market::Universe;
    use tidemill_market::synth::lcg;

    use super::*;
    use crate::exec::engine::{Engine, EngineOptions};
    use crate::plan::Slot;
    use crate::segment::Layout;
    use crate::strategy::{Overrides, Strategy};

    #[test]
    fn a_stop_is_chosen_and_a_mean_is_computed() {
        let is_chosen = |next: &str| {
            let text = format!(
                "name = \"x\"\n[let]\nline = \"recur(close, {next})\"\n[long]\nenter = \"close > line\"\nexit = \"close < line\"\n"
            );
            let strategy = Strategy::parse("x.toml", &text, &Overrides::default()).unwrap();
            let universe = Universe { symbols: vec![lcg(50)] };
            let segments = Layout::default().segments(&universe).unwrap();
            let engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
            let plan = Plan::with_all_slots(&engine.program);
            let next = |slot: &Slot| match slot {
                Slot::Recur { next, .. } => Some(is_chosen(next)),
                _ => None,
            };
            plan.slots.iter().find_map(next).unwrap()
        };
        assert!(is_chosen("if(close[1] > self, max(self, close - 2 * atr(5)), close)"));
        assert!(is_chosen("min(self, high)"));
        for next in
            ["self + volume", "0.9 * self + 0.1 * close", "if(close > 2 * self, close, self)", "abs(self)"]
        {
            assert!(!is_chosen(next), "{next}");
        }
    }
}
