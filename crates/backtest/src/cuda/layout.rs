//! The structs that kernels read, as the host writes them. Each has its twin of the same name in a `.cu` file, where the fields are explained;
//! `module.rs` has the compiler compare the two.

use tidemill_gpu::{DevicePtr, kernel_structs};
use tidemill_market::indicator::device::Input;

use crate::tally::Tally;

pub(super) const EVALUATE: u32 = 0;
pub(super) const EXACT: u32 = 1;
pub(super) const LEVEL: u32 = 2;
pub(super) const LEVELS: usize = 32;
/// Warps of a block that writes masks, levels or formulas.
pub(super) const WARPS: u32 = 4;

/// Status of a walk that is not done.
pub(super) const RUNNING: u32 = 0;

// How a trade was closed, as in exit.cu.
pub(super) const EXIT_NUMBER: u32 = 0xffff;
pub(super) const EXIT_END: u32 = 0xffff;
pub(super) const EXIT_RUIN: u32 = 0xfffe;
pub(super) const LONG_BIT: u32 = 0x1_0000;
pub(super) const GAP_BIT: u32 = 0x2_0000;
pub(super) const AMBIGUOUS_BIT: u32 = 0x4_0000;
pub(super) const CLOSE_BIT: u32 = 0x8_0000;
pub(super) const STOP_BIT: u32 = 0x10_0000;
pub(super) const LIMIT_BIT: u32 = 0x20_0000;

kernel_structs! {
    pub(super) const LAYOUTS;

    pub(super) struct World {
        pub start: DevicePtr<u32>,
        pub word_start: DevicePtr<u32>,
        pub timeframe: DevicePtr<u32>,
        pub scalars: DevicePtr<f64>,
        pub slots: DevicePtr<Input>,
        pub open: DevicePtr<f64>,
        pub high: DevicePtr<f64>,
        pub low: DevicePtr<f64>,
        pub close: DevicePtr<f64>,
        pub day: DevicePtr<u32>,
        pub day_start: DevicePtr<u32>,
        pub day_close: DevicePtr<f64>,
        pub day_low: DevicePtr<f64>,
        pub day_high: DevicePtr<f64>,
        pub day_end: DevicePtr<u32>,
        pub extremes: DevicePtr<f64>,
        pub calendar: DevicePtr<u32>,
        pub n_symbols: u32,
        pub n_bars: u32,
        pub n_words: u32,
        pub n_trials: u32,
        pub n_rows: u32,
        pub unused: u32,
    }

    pub(super) struct ScalarArgs {
        pub points: DevicePtr<f64>,
        pub scalars: DevicePtr<f64>,
        pub n_trials: u32,
        pub n_rows: u32,
    }

    pub(super) struct Key {
        pub table: DevicePtr<u32>,
        pub keys: DevicePtr<f64>,
        pub item_of: DevicePtr<u32>,
        pub place_of: DevicePtr<u32>,
        pub row: DevicePtr<u32>,
        pub scalars: DevicePtr<u32>,
        pub count: DevicePtr<u32>,
        pub span: DevicePtr<u32>,
        pub n_scalars: u32,
        pub mask: u32,
    }

    pub(super) struct DistinctArgs {
        pub keys: DevicePtr<Key>,
        pub chains: DevicePtr<u32>,
        pub scalars: DevicePtr<f64>,
        pub n_rows: u32,
        pub n_keys: u32,
    }

    pub(super) struct Tile {
        pub symbol: u32,
        pub first: u32,
        pub end: u32,
    }

    pub(super) struct FactorMask {
        pub pool: DevicePtr<u64>,
        pub item_of: DevicePtr<u32>,
        pub level_of: DevicePtr<u32>,
        pub mode: u32,
        pub n_levels: u32,
    }

    pub(super) struct MaskArgs {
        pub world: DevicePtr<World>,
        pub tiles: DevicePtr<Tile>,
        pub factors: DevicePtr<FactorMask>,
        pub row: DevicePtr<u32>,
        pub order: DevicePtr<u32>,
        pub out: DevicePtr<u64>,
        pub n_set: DevicePtr<u32>,
        pub first: u32,
        pub count: u32,
        pub n_tiles: u32,
        pub n_factors: u32,
    }

    pub(super) struct Sharer {
        pub item_of: DevicePtr<u32>,
        pub level_of: DevicePtr<u32>,
        pub n_items: u32,
        pub n_levels: u32,
    }

    pub(super) struct GroupArgs {
        pub sharers: DevicePtr<Sharer>,
        pub row: DevicePtr<u32>,
        pub group_of: DevicePtr<u32>,
        pub counts: DevicePtr<u32>,
        pub order: DevicePtr<u32>,
        pub count: u32,
        pub n_sharers: u32,
        pub n_groups: u32,
        pub unused: u32,
    }

    pub(super) struct LevelArgs {
        pub world: DevicePtr<World>,
        pub tiles: DevicePtr<Tile>,
        pub row: DevicePtr<u32>,
        pub levels: DevicePtr<f64>,
        pub out: DevicePtr<u64>,
        pub first: u32,
        pub count: u32,
        pub n_tiles: u32,
        pub n_levels: u32,
    }

    pub(super) struct SpreadArgs {
        pub threshold: DevicePtr<f64>,
        pub levels: DevicePtr<f64>,
        pub level_of: DevicePtr<u32>,
        pub n_rows: u32,
        pub above: u32,
        pub n_levels: u32,
        pub unused: u32,
    }

    pub(super) struct FormulaArgs {
        pub world: DevicePtr<World>,
        pub tiles: DevicePtr<Tile>,
        pub row: DevicePtr<u32>,
        pub out: DevicePtr<f64>,
        pub first: u32,
        pub count: u32,
        pub n_tiles: u32,
        pub unused: u32,
    }

    pub(super) struct RecursionArgs {
        pub world: DevicePtr<World>,
        pub row: DevicePtr<u32>,
        pub out: DevicePtr<f64>,
        pub states: DevicePtr<f64>,
        pub first: u32,
        pub count: u32,
        pub n_stretches: u32,
        pub length: u32,
    }

    pub(super) struct GatherArgs {
        pub input: Input,
        pub route: DevicePtr<u32>,
        pub row: DevicePtr<u32>,
        pub out: DevicePtr<f64>,
        pub first: u32,
        pub count: u32,
        pub n_bars: u32,
        pub unused: u32,
    }

    pub(super) struct OverArgs {
        pub input: Input,
        pub bars: DevicePtr<u32>,
        pub start: DevicePtr<u32>,
        pub row: DevicePtr<u32>,
        pub out: DevicePtr<f64>,
        pub first: u32,
        pub count: u32,
        pub n_bars: u32,
        pub n_times: u32,
        pub over: u32,
        pub unused: u32,
    }

    pub(super) struct Segment {
        pub symbol: u32,
        pub first: u32,
        pub end: u32,
        pub role: u32,
    }

    pub(super) struct Trade {
        pub entry: f64,
        pub exit: f64,
        pub risk: f64,
        pub share: f64,
        pub entry_bar: u32,
        pub exit_bar: u32,
        pub how: u32,
        pub skipped: u32,
    }

    pub(super) struct WalkState {
        pub from: u32,
        pub status: u32,
        pub n_trades: u32,
        pub skipped: u32,
    }

    pub(super) struct ConditionMask {
        pub pool: DevicePtr<u64>,
        pub item_of: DevicePtr<u32>,
        pub n_set: DevicePtr<u32>,
    }

    pub(super) struct OrderArgs {
        pub conditions: DevicePtr<ConditionMask>,
        pub group_of: DevicePtr<u32>,
        pub counts: DevicePtr<u32>,
        pub n_trials: u32,
        pub n_groups: u32,
    }

    pub(super) struct WalkArgs {
        pub world: DevicePtr<World>,
        pub segments: DevicePtr<Segment>,
        pub conditions: DevicePtr<ConditionMask>,
        pub trades: DevicePtr<Trade>,
        pub states: DevicePtr<WalkState>,
        pub order: DevicePtr<u32>,
        pub n_segments: u32,
        pub capacity: u32,
    }

    pub(super) struct Book {
        pub tally: Tally,
        pub peak: f64,
        pub peak_daily: f64,
        pub mark: f64,
        pub pnl_peak: f64,
        pub pnl_peak_ref: f64,
        pub day: u32,
        pub first_day: u32,
        pub peak_day: u32,
        pub broke: u32,
    }

    pub(super) struct BookState {
        pub book: Book,
        pub n_done: u32,
        pub open: u32,
    }

    pub(super) struct BookArgs {
        pub world: DevicePtr<World>,
        pub segments: DevicePtr<Segment>,
        pub trades: DevicePtr<Trade>,
        pub walks: DevicePtr<WalkState>,
        pub books: DevicePtr<BookState>,
        pub tallies: DevicePtr<Tally>,
        pub daily: [DevicePtr<f64>; 2],
        pub blocks: DevicePtr<f64>,
        pub block_of: DevicePtr<u32>,
        pub n_open: DevicePtr<u32>,
        pub order: DevicePtr<u32>,
        pub n_segments: u32,
        pub capacity: u32,
        pub n_each: u32,
        pub n_days: u32,
    }

    pub(super) struct PoolArgs {
        pub segments: DevicePtr<Segment>,
        pub tallies: DevicePtr<Tally>,
        pub daily: DevicePtr<f64>,
        pub pooled: DevicePtr<Tally>,
        pub blocks: DevicePtr<f64>,
        pub block_of: DevicePtr<u32>,
        pub n_segments: u32,
        pub n_trials: u32,
        pub role: u32,
        pub first_day: u32,
        pub last_day: u32,
        pub n_symbols: u32,
        pub n_each: u32,
        pub n_days: u32,
        pub n_blocks: u32,
        pub unused: u32,
    }
}
