//! One trial in full: its trades with their reasons, its daily returns, its signals.

use super::Engine;
use super::prepare::Prepared;
use crate::exec::distinct::Tuples;
use crate::exec::frame::Scratch;
use crate::exec::walk::{Observer, Walker};
use crate::plan::{LabelPiece, Slot};
use crate::tally::Tally;
use crate::trade::{Reason, Trade};

/// One trial over one segment, in full.
#[derive(Clone, Debug)]
pub struct Detail {
    /// The sums.
    pub tally: Tally,
    /// The trades, in order.
    pub trades: Vec<Trade>,
    /// The reason of each, as shown.
    pub labels: Vec<String>,
    /// Days of the symbol with their returns; days without return are left out.
    pub daily: Vec<(u32, f64)>,
}

#[derive(Default)]
struct Record {
    trades: Vec<Trade>,
    daily: Vec<(u32, f64)>,
}

impl Observer for Record {
    fn trade(&mut self, trade: &Trade) {
        self.trades.push(*trade);
    }

    fn daily(&mut self, day: u32, change: f64) {
        self.daily.push((day, change));
    }
}

impl Engine<'_> {
    /// The trades of one trial, segment by segment, with the equity at the end of each day that changed it.
    pub fn detail(&mut self, row: &[f64]) -> Vec<Detail> {
        let params = self.decode(row);
        let mut out: Vec<Option<Detail>> = self.measure.segments.iter().map(|_| None).collect();
        for symbol in 0..self.symbols.len() {
            let wanted: Vec<usize> = (0..self.measure.segments.len())
                .filter(|at| self.measure.segments[*at].symbol == symbol)
                .collect();
            if wanted.is_empty() {
                continue;
            }
            let scalars = vec![self.scalars(&params, self.symbols[symbol].bars.timeframe_ms)];
            let prepared = self.prepare_one(symbol, &scalars);
            let this = &*self;
            let mut scratch = Scratch::default();
            this.with_columns(symbol, 0, &scalars[0], &prepared, |frame| {
                let sides = this.bind(0, &prepared, frame);
                let data = &this.symbols[symbol];
                let mut walker = Walker::new(data, *frame, &this.strategy.execution, sides);
                for at in wanted {
                    let mut record = Record::default();
                    let tally =
                        walker.walk(this.measure.segments[at].range.clone(), &mut scratch, &mut record);
                    let labels = record.trades.iter().map(|trade| this.label(trade, &scalars[0])).collect();
                    out[at] = Some(Detail { tally, trades: record.trades, labels, daily: record.daily });
                }
            });
        }
        out.into_iter().flatten().collect()
    }

    /// The bars of a symbol on which the entry condition of a side (0 long, 1 short) is true.
    pub fn entry_signals(&mut self, row: &[f64], symbol: usize, side: usize) -> Vec<usize> {
        let params = self.decode(row);
        let scalars = vec![self.scalars(&params, self.symbols[symbol].bars.timeframe_ms)];
        let prepared = self.prepare_one(symbol, &scalars);
        self.with_columns(symbol, 0, &scalars[0], &prepared, |frame| {
            let sides = self.bind(0, &prepared, frame);
            let Some(mut run) = sides.into_iter().find(|run| run.long == (side == 0)) else {
                return Vec::new();
            };
            let (mut out, mut scratch) = (Vec::new(), Scratch::default());
            let mut next = |from: usize| run.enter.next(from, usize::MAX, frame, &mut scratch);
            let mut bar = next(0);
            while bar < frame.n_bars {
                out.push(bar);
                bar = next(bar + 1);
            }
            out
        })
    }

    /// What one trial needs of a symbol.
    pub(super) fn prepare_one(&mut self, symbol: usize, scalars: &[Vec<f64>]) -> Prepared {
        let mut tuples = Tuples::new(scalars);
        let sharing = self.sharing(&mut tuples).without_tiles();
        let demand = self.demand(&mut tuples, &sharing);
        self.prepare(symbol, &mut tuples, demand)
    }

    /// Windows of a trial that no symbol can fill, or that are below 1, so that what they belong to is never available.
    pub fn impossible_windows(&self, row: &[f64]) -> Vec<f64> {
        let params = self.decode(row);
        let mut out = Vec::new();
        let Some(symbol) = self.symbols.first() else { return out };
        let scalars = self.scalars(&params, symbol.bars.timeframe_ms);
        for (slot, grid) in self.plan.slots.iter().zip(&self.plan.grid_of) {
            let series = self.grids.all_series(self.plan.grids[*grid], &self.symbols);
            let longest = series.iter().map(|series| series.bars.len()).max().unwrap_or(0) as f64;
            if let Slot::Call { func, arguments, .. } = slot
                && let Some(scalar) = arguments.first()
            {
                let window = scalars[*scalar];
                let too_long = func.waits && window > longest;
                if window.is_nan() || window < 1.0 || too_long {
                    out.push(window);
                }
            }
        }
        out.sort_by(f64::total_cmp);
        out.dedup();
        out
    }

    pub(super) fn label(&self, trade: &Trade, scalars: &[f64]) -> String {
        let (exit, gap) = match trade.reason {
            Reason::Exit(exit, gap) => (exit, gap),
            Reason::End => return "END".into(),
            Reason::Ruin => return "RUIN".into(),
        };
        let Some(side) = &self.plan.sides[usize::from(trade.side < 0)] else { return String::new() };
        let pieces = if gap { &side.exits[exit].gap_label } else { &side.exits[exit].label };
        pieces
            .iter()
            .map(|piece| match piece {
                LabelPiece::Text(text) => text.clone(),
                LabelPiece::Value(scalar, decimals) => format!("{:.*}", decimals, scalars[*scalar]),
            })
            .collect()
    }
}
