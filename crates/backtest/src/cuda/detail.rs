//! What the kernels found, mask by mask and trade by trade: for comparing them with the CPU, where sums could hide two errors that cancel.

use bytemuck::Pod;
use tidemill_gpu::{DeviceBuffer, GpuError};
use tidemill_search::Points;

use super::DeviceEngine;
use super::layout::{self, WalkState};
use super::part::Part;
use super::plan::ConditionPlan;
use crate::exec::engine::Engine;
use crate::plan::ExitValue;
use crate::strategy::OrderKind;
use crate::trade::{Reason, Trade};

/// Trials whose details are computed together, so that all of them go through the kernels as one part.
const AT_ONCE: usize = 256;

/// A trade as a kernel found it; what booking makes of it is in the sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundTrade {
    /// +1 long, −1 short.
    pub side: i8,
    /// The bar of the fill.
    pub entry_idx: usize,
    /// The bar of the exit.
    pub exit_idx: usize,
    /// Fill price.
    pub entry: f64,
    /// Exit price.
    pub exit: f64,
    /// What one R was.
    pub risk: f64,
    /// Why it was closed.
    pub reason: Reason,
    /// The kind of order that closed it.
    pub order: OrderKind,
    /// Whether it was closed at the close of its exit bar.
    pub at_close: bool,
    /// Whether the exit depends on which extreme of the bar came first.
    pub ambiguous: bool,
    /// Entries since the trade before that were not taken.
    pub skipped: u32,
}

impl From<&Trade> for FoundTrade {
    fn from(trade: &Trade) -> Self {
        let Trade {
            side,
            entry_idx,
            exit_idx,
            entry,
            exit,
            risk,
            reason,
            order,
            at_close,
            ambiguous,
            skipped,
            ..
        } = *trade;
        Self { side, entry_idx, exit_idx, entry, exit, risk, reason, order, at_close, ambiguous, skipped }
    }
}

impl From<&layout::Trade> for FoundTrade {
    fn from(trade: &layout::Trade) -> Self {
        let has = |bit: u32| trade.how & bit != 0;
        Self {
            side: if has(layout::LONG_BIT) { 1 } else { -1 },
            entry_idx: trade.entry_bar as usize,
            exit_idx: trade.exit_bar as usize,
            entry: trade.entry,
            exit: trade.exit,
            risk: trade.risk,
            reason: match trade.how & layout::EXIT_NUMBER {
                layout::EXIT_END => Reason::End,
                layout::EXIT_RUIN => Reason::Ruin,
                exit => Reason::Exit(exit as usize, has(layout::GAP_BIT)),
            },
            order: match (has(layout::STOP_BIT), has(layout::LIMIT_BIT)) {
                (true, _) => OrderKind::Stop,
                (_, true) => OrderKind::Limit,
                _ => OrderKind::Market,
            },
            at_close: has(layout::CLOSE_BIT),
            ambiguous: has(layout::AMBIGUOUS_BIT),
            skipped: trade.skipped,
        }
    }
}

/// One trial as the kernels saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceDetail {
    /// For each symbol and side of the strategy, in their order: the bars on which it wants to enter.
    pub entries: Vec<Vec<Vec<usize>>>,
    /// The trades of each segment.
    pub trades: Vec<Vec<FoundTrade>>,
}

impl DeviceDetail {
    /// The first mask or trade in which a trial differs from the CPU's, in words.
    pub fn difference(&self, engine: &mut Engine<'_>, row: &[f64]) -> Option<String> {
        let sides: Vec<usize> = (0..2).filter(|side| engine.plan().sides[*side].is_some()).collect();
        for (symbol, of_sides) in self.entries.iter().enumerate() {
            for (side, device) in sides.iter().zip(of_sides) {
                let cpu = engine.entry_signals(row, symbol, *side);
                if cpu != *device {
                    let same = cpu.iter().zip(device).take_while(|(a, b)| a == b).count();
                    return Some(format!("signal {same} of side {side}, symbol {symbol}"));
                }
            }
        }
        for (at, detail) in engine.detail(row).iter().enumerate() {
            let (cpu, device) = (&detail.trades, &self.trades[at]);
            let differs = |(cpu, device): (&Trade, &FoundTrade)| FoundTrade::from(cpu) != *device;
            if let Some(trade) = cpu.iter().zip(device).position(differs) {
                let (cpu, device) = (FoundTrade::from(&cpu[trade]), device[trade]);
                return Some(format!("trade {trade} of segment {at}: {device:?}, not {cpu:?}"));
            }
            // Once nothing is left the device may have found trades that it never books.
            let is_whole =
                cpu.len() == device.len() || (detail.tally.equity <= 0.0 && cpu.len() < device.len());
            if !is_whole {
                return Some(format!("{} trades in segment {at}, not {}", device.len(), cpu.len()));
            }
        }
        None
    }
}

/// What the kernels found for the trials of a part.
#[derive(Default)]
pub(super) struct Recording {
    pub(super) details: Vec<DeviceDetail>,
    /// The walks that continue in this round; the trades of others wait to be booked, or are booked already.
    running: Vec<bool>,
}

impl DeviceEngine {
    /// The entry masks and trades of trials as the kernels found them, in the order of the points. Much slower than
    /// [`evaluate`](Self::evaluate).
    pub fn detail(&mut self, points: &Points) -> Result<Vec<DeviceDetail>, GpuError> {
        let mut out = Vec::new();
        let at_once = AT_ONCE.min(self.plan.options.most_trials.max(1));
        for first in (0..points.len()).step_by(at_once) {
            let mut some = Points::new(points.n_params());
            some.extend_from(points, first..(first + at_once).min(points.len()));
            self.details = Some(Vec::new());
            let result = self.evaluate(&some);
            let details = self.details.take().unwrap_or_default();
            result?;
            out.extend(details);
        }
        Ok(out)
    }
}

impl<S> Part<S> {
    /// Notes which walks a round will take up, where the part is recorded.
    pub(super) fn note_running(&mut self) -> Result<(), GpuError> {
        if self.recording.is_some() {
            let states: Vec<WalkState> = self.fetch(self.memory.walks.buffer(), self.n_walks())?;
            let running: Vec<bool> = states.iter().map(|state| state.status == layout::RUNNING).collect();
            self.recording.iter_mut().for_each(|recording| recording.running.clone_from(&running));
        }
        Ok(())
    }

    /// Keeps what a round of walking found, before it is booked.
    pub(super) fn record_round(&mut self, capacity: usize) -> Result<(), GpuError> {
        let Some(mut recording) = self.recording.take() else { return Ok(()) };
        if recording.details.is_empty() {
            let trades = vec![Vec::new(); self.plan.segments.len()];
            let detail = |entries| DeviceDetail { entries, trades: trades.clone() };
            recording.details = self.entries()?.into_iter().map(detail).collect();
        }
        let n_walks = self.n_walks();
        let states: Vec<WalkState> = self.fetch(self.memory.walks.buffer(), n_walks)?;
        let trades: Vec<layout::Trade> = self.fetch(self.memory.trades.buffer(), n_walks * capacity)?;
        for (walk, state) in states.iter().enumerate().filter(|(walk, _)| recording.running[*walk]) {
            let (segment, trial) = (walk / self.n_trials, walk % self.n_trials);
            let found = &trades[walk * capacity..][..state.n_trades as usize];
            recording.details[trial].trades[segment].extend(found.iter().map(FoundTrade::from));
        }
        self.recording = Some(recording);
        Ok(())
    }

    /// By trial, symbol and side: the bars of its entry mask.
    fn entries(&self) -> Result<Vec<Vec<Vec<Vec<usize>>>>, GpuError> {
        let (data, n_rows, n_trials) = (self.plan.data.walked(), self.n_rows, self.n_trials);
        let timeframe: Vec<u32> = self.fetch(Some(&data.timeframe), data.n_symbols)?;
        let word_start: Vec<u32> = self.fetch(Some(&data.word_start), data.n_symbols + 1)?;
        let mut out = vec![vec![Vec::new(); data.n_symbols]; n_trials];
        let mut at = 0;
        for side in self.plan.plan.sides.iter().flatten() {
            let ConditionPlan { whole, .. } = &self.plan.keys.conditions[at];
            let rows: Vec<u32> = self.fetch(self.memory.rows.buffer(), (3 * whole + 1) * n_rows)?;
            let item_of = &rows[3 * whole * n_rows..];
            let n_items = item_of.iter().max().map_or(0, |item| *item as usize + 1);
            let masks: Vec<u64> = self.fetch(self.memory.masks[at].buffer(), n_items * data.n_words)?;
            for (trial, symbols) in out.iter_mut().enumerate() {
                for (symbol, sides) in symbols.iter_mut().enumerate() {
                    let row = timeframe[symbol] as usize * n_trials + trial;
                    let words = &masks[item_of[row] as usize * data.n_words..];
                    let words = &words[word_start[symbol] as usize..word_start[symbol + 1] as usize];
                    sides.push(
                        (0..64 * words.len()).filter(|bar| words[bar / 64] >> (bar % 64) & 1 == 1).collect(),
                    );
                }
            }
            let signals = side.exits.iter().filter(|exit| matches!(exit.value, ExitValue::Signal(_)));
            at += 1 + signals.count();
        }
        Ok(out)
    }

    /// Waits for the stream and copies the beginning of a buffer.
    fn fetch<T: Pod>(&self, buffer: Option<&DeviceBuffer<T>>, len: usize) -> Result<Vec<T>, GpuError> {
        let Some(buffer) = buffer.filter(|_| len > 0) else { return Ok(Vec::new()) };
        let mut host = self.plan.device().pinned(len)?;
        self.stream.download(buffer, 0, &mut host, 0, len)?;
        self.stream.record()?.wait()?;
        Ok(host.as_slice()?[..len].to_vec())
    }
}
