//! Constants that the `.cu` files read: the modelling choices of a strategy, and the shapes of blocks.

use std::fmt::Write;

use super::data::TILE;
use crate::exec::cost::Costs;
use crate::plan::{ExitValue, Plan, SidePlan};
use crate::strategy::{EndOfData, FillAt, FirstCheck, GapFill, InvalidLevel, Sizing, Strategy};

/// Lanes that walk one trial together.
pub(super) const WALK_LANES: usize = 8;

/// Threads of a block that takes several walks.
pub(super) const WALK_THREADS: usize = 128;

/// Threads of a block that takes one walk, at least and at most.
pub(super) const LEAST_WALK_THREADS: usize = 64;
pub(super) const MOST_WALK_THREADS: usize = 512;

/// Bars that a group of such a block walks, at least.
const LEAST_STRETCH: usize = 64;

/// Bars after a signal that such a group searches for the end of a position, at least.
const HORIZON: usize = 256;

/// Warps of a block that books: few, because each takes long.
pub(super) const BOOK_WARPS: usize = 2;

/// A number as the device reads it: by its bits, so that nothing is lost or made.
pub(super) fn number(value: f64) -> String {
    format!("__longlong_as_double(0x{:016x}LL)", value.to_bits())
}

/// The modelling choices of a strategy, and the shapes of blocks, as definitions.
pub(super) fn constants(plan: &Plan, strategy: &Strategy) -> String {
    let e = &strategy.execution;
    let (risk, share) = match e.sizing {
        Sizing::AllIn | Sizing::Unit => (false, 1.0),
        Sizing::Fraction(share) => (false, share),
        Sizing::Risk(share) => (true, share),
    };
    let mut out = String::new();
    let mut define = |name: &str, value: String| {
        let _ = writeln!(out, "#define {name} {value}");
    };
    let truth = |value: bool| if value { "1" } else { "0" }.to_owned();
    define("TILE", TILE.to_string());
    define("WALK_LANES", WALK_LANES.to_string());
    define("WALK_THREADS", WALK_THREADS.to_string());
    define("MOST_WALK_THREADS", MOST_WALK_THREADS.to_string());
    define("LEAST_STRETCH", LEAST_STRETCH.to_string());
    define("HORIZON", HORIZON.to_string());
    define("BOOK_WARPS", BOOK_WARPS.to_string());
    // Measured: with more blocks registers are spilt, with fewer too little is under way.
    define("WALK_BLOCKS", "12".into());
    define("MASK_BLOCKS", "8".into());
    define("BOOK_BLOCKS", "12".into());
    define("FILL_CLOSE", truth(e.fill == FillAt::Close));
    define("CHECK_ENTRY_BAR", truth(e.first_check == FirstCheck::EntryBar));
    define("GAP_STOP_OPEN", truth(e.gap_fill_stop == GapFill::Open));
    define("GAP_TARGET_OPEN", truth(e.gap_fill_target == GapFill::Open));
    define("SKIP_INVALID_STOP", truth(e.invalid_stop == InvalidLevel::Skip));
    define("SKIP_INVALID_TARGET", truth(e.invalid_target == InvalidLevel::Skip));
    define("DISCARD_OPEN", truth(e.end_of_data == EndOfData::Discard));
    define("COOLDOWN", format!("{}u", e.cooldown));
    let costs = Costs::new(e).bps;
    define("COST_MARKET_BPS", number(costs.market));
    define("COST_STOP_BPS", number(costs.stop));
    define("COST_LIMIT_BPS", number(costs.limit));
    define("ADDITIVE", truth(e.sizing == Sizing::Unit));
    define("SIZING_RISK", truth(risk));
    define("SIZING_SHARE", number(share));
    let sides: Vec<&SidePlan> = plan.sides.iter().flatten().collect();
    define("ANY_SIZE", truth(sides.iter().any(|side| side.size.is_some())));
    define("N_SIDES", sides.len().to_string());
    define("N_CONDITIONS", plan.conditions().len().to_string());
    define("ENTER_0", "0".into());
    let of_first = match sides.as_slice() {
        [first, _] => {
            1 + first.exits.iter().filter(|exit| matches!(exit.value, ExitValue::Signal(_))).count()
        }
        _ => 0,
    };
    define("ENTER_1", of_first.to_string());
    out
}
