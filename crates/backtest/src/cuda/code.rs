//! Writes the device code of one strategy: its scalars, conditions, formulas and sides. One file because all of it is one text, written
//! from top to bottom.
//!
//! The operations are those of the plan's tapes, one line each, so that they run in the same order as on the host. What is the same for
//! every strategy is written by hand in the `.cu` files and takes the types made here as parameters.

use std::collections::BTreeSet;
use std::fmt::Write;

use tidemill_market::indicator::{Moments, Read};
use tidemill_search::{Choice, Domain};

use super::constant::{constants, number};
use super::formula::{SplitFormula, binary, decided, formula, split, unary};
use crate::graph::{Func, Node, Op1, Op2};
use crate::plan::{Condition, ExitValue, Maskable, Op, Plan, SidePlan, Slot, Tape};
use crate::strategy::{ExitKind, Strategy};

/// A condition of at most so many operations is tested on two bars at once.
const SMALL: usize = 48;

/// More factors than this are tested as one.
const MOST_FACTORS: usize = 24;

/// The factors of a condition that have masks of their own; empty if only the whole is tested.
pub(super) fn factors(condition: &Condition) -> &[crate::plan::Factor] {
    if condition.factors.len() <= MOST_FACTORS { &condition.factors } else { &[] }
}

/// Slots that need not be columns: their value at one bar costs little, or can be had at all.
pub(super) fn is_flexible(plan: &Plan, slot: usize) -> bool {
    let Slot::Call { func, .. } = &plan.slots[slot] else { return false };
    let at_one_bar = func.at.is_some() || func.sums_read().is_some();
    // A function that reads it needs all of it.
    at_one_bar && !plan.slots.iter().any(|other| other.inputs().contains(&slot))
}

/// What an entry of the prefix sums is that a function reads, and the kind of the field that leads to them.
fn prefix_entry(func: Func) -> Option<(&'static str, &'static str)> {
    let of = |moments| if moments == Moments::Sum { ("DoubleDouble", "SUM") } else { ("PairSums", "PAIR") };
    func.sums_read().map(of)
}

/// Of a function's inputs those that are columns of numbers.
fn numbers_read(func: Func, inputs: &[usize]) -> impl Iterator<Item = usize> {
    let series = func.reads.iter().zip(inputs).filter(|(read, _)| **read == Read::Series);
    series.map(|(_, input)| *input)
}

/// The device code of a strategy.
pub(super) struct Code {
    /// The modelling choices, which all of it may read.
    pub(super) options: String,
    /// What stands before the kernels that walk.
    pub(super) walk: String,
    /// The kernel of the scalars.
    pub(super) scalars: String,
    /// Conditions and formulas with their kernels. None needs another, so that they may be compiled apart.
    pub(super) parts: Vec<String>,
}

/// Writes the device code of a strategy for data with these timeframes.
pub(super) fn generate(plan: &Plan, strategy: &Strategy, timeframes: &[i64]) -> Code {
    let writer = Writer { plan, strategy };
    let conditions = plan.conditions().into_iter().enumerate();
    let mut parts: Vec<String> =
        conditions.flat_map(|(at, condition)| writer.condition(at, condition)).collect();
    for (at, slot) in plan.slots.iter().enumerate() {
        let (types, kernel) = match slot {
            Slot::Formula { tape, .. } => (
                writer.series(&format!("Formula{at}"), tape, None),
                format!("KERNEL(formula_{at}, FormulaArgs) {{ write_column<Formula{at}>(args); }}\n"),
            ),
            Slot::Mask { tape, .. } => (
                writer.tests(&format!("Mask{at}"), &[tape]),
                format!("KERNEL(mask_{at}, MaskArgs) {{ write_mask<Mask{at}>(args); }}\n"),
            ),
            Slot::Recur { start, next, .. } => (
                writer.recursion(&format!("Recursion{at}"), start, next),
                format!(
                    "KERNEL(recursion_{at}, RecursionArgs) {{ write_recursion<Recursion{at}>(args); }}\n\
                     KERNEL(mend_recursion_{at}, RecursionArgs) {{ mend_recursion<Recursion{at}>(args); }}\n"
                ),
            ),
            Slot::Source(_) | Slot::Call { .. } | Slot::Gather { .. } | Slot::Over { .. } => continue,
        };
        parts.push(types + &kernel);
    }
    Code {
        options: constants(plan, strategy),
        walk: writer.walk(),
        scalars: writer.scalars(timeframes),
        parts,
    }
}

pub(super) fn comparison(op: Op2) -> &'static str {
    match op {
        Op2::Lt => "<",
        Op2::Le => "<=",
        Op2::Gt => ">",
        Op2::Ge => ">=",
        Op2::Eq => "==",
        _ => "!=",
    }
}

struct Writer<'a> {
    plan: &'a Plan,
    strategy: &'a Strategy,
}

impl Writer<'_> {
    /// The kernel that turns encoded parameters into all scalars of the plan.
    fn scalars(&self, timeframes: &[i64]) -> String {
        let mut out = String::from("KERNEL(scalars, ScalarArgs) {\n");
        out.push_str(
            "  u32 row = blockIdx.x * blockDim.x + threadIdx.x;\n  if (row >= args.n_rows) return;\n",
        );
        out.push_str(
            "  u32 trial = row % args.n_trials, timeframe = row / args.n_trials;\n  (void)timeframe;\n",
        );
        let graph = &self.plan.graph;
        for (at, id) in self.plan.scalars.iter().enumerate() {
            let place =
                |child: u32| self.plan.scalars.iter().position(|scalar| *scalar == child).unwrap_or_default();
            let s = |child: &u32| format!("s{}", place(*child));
            let value = match graph.node(*id) {
                Node::Const(bits) => number(f64::from_bits(*bits)),
                Node::Param(param) => self.param(*param as usize, &mut out),
                Node::Bars(duration) => {
                    timeframes.iter().enumerate().rev().fold(number(f64::NAN), |rest, (k, ms)| {
                        let bars = number(crate::point::duration_in_bars(*duration, *ms));
                        format!("(timeframe == {k} ? {bars} : {rest})")
                    })
                }
                Node::Unary(op, a) => match op {
                    Op1::Not => format!("1.0 - {}", s(a)),
                    Op1::IsNa => format!("truth(is_na({}))", s(a)),
                    op => unary(*op, &s(a)),
                },
                Node::Binary(op, a, b) => {
                    let function = match op {
                        Op2::Lt => "less",
                        Op2::Le => "less_equal",
                        Op2::Gt => "greater",
                        Op2::Ge => "greater_equal",
                        Op2::Eq => "equal",
                        Op2::Ne => "not_equal",
                        Op2::And => "both",
                        Op2::Or => "either",
                        _ => "",
                    };
                    if function.is_empty() {
                        binary(*op, &s(a), &s(b))
                    } else {
                        format!("{function}({}, {})", s(a), s(b))
                    }
                }
                Node::Select(c, a, b) => format!("choose({}, {}, {})", s(c), s(a), s(b)),
                _ => number(f64::NAN),
            };
            let _ = writeln!(
                out,
                "  double s{at} = {value};\n  args.scalars[{at} * (u64)args.n_rows + row] = s{at};"
            );
        }
        out.push_str("}\n");
        out
    }

    /// The value that expressions see of a parameter.
    fn param(&self, at: usize, out: &mut String) -> String {
        let param = &self.strategy.params[at];
        let _ = writeln!(out, "  double p{at} = args.points[{at} * (u64)args.n_trials + trial];");
        let _ = writeln!(out, "  if (is_na(p{at})) p{at} = {};", number(param.default));
        if let Domain::Choice { options } = &param.domain {
            // A number stands for itself; a text for its place. What is no option stays as it is.
            let _ = writeln!(out, "  switch (p{at} > 0.0 ? (u64)p{at} : 0ull) {{");
            for (place, choice) in options.iter().enumerate() {
                if let Choice::Number(value) = choice {
                    let _ = writeln!(out, "    case {place}: p{at} = {}; break;", number(*value));
                }
            }
            out.push_str("    default: break;\n  }\n");
        }
        format!("p{at}")
    }

    /// A condition, and each of its factors that has masks of its own.
    fn condition(&self, at: usize, condition: &Condition) -> Vec<String> {
        let kernel = |kernel: &str, name: &str, tapes: &[&Tape]| {
            let types = self.tests(name, tapes);
            format!(
                "{types}KERNEL_BOUNDED({kernel}, MaskArgs, 32 * WARPS, MASK_BLOCKS) {{ write_mask<{name}>(args); }}\n"
            )
        };
        let factors = factors(condition);
        let tapes: Vec<&Tape> = if factors.is_empty() {
            vec![&condition.whole.tape]
        } else {
            factors.iter().map(|factor| &factor.itself.tape).collect()
        };
        let mut out = vec![kernel(&format!("condition_{at}"), &format!("Condition{at}"), &tapes)];
        for (f, factor) in factors.iter().enumerate() {
            let (name, tape) = (format!("Factor{at}_{f}"), &factor.itself.tape);
            out.push(kernel(&format!("factor_{at}_{f}"), &name, &[tape]));
            if let Some(threshold) = &factor.threshold {
                let Maskable { tape, .. } = &threshold.series;
                let series = self.series(&format!("Series{at}_{f}"), tape, Some(threshold.op));
                out.push(format!(
                    "{series}KERNEL(levels_{at}_{f}, LevelArgs) {{ write_levels<Series{at}_{f}>(args); }}\n"
                ));
            }
        }
        out
    }

    /// A type that tests conditions at one bar.
    fn tests(&self, name: &str, tapes: &[&Tape]) -> String {
        let frame = self.frame(tapes);
        let mut out = frame.types(name) + &frame.table(name);
        let _ = writeln!(
            out,
            "struct {name} {{\n  static const int N = {}, AT_ONCE = {};\n  typedef {name}Frame Frame;",
            tapes.len(),
            if tapes.iter().map(|tape| tape.ops.len()).sum::<usize>() <= SMALL { 2 } else { 1 }
        );
        let _ = writeln!(
            out,
            "  static __device__ Frame bind(const World& world, u32 row, u32 symbol) {{ return bind_{name}(world, row, symbol); }}"
        );
        let _ = writeln!(
            out,
            "  static __device__ void bind_by_lanes(Frame& f, const World& world, u32 row, u32 symbol) {{ ::bind_by_lanes((char*)&f, {name}_bindings, {}, world, row, symbol); }}",
            frame.bindings.len()
        );
        out.push_str(
            "  static __device__ bool holds(int which, const Frame& f, i64 bar) {\n    switch (which) {\n",
        );
        for (at, tape) in tapes.iter().enumerate() {
            let _ = writeln!(out, "    case {at}: {{\n{}    }}", formula(self.plan, tape, true, "      "));
        }
        out.push_str("    }\n    return false;\n  }\n");
        out.push_str("  static __device__ int decided(int which, const Frame& f) {\n    switch (which) {\n");
        for (at, tape) in tapes.iter().enumerate() {
            let body = decided(tape, "      ");
            if !body.is_empty() {
                let _ = writeln!(out, "    case {at}: {{\n{body}    }}");
            }
        }
        out.push_str("    }\n    return OPEN;\n  }\n};\n");
        out
    }

    /// The beginning of a type that computes these formulas: what they read, and how it is found.
    fn opened(&self, name: &str, tapes: &[&Tape]) -> String {
        let mut out = self.frame(tapes).types(name);
        let _ = writeln!(out, "struct {name} {{\n  typedef {name}Frame Frame;");
        let _ = writeln!(
            out,
            "  static __device__ Frame bind(const World& world, u32 row, u32 symbol) {{ return bind_{name}(world, row, symbol); }}"
        );
        out
    }

    /// A type that computes a series at one bar, and compares it.
    fn series(&self, name: &str, tape: &Tape, op: Option<Op2>) -> String {
        let mut out = self.opened(name, &[tape]);
        let _ = writeln!(
            out,
            "  static __device__ double value(const Frame& f, i64 bar) {{\n{}  }}",
            formula(self.plan, tape, false, "    ")
        );
        if let Some(op) = op {
            let _ = writeln!(
                out,
                "  static __device__ bool compare(double x, double level) {{ return x {} level; }}",
                comparison(op)
            );
        }
        out.push_str("};\n");
        out
    }

    /// A type that computes the first value of a recursion, and the next one.
    fn recursion(&self, name: &str, start: &Tape, next: &Tape) -> String {
        let mut out = self.opened(name, &[start, next]);
        let _ = writeln!(
            out,
            "  static __device__ double first(const Frame& f, i64 bar, const Recursion& opening) {{\n{}  }}",
            formula(self.plan, start, false, "    ")
        );
        let SplitFormula { fields, ahead, rest } = split(self.plan, next, "    ");
        let _ = writeln!(out, "  struct Ahead {{{fields} }};");
        let _ =
            writeln!(out, "  static __device__ Ahead look_ahead(const Frame& f, i64 bar) {{\n{ahead}  }}");
        let _ = writeln!(
            out,
            "  static __device__ double next(const Frame& f, const Ahead& ahead, const Recursion& opening) {{\n{rest}  }}"
        );
        out.push_str("};\n");
        out
    }

    /// All formulas that are computed when a position is opened.
    fn walk_tapes(&self) -> Vec<&Tape> {
        let mut tapes: Vec<&Tape> = Vec::new();
        for side in self.plan.sides.iter().flatten() {
            tapes.extend(side.risk.iter().chain(&side.size));
            for exit in &side.exits {
                tapes.extend(exit.when.as_ref());
                if let ExitValue::Number(tape) = &exit.value {
                    tapes.push(tape);
                }
            }
        }
        tapes
    }

    /// What the sides of the strategy read and compute when a position is opened.
    fn walk(&self) -> String {
        let sides: Vec<(usize, &SidePlan)> =
            self.plan.sides.iter().enumerate().filter_map(|(at, side)| Some((at, side.as_ref()?))).collect();
        let mut out = self.frame(&self.walk_tapes()).types("walk");
        out.push_str("typedef walkFrame WalkFrame;\n");
        let mut condition = 0;
        for ((side, plan), name) in sides.iter().zip(["FirstSide", "SecondSide"]) {
            condition += 1;
            let n_exits = plan.exits.len();
            let _ = writeln!(out, "struct {name} {{\n  static const int N = {n_exits};");
            let _ = writeln!(out, "  static const bool LONG = {};", *side == 0);
            let _ = writeln!(out, "  static const bool HAS_RISK = {};", plan.risk.is_some());
            let _ = writeln!(out, "  static const bool HAS_SIZE = {};", plan.size.is_some());
            let mut kinds = String::new();
            let mut signals = String::new();
            let mut values = String::new();
            let mut whens = String::new();
            for (at, exit) in plan.exits.iter().enumerate() {
                let kind = match exit.kind {
                    ExitKind::Stop => "STOP",
                    ExitKind::StopSeries => "STOP_SERIES",
                    ExitKind::Target => "TARGET",
                    ExitKind::Trail => "TRAIL",
                    ExitKind::Breakeven => "BREAKEVEN",
                    ExitKind::Signal => "SIGNAL",
                    ExitKind::Time => "TIME",
                };
                let _ = write!(kinds, "k == {at} ? {kind} : ");
                match &exit.value {
                    ExitValue::Signal(_) => {
                        let _ = write!(signals, "k == {at} ? {condition} : ");
                        condition += 1;
                    }
                    ExitValue::Number(tape) => {
                        let _ = writeln!(
                            values,
                            "    case {at}: {{\n{}    }}",
                            formula(self.plan, tape, false, "      ")
                        );
                    }
                }
                if let Some(when) = &exit.when {
                    let _ = writeln!(
                        whens,
                        "    case {at}: {{\n{}    }}",
                        formula(self.plan, when, true, "      ")
                    );
                }
            }
            let _ = writeln!(out, "  static __device__ constexpr int kind(int k) {{ return {kinds}-1; }}");
            let _ =
                writeln!(out, "  static __device__ constexpr int condition(int k) {{ return {signals}0; }}");
            let head = "(int which, const WalkFrame& f, i64 bar, const Opening& opening)";
            let _ = writeln!(
                out,
                "  static __device__ double value{head} {{\n    switch (which) {{\n{values}    }}\n    return NA;\n  }}"
            );
            let _ = writeln!(
                out,
                "  static __device__ bool when{head} {{\n    switch (which) {{\n{whens}    }}\n    return true;\n  }}"
            );
            for (name, tape) in [("risk", &plan.risk), ("size", &plan.size)] {
                let body = match tape {
                    Some(tape) => formula(self.plan, tape, false, "    "),
                    None => "    return NA;\n".into(),
                };
                let _ = writeln!(
                    out,
                    "  static __device__ double {name}(const WalkFrame& f, i64 bar, const Opening& opening) {{\n{body}  }}"
                );
            }
            out.push_str("};\n");
        }
        if sides.len() == 1 {
            out.push_str("typedef FirstSide SecondSide;\n");
        }
        out
    }

    /// The columns and scalars that some formulas read, bound to one row and symbol.
    fn frame(&self, tapes: &[&Tape]) -> FrameText {
        let mut columns: BTreeSet<usize> = BTreeSet::new();
        let mut scalars: BTreeSet<usize> = BTreeSet::new();
        let mut shifts: BTreeSet<usize> = BTreeSet::new();
        for op in tapes.iter().flat_map(|tape| &tape.ops) {
            match op {
                Op::Column { slot, shift } => {
                    columns.insert(*slot);
                    shifts.extend(shift);
                }
                Op::Scalar(scalar) | Op::Truth(scalar) => {
                    scalars.insert(*scalar);
                }
                _ => {}
            }
        }
        // What a slot without a column is computed from.
        let flexible: Vec<usize> =
            columns.iter().copied().filter(|slot| is_flexible(self.plan, *slot)).collect();
        for slot in &flexible {
            let Slot::Call { func, inputs, .. } = &self.plan.slots[*slot] else { continue };
            columns.extend(numbers_read(func, inputs));
        }
        let mut frame = FrameText::default();
        for slot in &columns {
            let field = format!("c{slot}");
            frame.bind(
                "const double*",
                &field,
                "COLUMN",
                *slot,
                &format!("column_of(world, {slot}, row, symbol)"),
            );
        }
        for scalar in &scalars {
            frame.bind(
                "double",
                &format!("k{scalar}"),
                "SCALAR",
                *scalar,
                &format!("scalar_of(world, {scalar}, row)"),
            );
        }
        for shift in &shifts {
            let value = format!("bars_ago(scalar_of(world, {shift}, row))");
            frame.bind("i64", &format!("s{shift}"), "SHIFT", *shift, &value);
        }
        for slot in &flexible {
            self.write_flexible(*slot, &mut frame);
        }
        if !flexible.is_empty() {
            frame.bind("u32", "n_bars", "LENGTH", 0, "world.start[symbol + 1] - world.start[symbol]");
        }
        frame
    }

    /// What a slot is read by that may have no column: windows, sums, and its value at one bar.
    fn write_flexible(&self, slot: usize, frame: &mut FrameText) {
        let Slot::Call { func, inputs, arguments, .. } = &self.plan.slots[slot] else { return };
        let mut windows = Vec::new();
        for (k, argument) in arguments.iter().enumerate() {
            let (field, value) =
                (format!("w{slot}_{k}"), format!("window(scalar_of(world, {argument}, row))"));
            frame.bind("u32", &field, "WINDOW", *argument, &value);
            windows.push(field);
        }
        let windows = windows.join(", ");
        let mut value = format!("{}_at(", func.name);
        for column in numbers_read(func, inputs) {
            let _ = write!(value, "c{column}, ");
        }
        if let Some((entry, kind)) = prefix_entry(func) {
            let _ = write!(value, "q{slot}.entries, q{slot}.counts, ");
            let prefix = inputs[inputs.len() - 1];
            let sums =
                format!("f.c{slot} ? Sums<{entry}>() : sums_of<{entry}>(world, {prefix}, row, symbol)");
            frame.bind(&format!("Sums<{entry}>"), &format!("q{slot}"), kind, prefix, &sums);
        }
        let _ = writeln!(
            frame.fields,
            "  __device__ double at{slot}(u32 bar) const {{ return c{slot} ? c{slot}[bar] : {value}n_bars, bar, {windows}); }}"
        );
    }
}

/// The text of a frame: its fields, and how they are bound by one thread or by all lanes of a warp.
#[derive(Default)]
struct FrameText {
    fields: String,
    binds: String,
    /// Bytes of all fields.
    size: usize,
    /// Kind, place in bytes, and the slot or scalar that the field comes from.
    bindings: Vec<(&'static str, usize, usize)>,
}

impl FrameText {
    fn bind(&mut self, of: &str, field: &str, kind: &'static str, from: usize, value: &str) {
        let _ = writeln!(self.fields, "  {of} {field};");
        let _ = writeln!(self.binds, "  f.{field} = {value};");
        let (size, alignment) = match kind {
            "WINDOW" | "LENGTH" => (4, 4),
            "SUM" | "PAIR" => (16, 8),
            _ => (8, 8),
        };
        let at = self.size.next_multiple_of(alignment);
        self.size = at + size;
        self.bindings.push((kind, at, from));
    }

    /// The frame, and a function that binds it.
    fn types(&self, name: &str) -> String {
        let Self { fields, binds, .. } = self;
        format!(
            "struct {name}Frame {{\n{fields}}};\n__device__ inline {name}Frame bind_{name}(const World& world, u32 row, u32 symbol) {{\n  {name}Frame f = {{}};\n{binds}  return f;\n}}\n"
        )
    }

    /// What lanes bind.
    fn table(&self, name: &str) -> String {
        let mut out = format!("__device__ const Binding {name}_bindings[] = {{");
        for (kind, at, from) in &self.bindings {
            let _ = write!(out, "{{{kind}_FIELD, {at}, {from}}}, ");
        }
        // An array must not be empty, and neither is a struct.
        let size = self.size.next_multiple_of(8);
        let _ = writeln!(out, "{{LENGTH_FIELD, 0, 0}}}};");
        if size > 0 {
            let _ = writeln!(
                out,
                "static_assert(sizeof({name}Frame) == {size}, \"fields lie where lanes bind them\");"
            );
        }
        out
    }
}
