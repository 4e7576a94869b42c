//! From points to the distinct tuples of every key.

use std::ops::Range;

use rayon::prelude::*;
use tidemill_gpu::{DevicePtr, GpuError, Stream};

use super::{Answer, Distinct, LookingUp, Part, Span, Staged, UnderWay};
use crate::cuda::Stage;
use crate::cuda::column_store::ColumnStore;
use crate::cuda::layout::{DistinctArgs, Key, ScalarArgs};
use crate::cuda::memory::{Memory, PackedStructs};

/// Where the tuples of a part are looked up.
pub(super) struct Tables {
    /// For each key: items, places and rows.
    rows: DevicePtr<u32>,
    /// Numbers of items, then two numbers of each key.
    spans: DevicePtr<u32>,
    n_counts: usize,
    own_tables: DevicePtr<u32>,
    /// Keys without a pool.
    n_own: usize,
    own_places: usize,
    own_keys: DevicePtr<f64>,
}

/// A key whose tuples are looked up. Those of a chain share a table, so that one waits for the other.
struct Lookup {
    chain: usize,
    /// Place in the chain.
    wave: usize,
    key: Key,
}

/// Up to so many parameters are copied before another thread is awake.
const MAX_ALONE: usize = 1 << 18;

/// Parameters that a thread copies at a time.
const PIECE: usize = 1 << 14;

impl Part<Staged> {
    /// Uploads the points, computes their scalars and looks their tuples up.
    pub(in crate::cuda) fn look_up(
        mut self,
        columns: &mut ColumnStore,
        under_way: &mut UnderWay,
    ) -> Result<Part<LookingUp>, GpuError> {
        let staged = self.state.clone();
        let answer = self.send_lookup(&staged, columns, under_way)?;
        Ok(self.advance(|staged| LookingUp { staged, answer }))
    }
}

impl Part<LookingUp> {
    /// The part of a batch that it is.
    pub(in crate::cuda) fn range(&self) -> Range<usize> {
        self.state.staged.range.clone()
    }

    /// Whether the answer is there.
    pub(in crate::cuda) fn is_found(&self) -> Result<bool, GpuError> {
        self.state.answer.found.is_done()
    }

    /// Waits for the answer.
    pub(in crate::cuda) fn wait(&self) -> Result<(), GpuError> {
        self.state.answer.found.wait()
    }

    /// Finds the distinct tuples of every key, and decides which columns are written. Waits for the answer.
    pub(in crate::cuda) fn find_distinct(
        mut self,
        columns: &mut ColumnStore,
        under_way: &mut UnderWay,
    ) -> Result<Part<Distinct>, GpuError> {
        let staged = self.state.staged.clone();
        let mut spans = self.spans()?;
        let mut written = columns.choose_written(&spans, self.n_rows);
        // Columns of earlier batches make room: forgotten first, because their memory is mostly wanted for the same pools; then given back.
        for gives_back in [false, true] {
            if written.is_some() {
                break;
            }
            under_way.settle()?;
            if gives_back {
                columns.release();
            } else {
                columns.clear()?;
            }
            self.state.answer = self.send_lookup(&staged, columns, under_way)?;
            spans = self.spans()?;
            written = columns.choose_written(&spans, self.n_rows);
        }
        let Some(written) = written else {
            let (bytes, free) = (columns.bytes(&spans) as u64, self.plan.budget as u64);
            return Err(GpuError::OutOfMemory { bytes, free });
        };
        Ok(self.advance(|_| Distinct { spans, written }))
    }

    /// What was found for each key.
    fn spans(&self) -> Result<Vec<Span>, GpuError> {
        let Answer { rows, n_counts, .. } = self.state.answer;
        let found = &self.memory.spans.host()?[n_counts..];
        let span = |at: usize| Span {
            known: found[2 * at] as usize,
            all: found[2 * at + 1] as usize,
            item_of: rows.add(3 * at * self.n_rows),
            row: rows.add((3 * at + 2) * self.n_rows),
        };
        Ok((0..self.plan.keys.keys.len()).map(span).collect())
    }
}

impl<S> Part<S> {
    fn send_lookup(
        &mut self,
        staged: &Staged,
        columns: &mut ColumnStore,
        under_way: &mut UnderWay,
    ) -> Result<Answer, GpuError> {
        let stream = columns.stream().clone();
        self.compute_scalars(staged, &stream)?;
        columns.reserve_tuples(self.n_rows, under_way)?;
        let tables = self.reserve_tables()?;
        self.begin_tables(&tables, &stream, columns)?;
        let keys = self.keys(columns, &tables);
        let n_keys = keys.len();
        self.launch(&stream, keys)?;
        self.memory.spans.download(&stream, tables.n_counts..tables.n_counts + 2 * n_keys)?;
        let found = self.marks.add(Stage::Wait, &stream)?;
        Ok(Answer { rows: tables.rows, n_counts: tables.n_counts, found })
    }

    fn compute_scalars(
        &mut self,
        Staged { points, range }: &Staged,
        stream: &Stream,
    ) -> Result<(), GpuError> {
        let (device_points, scalars) = self.reserve_scalars()?;
        let Self { plan, memory, n_trials, n_rows, .. } = self;
        let (n_trials, n_rows) = (*n_trials, *n_rows);
        let n_values = plan.n_params * n_trials;
        let column = |param: usize| &points.column(param)[range.clone()];
        let to = &mut memory.points.host_mut()?[..n_values];
        if n_values <= MAX_ALONE {
            let columns = to.chunks_mut(n_trials).enumerate();
            columns.for_each(|(param, out)| out.copy_from_slice(column(param)));
        } else {
            // In pieces, because there are about as many parameters as threads.
            to.par_chunks_mut(n_trials).enumerate().for_each(|(param, out)| {
                let pieces = out.par_chunks_mut(PIECE).zip(column(param).par_chunks(PIECE));
                pieces.for_each(|(to, from)| to.copy_from_slice(from));
            });
        }
        self.marks.clear();
        self.marks.add(Stage::Upload, stream)?;
        memory.points.upload(stream, n_values)?;
        self.marks.add(Stage::Distinct, stream)?;
        let args =
            ScalarArgs { points: device_points, scalars, n_trials: n_trials as u32, n_rows: n_rows as u32 };
        plan.kernels.scalars(stream, &args)
    }

    /// Room for the points and their scalars.
    pub(super) fn reserve_scalars(&mut self) -> Result<(DevicePtr<f64>, DevicePtr<f64>), GpuError> {
        let Self { plan, memory, n_trials, n_rows, .. } = self;
        let points = memory.points.room(plan.device(), plan.n_params * *n_trials)?;
        let scalars = memory.scalars.room(plan.device(), plan.plan.scalars.len() * *n_rows)?;
        Ok((points, scalars))
    }

    /// Room for what the keys find.
    pub(super) fn reserve_tables(&mut self) -> Result<Tables, GpuError> {
        let Self { plan, memory, n_rows, .. } = self;
        let (device, keys, n_rows) = (plan.device(), &plan.keys.keys, *n_rows);
        let own = || keys.iter().filter(|key| key.pool.is_none());
        let (n_own, own_width) = (own().count(), own().map(|key| key.scalars.len()).sum::<usize>());
        let own_places = (2 * n_rows).next_power_of_two();
        // Counts of the pools, then of the keys of their own, then the spans.
        let n_counts = plan.keys.pools.len() + n_own;
        Ok(Tables {
            rows: memory.rows.room(device, 3 * keys.len() * n_rows)?,
            spans: memory.spans.room(device, n_counts + 2 * keys.len())?,
            n_counts,
            own_tables: memory.own_tables.room(device, n_own * own_places)?,
            n_own,
            own_places,
            own_keys: memory.own_keys.room(device, own_width * n_rows)?,
        })
    }

    /// Has the tables of keys without a pool begin empty, and counts with what the pools have.
    fn begin_tables(
        &mut self,
        tables: &Tables,
        stream: &Stream,
        columns: &ColumnStore,
    ) -> Result<(), GpuError> {
        let Memory { own_tables, spans, .. } = &mut self.memory;
        own_tables.fill(stream, 0..tables.n_own * tables.own_places, 0xff)?;
        let counts = columns.n_items().map(|n_items| n_items as u32).chain(std::iter::repeat(0));
        let to = &mut spans.host_mut()?[..tables.n_counts];
        to.iter_mut().zip(counts).for_each(|(to, count)| *to = count);
        spans.upload(stream, tables.n_counts)
    }

    /// What kernels read of each key.
    fn keys(&self, columns: &ColumnStore, tables: &Tables) -> Vec<Lookup> {
        let n_rows = self.n_rows;
        let (mut n_own, mut own_width) = (0, 0);
        let mut keys = Vec::with_capacity(self.plan.keys.keys.len());
        for (at, key) in self.plan.keys.keys.iter().enumerate() {
            let of_key = |which: usize| tables.rows.add((3 * at + which) * n_rows);
            let of_pool = key.pool.map(|pool| (columns.pool(pool), tables.spans.add(pool)));
            let (table, mask, tuples, count) = match of_pool {
                Some((pool, count)) => (pool.table(), pool.table_mask(), pool.keys(), count),
                None => {
                    let table = tables.own_tables.add(n_own * tables.own_places);
                    let tuples = tables.own_keys.add(own_width * n_rows);
                    let count = tables.spans.add(columns.n_pools() + n_own);
                    n_own += 1;
                    own_width += key.scalars.len();
                    (table, tables.own_places as u32 - 1, tuples, count)
                }
            };
            let key_args = Key {
                table,
                keys: tuples,
                item_of: of_key(0),
                place_of: of_key(1),
                row: of_key(2),
                scalars: self.plan.tuples.ptr().add(key.tuple_at),
                count,
                span: tables.spans.add(tables.n_counts + 2 * at),
                n_scalars: key.scalars.len() as u32,
                mask,
            };
            let chain = key.pool.unwrap_or(columns.n_pools() + n_own);
            keys.push(Lookup { chain, wave: key.wave, key: key_args });
        }
        keys
    }

    /// Looks the tuples of all keys up: those of one pool one after the other, because they share its table.
    fn launch(&mut self, stream: &Stream, mut keys: Vec<Lookup>) -> Result<(), GpuError> {
        let Self { plan, memory, n_rows, .. } = self;
        let mut structs = PackedStructs::new(memory.structs.room(plan.device(), plan.struct_bytes())?);
        let mut args = DistinctArgs {
            keys: DevicePtr::NULL,
            chains: DevicePtr::NULL,
            scalars: memory.scalars.ptr(),
            n_rows: *n_rows as u32,
            n_keys: keys.len() as u32,
        };
        let is_chained = *n_rows <= plan.options.most_chained;
        keys.sort_by_key(|of| if is_chained { (of.chain, of.wave) } else { (of.wave, 0) });
        args.keys = structs.put(&keys.iter().map(|of| of.key).collect::<Vec<_>>());
        if is_chained {
            let begins = (0..keys.len()).filter(|at| keys[*at].wave == 0);
            let chains: Vec<u32> = begins.chain([keys.len()]).map(|at| at as u32).collect();
            args.chains = structs.put(&chains);
            memory.structs.send(stream, &structs)?;
            return plan.kernels.distinct_chains(stream, chains.len() - 1, &args);
        }
        memory.structs.send(stream, &structs)?;
        for wave in keys.chunk_by(|a, b| a.wave == b.wave) {
            args.n_keys = wave.len() as u32;
            plan.kernels.distinct_begin(stream, &args)?;
            plan.kernels.distinct_insert(stream, &args)?;
            plan.kernels.distinct_settle(stream, &args)?;
            plan.kernels.distinct_end(stream, &args)?;
            args.keys = args.keys.add(wave.len());
        }
        Ok(())
    }
}
