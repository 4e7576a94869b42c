//! From points to the distinct tuples of every key.

use std::ops::Range;

use rayon::prelude::*;
use tidemill_gpu::{DevicePtr, GpuError};
use tidemill_search::Points;

use super::group::MOST_SHARERS;
use super::lane::{Lane, pinned, send_parcel, threads, upload};
use super::layout::{DistinctArgs, Key, ScalarArgs};
use super::pool::Parcel;
use super::{DeviceEngine, Stage};

/// What the distinct tuples of a batch are, for one key.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) known: usize,
    pub(super) all: usize,
    pub(super) item_of: DevicePtr<u32>,
    pub(super) row: DevicePtr<u32>,
}

impl Span {
    pub(super) fn n_new(&self) -> usize {
        self.all - self.known
    }
}

impl DeviceEngine {
    /// Uploads the points, computes their scalars and finds the distinct tuples of every key.
    pub(super) fn find_distinct(
        &mut self,
        lane: &mut Lane,
        points: &Points,
        range: Range<usize>,
        n_rows: usize,
    ) -> Result<Vec<Span>, GpuError> {
        let device = self.device.clone();
        let stream = self.prepare.clone();
        let n_trials = range.len();
        let staged = pinned(&device, &mut lane.points, self.n_params * n_trials)?;
        staged.as_mut_slice()?[..self.n_params * n_trials]
            .par_chunks_mut(n_trials)
            .enumerate()
            .for_each(|(param, out)| out.copy_from_slice(&points.column(param)[range.clone()]));
        let device_points = lane.device_points.room(&device, self.n_params * n_trials)?;
        lane.marks.clear();
        lane.marks.push((Stage::Upload, stream.record()?));
        upload(&stream, lane.points.as_ref(), &lane.device_points, self.n_params * n_trials)?;
        lane.marks.push((Stage::Distinct, stream.record()?));
        let scalars = lane.scalars.room(&device, self.plan.scalars.len() * n_rows)?;
        let args =
            ScalarArgs { points: device_points, scalars, n_trials: n_trials as u32, n_rows: n_rows as u32 };
        let kernel = self.kernel("scalars")?;
        stream.launch(&kernel, threads(n_rows), &args)?;

        let n_keys = self.keys.len();
        for at in 0..self.pools.len() {
            let n_more = n_rows * self.keys.iter().filter(|key| key.pool == Some(at)).count();
            if !self.pools[at].has_places(n_more) {
                self.settle()?;
            }
            self.pools[at].reserve_tuples(&device, &stream, n_more)?;
        }
        let n_own = self.keys.iter().filter(|key| key.pool.is_none()).count();
        let own_places = (2 * n_rows).next_power_of_two();
        let own_table = lane.own_tables.room(&device, n_own * own_places)?;
        if let Some(tables) = lane.own_tables.buffer() {
            stream.fill(tables, 0, n_own * own_places, 0xff)?;
        }
        let own_width: usize =
            self.keys.iter().filter(|key| key.pool.is_none()).map(|key| key.parts.scalars.len()).sum();
        let own_keys = lane.own_keys.room(&device, own_width * n_rows)?;
        let rows = lane.rows.room(&device, 3 * n_keys * n_rows)?;
        // Counts of the pools, then of the keys of their own, then the spans.
        let n_counts = self.pools.len() + n_own;
        let spans = lane.spans.room(&device, n_counts + 2 * n_keys)?;
        let host_spans = pinned(&device, &mut lane.host_spans, n_counts + 2 * n_keys)?;
        let counts = self.pools.iter().map(|pool| pool.n_items as u32).chain(std::iter::repeat(0));
        host_spans.as_mut_slice()?[..n_counts].iter_mut().zip(counts).for_each(|(to, count)| *to = count);
        upload(&stream, lane.host_spans.as_ref(), &lane.spans, n_counts)?;

        let mut keys: Vec<(usize, Key)> = Vec::with_capacity(n_keys);
        let (mut own, mut width) = (0, 0);
        for (at, key) in self.keys.iter().enumerate() {
            let n_scalars = key.parts.scalars.len();
            let (table, mask, tuples, count) = match key.pool {
                Some(pool) => {
                    let (table, mask) = self.pools[pool].table();
                    (table, mask, self.pools[pool].keys(), spans.add(pool))
                }
                None => {
                    let table = own_table.add(own * own_places);
                    let tuples = own_keys.add(width * n_rows);
                    let count = spans.add(self.pools.len() + own);
                    own += 1;
                    width += n_scalars;
                    (table, own_places as u32 - 1, tuples, count)
                }
            };
            let of_key = |which: usize| rows.add((3 * at + which) * n_rows);
            keys.push((
                key.wave,
                Key {
                    table,
                    keys: tuples,
                    item_of: of_key(0),
                    place_of: of_key(1),
                    row: of_key(2),
                    scalars: self.data.tuples.ptr().add(self.data.tuple_at[at]),
                    count,
                    span: spans.add(n_counts + 2 * at),
                    n_scalars: n_scalars as u32,
                    mask,
                },
            ));
        }
        keys.sort_by_key(|(wave, _)| *wave);
        let sorted: Vec<Key> = keys.iter().map(|(_, key)| *key).collect();
        let base = lane.parcel.room(&device, self.parcel_bytes())?;
        let mut parcel = Parcel::new(base);
        let on_device = parcel.put(&sorted);
        send_parcel(&device, &stream, &mut lane.parcels[0], &lane.parcel, &parcel)?;
        let [begin, insert, settle, end] =
            ["distinct_begin", "distinct_insert", "distinct_settle", "distinct_end"]
                .map(|name| self.kernel(name));
        let (begin, insert, settle, end) = (begin?, insert?, settle?, end?);
        for wave in 0..self.n_waves {
            let first = keys.partition_point(|(w, _)| *w < wave);
            let count = keys.partition_point(|(w, _)| *w <= wave) - first;
            if count == 0 {
                continue;
            }
            let args = DistinctArgs {
                keys: on_device.add(first),
                scalars,
                n_rows: n_rows as u32,
                n_keys: count as u32,
            };
            let mut each = threads(n_rows);
            each.grid[1] = count as u32;
            stream.launch(&begin, threads(count), &args)?;
            stream.launch(&insert, each, &args)?;
            stream.launch(&settle, each, &args)?;
            stream.launch(&end, threads(count), &args)?;
        }
        let host_spans = pinned(&device, &mut lane.host_spans, n_counts + 2 * n_keys)?;
        if let Some(spans) = lane.spans.buffer() {
            stream.download(spans, n_counts, host_spans, n_counts, 2 * n_keys)?;
        }
        lane.marks.push((Stage::Wait, stream.record()?));
        let found = host_spans.as_slice()?;
        let span = |at: usize| Span {
            known: found[n_counts + 2 * at] as usize,
            all: found[n_counts + 2 * at + 1] as usize,
            item_of: rows.add(3 * at * n_rows),
            row: rows.add((3 * at + 2) * n_rows),
        };
        Ok((0..n_keys).map(span).collect())
    }

    /// Memory for the small structs of a batch.
    pub(super) fn parcel_bytes(&self) -> usize {
        let n_factors: usize = self.conditions.iter().map(|condition| condition.factors.len()).sum();
        4096 + 128
            * (self.keys.len()
                + self.plan.slots.len()
                + (1 + MOST_SHARERS) * self.conditions.len()
                + n_factors)
    }

    /// Items of a pool after a batch.
    pub(super) fn n_items(&self, pool: usize, spans: &[Span]) -> usize {
        let of_pool = self.keys.iter().zip(spans).filter(|(key, _)| key.pool == Some(pool));
        of_pool.map(|(_, span)| span.all).max().unwrap_or(0)
    }
}
