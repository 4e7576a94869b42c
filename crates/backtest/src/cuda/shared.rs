//! What trials share: columns, and the masks of factors.

use tidemill_gpu::{DevicePtr, GpuError, Launch};
use tidemill_market::indicator::device::{ColumnArgs, Input};

use super::lane::{Lane, threads, warps};
use super::layout::{EVALUATE, EXACT, FormulaArgs, LEVEL, LEVELS, LevelArgs, MaskArgs, SpreadArgs, World};
use super::pool::Grow;
use super::tuples::Span;
use super::{DeviceEngine, Place, code};
use crate::plan::Slot;

/// Memory for what columns need only while they are computed.
const SCRATCH_BYTES: usize = 256 << 20;
/// Something is shared where at least this many use it on average.
const SHARERS: usize = 4;

impl DeviceEngine {
    /// Which pools are written out as columns; none if what must be written does not fit the memory.
    ///
    /// What a function reads as a whole must be. Of the others, extremes are where there is room, because one value costs a whole window;
    /// what comes from prefix sums only where enough rows share it.
    pub(super) fn choose_written(&self, spans: &[Span], n_rows: usize) -> Option<Vec<bool>> {
        let most = self.budget / 3 * 2;
        let mut written = vec![false; self.pools.len()];
        let mut bytes = 0;
        let choice = |slot: usize| match &self.plan.slots[slot] {
            _ if !code::is_flexible(&self.plan, slot) => 0,
            Slot::Call { func, .. } if func.at.is_some() => 1,
            _ => 2,
        };
        for round in 0..3 {
            for (slot, place) in self.places.iter().enumerate() {
                let Place::Pool { pool, .. } = *place else { continue };
                if written[pool] || choice(slot) != round {
                    continue;
                }
                let n_items = self.n_items(pool, spans);
                let more = self.pools[pool].bytes(n_items);
                if round == 0 || bytes + more <= most && (round == 1 || n_items * SHARERS <= n_rows) {
                    written[pool] = true;
                    bytes += more;
                }
            }
        }
        (bytes <= most).then_some(written)
    }

    /// Computes the new items of one slot.
    pub(super) fn compute_slot(
        &mut self,
        slot: usize,
        lane: &mut Lane,
        spans: &[Span],
        n_rows: usize,
        inputs: &[Input],
        world: DevicePtr<World>,
    ) -> Result<(), GpuError> {
        let Place::Pool { pool, key } = self.places[slot] else { return Ok(()) };
        let span = spans[key];
        if span.n_new() == 0 || inputs[slot].pool.is_null() {
            return Ok(());
        }
        let stream = lane.stream.clone();
        let (first, count) = (span.known as u32, span.n_new());
        let (n_tiles, tiles) = (self.data.n_tiles, self.data.tiles.ptr());
        let out = self.pools[pool].ptr();
        match self.plan.slots[slot].clone() {
            Slot::Source(_) => Ok(()),
            Slot::Formula { .. } => {
                let args = FormulaArgs {
                    world,
                    tiles,
                    row: span.row,
                    out,
                    first,
                    count: count as u32,
                    n_tiles: n_tiles as u32,
                    unused: 0,
                };
                let kernel = self.kernel(&format!("formula_{slot}"))?;
                stream.launch(&kernel, warps(count * n_tiles), &args)
            }
            Slot::Mask { .. } => {
                let args = MaskArgs {
                    world,
                    tiles,
                    factors: DevicePtr::NULL,
                    row: span.row,
                    order: DevicePtr::NULL,
                    out: out.cast(),
                    first,
                    count: count as u32,
                    n_tiles: n_tiles as u32,
                    n_factors: 0,
                };
                let kernel = self.kernel(&format!("mask_{slot}"))?;
                stream.launch(&kernel, warps(count * n_tiles), &args)
            }
            Slot::Call { func, inputs: of, arguments, .. } => {
                let (n_bars, n_symbols) = (self.data.n_bars, self.data.n_symbols);
                let scratch_stride = (func.scratch_columns * (n_bars + n_symbols)).next_multiple_of(2);
                let at_once = SCRATCH_BYTES.checked_div(scratch_stride * 8).unwrap_or(count).clamp(1, count);
                let scratch = lane.scratch.room(&self.device, at_once * scratch_stride)?;
                let nothing = Input { pool: DevicePtr::NULL, stride: 0, item_of: DevicePtr::NULL };
                let mut input = [nothing; 3];
                input.iter_mut().zip(&of).for_each(|(to, slot)| *to = inputs[*slot]);
                let mut argument = [DevicePtr::NULL; 3];
                for (to, scalar) in argument.iter_mut().zip(&arguments) {
                    *to = lane.scalars.ptr().add(scalar * n_rows);
                }
                for begin in (0..count).step_by(at_once) {
                    let some = at_once.min(count - begin);
                    let args = ColumnArgs {
                        inputs: input,
                        arguments: argument,
                        trial: span.row.add(begin),
                        out,
                        out_stride: self.pools[pool].stride as u64,
                        start: self.data.start.ptr(),
                        word_start: self.data.word_start.ptr(),
                        scratch,
                        scratch_stride: scratch_stride as u64,
                        first: first + begin as u32,
                        count: some as u32,
                        n_symbols: n_symbols as u32,
                        n_bars: n_bars as u32,
                    };
                    for (kernel, shape) in func.passes {
                        let kernel = self.kernel(kernel)?;
                        let launch = shape.launch(
                            some as u32,
                            n_symbols as u32,
                            n_bars as u32,
                            self.data.longest as u32,
                        );
                        stream.launch(&kernel, launch, &args)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// How the truth of each factor of each condition is found.
    pub(super) fn factor_modes(
        &mut self,
        lane: &mut Lane,
        spans: &[Span],
    ) -> Result<Vec<Vec<u32>>, GpuError> {
        let mask_bytes = self.data.n_words * 8;
        let most = self.budget / 16 / self.lanes.len();
        let mut out = Vec::new();
        let mut number = 0;
        for condition in &self.conditions {
            let n_wholes = spans[condition.whole].all;
            let mut modes = Vec::new();
            for factor in &condition.factors {
                let n_items = spans[factor.key].all;
                let mut mode = EVALUATE;
                let mut n_masks = 0;
                if condition.factors.len() > 1
                    && n_items * SHARERS <= n_wholes
                    && n_items * mask_bytes <= most
                {
                    (mode, n_masks) = (EXACT, n_items);
                } else if let Some((series, ..)) = factor.threshold {
                    let n = spans[series].all * LEVELS;
                    if 2 * n <= n_wholes && n * mask_bytes <= most {
                        (mode, n_masks) = (LEVEL, n);
                    }
                }
                if lane.factor_masks.len() == number {
                    lane.factor_masks.push(Grow::default());
                }
                lane.factor_masks[number].room(&self.device, n_masks * self.data.n_words)?;
                number += 1;
                modes.push(mode);
            }
            out.push(modes);
        }
        Ok(out)
    }

    /// Computes the mask of one factor: exact, or at levels.
    pub(super) fn compute_factor(
        &mut self,
        lane: &Lane,
        spans: &[Span],
        n_rows: usize,
        (c, f, number, mode): (usize, usize, usize, u32),
        world: DevicePtr<World>,
        levels: DevicePtr<f64>,
    ) -> Result<(), GpuError> {
        let out = lane.factor_masks[number].ptr();
        let n_tiles = self.data.n_tiles;
        let factor = &self.conditions[c].factors[f];
        match (mode, factor.threshold) {
            (EXACT, _) => {
                let span = spans[factor.key];
                let args = MaskArgs {
                    world,
                    tiles: self.data.tiles.ptr(),
                    factors: DevicePtr::NULL,
                    row: span.row,
                    order: DevicePtr::NULL,
                    out,
                    first: 0,
                    count: span.all as u32,
                    n_tiles: n_tiles as u32,
                    n_factors: 0,
                };
                let kernel = self.kernel(&format!("factor_{c}_{f}"))?;
                lane.stream.launch(&kernel, warps(span.all * n_tiles), &args)
            }
            (LEVEL, Some((series, scalar, above))) => {
                let levels = levels.add(number * LEVELS);
                let spread = SpreadArgs {
                    threshold: lane.scalars.ptr().add(scalar * n_rows),
                    levels,
                    level_of: lane.level_of.ptr().add(number * n_rows),
                    n_rows: n_rows as u32,
                    above: u32::from(above),
                };
                let (spread_levels, pick_level) = (self.kernel("spread_levels")?, self.kernel("pick_level")?);
                lane.stream.launch(&spread_levels, Launch::blocks(1, 1024), &spread)?;
                lane.stream.launch(&pick_level, threads(n_rows), &spread)?;
                let span = spans[series];
                let args = LevelArgs {
                    world,
                    tiles: self.data.tiles.ptr(),
                    row: span.row,
                    levels,
                    out,
                    first: 0,
                    count: span.all as u32,
                    n_tiles: n_tiles as u32,
                    unused: 0,
                };
                let kernel = self.kernel(&format!("levels_{c}_{f}"))?;
                lane.stream.launch(&kernel, warps(span.all * n_tiles), &args)
            }
            _ => Ok(()),
        }
    }
}
