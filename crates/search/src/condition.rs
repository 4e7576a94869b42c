//! When a parameter counts.
//!
//! Conditions are judged for each parameter of each point that is proposed. Most look at a few switches and options, so that all their
//! answers fit into a short table, and a batch is judged column by column: a look-up in place of an expression, and once for all parameters
//! that share a condition.

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;

use crate::domain::Domain;
use crate::point::Points;
use crate::space::Param;

/// The most answers that are tabulated.
const MAX_ANSWERS: usize = 1024;

/// The most values of a parameter that a table looks at: its code is a byte.
const MAX_CODES: u64 = 256;

/// Points that are judged at a time, and by one thread.
const CHUNK: usize = 256;

/// Values that a thread visits at least: fewer are done before another thread is awake.
const MIN_VALUES: usize = 1 << 15;

type Holds = dyn Fn(&[f64]) -> bool + Send + Sync;

/// Decides from the encoded values of one point whether a parameter is active.
///
/// It is given one value per parameter of the space; those of inactive parameters, and of parameters listed later, are defaults.
#[derive(Clone)]
pub struct Condition {
    holds: Arc<Holds>,
    table: Option<Arc<Table>>,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condition").field("is_tabulated", &self.table.is_some()).finish_non_exhaustive()
    }
}

impl Condition {
    /// Any function of the encoded values.
    pub fn new(holds: impl Fn(&[f64]) -> bool + Send + Sync + 'static) -> Self {
        Self { holds: Arc::new(holds), table: None }
    }

    /// A function of some of the parameters alone, which are given by their places. It is tabulated where those are switches and choices.
    /// Clones share the table, and are judged together.
    pub fn of_params(
        params: &[Param],
        reads: &[usize],
        holds: impl Fn(&[f64]) -> bool + Send + Sync + 'static,
    ) -> Self {
        let table = Table::new(params, reads, &holds).map(Arc::new);
        Self { holds: Arc::new(holds), table }
    }

    /// Whether it holds for the values of one point.
    pub fn holds(&self, row: &[f64]) -> bool {
        let answer = self.table.as_ref().and_then(|table| table.answer(row));
        answer.unwrap_or_else(|| (self.holds)(row))
    }
}

/// The answers to all combinations of the values that a condition looks at.
struct Table {
    reads: Vec<Read>,
    answers: Vec<bool>,
}

/// A switch or a choice that a condition looks at.
struct Read {
    param_idx: usize,
    n_codes: usize,
    /// How far the answers to one value and to the next are apart.
    stride: usize,
}

impl Table {
    /// `None` where there are too many answers, or parameters that are neither switch nor choice.
    fn new(params: &[Param], reads: &[usize], holds: &dyn Fn(&[f64]) -> bool) -> Option<Self> {
        let mut n_answers = 1;
        let mut table = Vec::with_capacity(reads.len());
        for &param_idx in reads {
            let n_codes = n_codes(params.get(param_idx)?)?;
            table.push(Read { param_idx, n_codes, stride: n_answers });
            n_answers *= n_codes;
            if n_answers > MAX_ANSWERS {
                return None;
            }
        }
        let mut row: Vec<f64> = params.iter().map(|param| param.default).collect();
        let answer = |answer_idx: usize| {
            for read in &table {
                row[read.param_idx] = (answer_idx / read.stride % read.n_codes) as f64;
            }
            holds(&row)
        };
        let answers = (0..n_answers).map(answer).collect();
        Some(Self { reads: table, answers })
    }

    /// The answer for one point; `None` where a value is not of its domain.
    fn answer(&self, row: &[f64]) -> Option<bool> {
        let mut answer_idx = 0;
        for read in &self.reads {
            answer_idx += read.stride * code(*row.get(read.param_idx)?, read.n_codes)?;
        }
        Some(self.answers[answer_idx])
    }
}

/// The number of values of a switch or a choice.
fn n_codes(param: &Param) -> Option<usize> {
    match &param.domain {
        Domain::Bool | Domain::Choice { .. } => {
            param.domain.n_values().filter(|n| (1..=MAX_CODES).contains(n)).map(|n| n as usize)
        }
        Domain::Float { .. } | Domain::Int { .. } => None,
    }
}

/// The value of a switch or a choice as an index.
fn code(value: f64, n_codes: usize) -> Option<usize> {
    let code = value as usize;
    (code as f64 == value && code < n_codes).then_some(code)
}

/// The conditions of a space where all of them are tabulated, in the order in which they are judged.
pub(crate) struct Judge<'a> {
    params: &'a [Param],
    /// Each table once.
    tables: Vec<&'a Table>,
    /// The table of each parameter, if it has a condition.
    table_idxs: Vec<Option<usize>>,
    /// The place of each parameter that a table looks at, among those.
    read_idxs: Vec<Option<usize>>,
    n_reads: usize,
}

impl<'a> Judge<'a> {
    /// `None` where a condition is not tabulated, or looks ahead.
    pub(crate) fn new(params: &'a [Param]) -> Option<Self> {
        let none = vec![None; params.len()];
        let (table_idxs, read_idxs) = (none.clone(), none);
        let mut judge = Self { params, tables: Vec::new(), table_idxs, read_idxs, n_reads: 0 };
        for (param_idx, param) in params.iter().enumerate() {
            let Some(condition) = &param.when else { continue };
            let table: &Table = condition.table.as_deref()?;
            if table.reads.iter().any(|read| read.param_idx >= param_idx) {
                return None;
            }
            // Parameters that share a condition mostly follow each other.
            let known = judge.tables.iter().rposition(|known| std::ptr::eq(*known, table));
            judge.table_idxs[param_idx] = Some(known.unwrap_or(judge.tables.len()));
            if known.is_none() {
                judge.tables.push(table);
                for read in &table.reads {
                    if judge.read_idxs[read.param_idx].is_none() {
                        judge.read_idxs[read.param_idx] = Some(judge.n_reads);
                        judge.n_reads += 1;
                    }
                }
            }
        }
        Some(judge)
    }

    /// Sets to NaN every value whose condition does not hold; false, and nothing happens, where a value is not of its domain.
    pub(crate) fn deactivate(&self, points: &mut Points) -> bool {
        let n_chunks = points.len().div_ceil(CHUNK);
        let min_chunks = (MIN_VALUES / (CHUNK * (self.n_reads + self.tables.len()).max(1))).max(1);
        let judged = (0..n_chunks).into_par_iter().with_min_len(min_chunks);
        let marks: Option<Vec<Vec<bool>>> = judged.map(|chunk_idx| self.marks(points, chunk_idx)).collect();
        let Some(marks) = marks else { return false };
        let min_columns = (MIN_VALUES / points.len().max(1)).max(1);
        let columns = points.columns_mut().par_iter_mut().zip(&self.table_idxs).with_min_len(min_columns);
        columns.for_each(|(column, table_idx)| {
            let Some(table_idx) = table_idx else { return };
            for (values, marks) in column.chunks_mut(CHUNK).zip(&marks) {
                let marks = &marks[table_idx * values.len()..];
                for (value, is_inactive) in values.iter_mut().zip(marks) {
                    *value = if *is_inactive { f64::NAN } else { *value };
                }
            }
        });
        true
    }

    /// Which points of a chunk are inactive, table by table.
    fn marks(&self, points: &Points, chunk_idx: usize) -> Option<Vec<bool>> {
        let range = chunk_idx * CHUNK..points.len().min((chunk_idx + 1) * CHUNK);
        let n = range.len();
        let mut codes = vec![0_u8; self.n_reads * n];
        let mut marks = Vec::with_capacity(self.tables.len() * n);
        let mut answer_idxs = [0_u16; CHUNK];
        for (param_idx, param) in self.params.iter().enumerate() {
            let table_idx = self.table_idxs[param_idx];
            // The first parameter with a condition has it judged for all: what it looks at does not change any more.
            if table_idx == Some(marks.len() / n) {
                let table = self.tables[marks.len() / n];
                answer_idxs.fill(0);
                for read in &table.reads {
                    let codes = &codes[self.read_idxs[read.param_idx]? * n..][..n];
                    for (answer_idx, code) in answer_idxs.iter_mut().zip(codes) {
                        *answer_idx += u16::from(*code) * read.stride as u16;
                    }
                }
                marks.extend(
                    answer_idxs[..n].iter().map(|answer_idx| !table.answers[usize::from(*answer_idx)]),
                );
            }
            if let Some(read_idx) = self.read_idxs[param_idx] {
                let codes = &mut codes[read_idx * n..][..n];
                let marks = table_idx.map(|table_idx| &marks[table_idx * n..][..n]);
                encode(param, &points.column(param_idx)[range.clone()], marks, codes)?;
            }
        }
        Some(marks)
    }
}

/// The codes of a column as conditions see them: an inactive parameter has its default.
fn encode(param: &Param, column: &[f64], marks: Option<&[bool]>, codes: &mut [u8]) -> Option<()> {
    let n_codes = n_codes(param)?;
    let default = code(param.default, n_codes)? as u8;
    let mut are_known = true;
    for (code, value) in codes.iter_mut().zip(column) {
        // What is no number, or a negative one, becomes zero.
        let number = *value as u32;
        are_known &= value.is_nan() | ((f64::from(number) == *value) & (number < n_codes as u32));
        *code = if value.is_nan() { default } else { number as u8 };
    }
    if let Some(marks) = marks {
        codes.iter_mut().zip(marks).for_each(|(code, is_inactive)| {
            *code = if *is_inactive { default } else { *code };
        });
    }
    are_known.then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Choice;
    use crate::rng::Stream;
    use crate::space::Space;

    type Function = fn(&[f64]) -> bool;

    /// Switches and choices that depend on each other, and numbers that depend on them; the second space has the conditions as plain functions.
    fn spaces() -> [Space; 2] {
        let options = ["a", "b", "c"].map(|name| Choice::Text(name.into())).to_vec();
        let number = Domain::Float { low: 0.0, high: 9.0, step: None, log: false };
        let params = vec![
            Param::new("s", Domain::Bool, 1.0),
            Param::new("c", Domain::Choice { options }, 2.0),
            Param::new("t", Domain::Bool, 0.0),
            Param::new("x", number.clone(), 3.0),
            Param::new("y", number.clone(), 3.0),
            Param::new("z", number, 3.0),
        ];
        let on: (&[usize], Function) = (&[0], |row| row[0] == 1.0);
        let second: (&[usize], Function) = (&[1, 0], |row| row[1] == 2.0 && row[0] == 1.0);
        let either: (&[usize], Function) = (&[2, 1], |row| row[2] == 1.0 || row[1] == 0.0);
        let place = [(1, on), (2, second), (3, either), (4, on), (5, either)];
        let shared = [on, second, either].map(|(reads, holds)| Condition::of_params(&params, reads, holds));
        let mut tabulated = params.clone();
        let mut plain = params;
        for (param_idx, (reads, holds)) in place {
            let at = [on, second, either].iter().position(|known| known.0 == reads).unwrap();
            tabulated[param_idx].when = Some(shared[at].clone());
            plain[param_idx].when = Some(Condition::new(holds));
        }
        [Space { params: tabulated }, Space { params: plain }]
    }

    fn points(space: &Space, n: usize) -> Points {
        let column = |(param_idx, param): (usize, &Param)| {
            let numbers = Stream::new(5, param_idx as u64);
            let value = |point_idx: u64| param.domain.from_unit(numbers.unit(point_idx));
            // Some are inactive before.
            (0..n as u64).map(|at| if numbers.unit(!at) < 0.1 { f64::NAN } else { value(at) }).collect()
        };
        Points::from_columns(n, space.params.iter().enumerate().map(column).collect())
    }

    fn bits(points: &Points) -> Vec<u64> {
        (0..points.n_params()).flat_map(|at| points.column(at)).map(|value| value.to_bits()).collect()
    }

    #[test]
    fn tables_say_what_the_functions_say() {
        let [tabulated, plain] = spaces();
        assert!(Judge::new(&tabulated.params).is_some() && Judge::new(&plain.params).is_none());
        for n in [0, 1, 255, 256, 257, 3000] {
            let mut found = points(&tabulated, n);
            let mut expected = found.clone();
            tabulated.deactivate(&mut found);
            plain.deactivate(&mut expected);
            assert_eq!(bits(&found), bits(&expected), "{n} points");
        }
        assert_eq!(
            Judge::new(&tabulated.params).unwrap().tables.len(),
            3,
            "shared conditions are judged once"
        );
    }

    #[test]
    fn values_outside_their_domain_are_left_to_the_functions() {
        let [tabulated, plain] = spaces();
        for odd in [7.0, -1.0, 0.5, f64::INFINITY] {
            let mut found = points(&tabulated, 300);
            found.column_mut(0)[299] = odd;
            let mut expected = found.clone();
            let before = bits(&found);
            assert!(!Judge::new(&tabulated.params).unwrap().deactivate(&mut found));
            assert_eq!(bits(&found), before);
            tabulated.deactivate(&mut found);
            plain.deactivate(&mut expected);
            assert_eq!(bits(&found), bits(&expected), "{odd}");
        }
    }

    #[test]
    fn conditions_on_numbers_or_on_what_follows_are_not_judged_by_table() {
        let [mut space, _] = spaces();
        let on_number = Condition::of_params(&space.params, &[3], |row| row[3] > 1.0);
        assert!(on_number.table.is_none() && on_number.holds(&[0.0, 0.0, 0.0, 2.0]));
        // A parameter that is listed later counts as its default.
        space.params[1].when = Some(Condition::of_params(&space.params, &[2], |row| row[2] == 1.0));
        assert!(Judge::new(&space.params).is_none());
        let mut found = points(&space, 100);
        space.deactivate(&mut found);
        assert!(found.column(1).iter().all(|value| value.is_nan()));
    }
}
