//! Tables that cross between Python and Rust by Arrow's C stream, without a copy of their columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int64Type, TimestampMillisecondType, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, PrimitiveArray, RecordBatch,
    RecordBatchIterator, StringArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PySlice};
use tidemill_market::GivenFrame;

const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// A table that anything which speaks Arrow can take.
#[pyclass(frozen, module = "tidemill._tidemill")]
pub struct RawTable {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl RawTable {
    /// A table of these batches.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }
}

#[pymethods]
impl RawTable {
    /// The stream of Arrow's PyCapsule interface; a requested schema is not looked at, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = requested_schema;
        let batches: Vec<Result<RecordBatch, ArrowError>> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        Ok(PyCapsule::new_with_value(py, stream, STREAM)?.into_any())
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The first rows.
    fn head(&self, n_rows: usize) -> Self {
        let mut left = n_rows;
        let first = |batch: &RecordBatch| {
            let part = batch.slice(0, left.min(batch.num_rows()));
            left -= part.num_rows();
            part
        };
        Self { schema: self.schema.clone(), batches: self.batches.iter().map(first).collect() }
    }

    /// Names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// What a column says about itself, such as the role that it has in a study.
    fn metadata(&self, name: &str) -> HashMap<String, String> {
        self.schema
            .field_with_name(name)
            .map_or_else(|_| HashMap::new(), |field| field.metadata().clone().into())
    }

    /// The zone of a column of times, empty where they have none; `None` for any other column.
    fn zone(&self, name: &str) -> Option<&str> {
        match self.schema.field_with_name(name).ok()?.data_type() {
            DataType::Timestamp(_, zone) => Some(zone.as_deref().unwrap_or_default()),
            _ => None,
        }
    }

    /// A column as plain values; times are UTC milliseconds.
    fn values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let at = self.schema.index_of(name).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mut values = Vec::with_capacity(self.__len__());
        for batch in &self.batches {
            let array = batch.column(at);
            for row in 0..array.len() {
                values.push(cell(py, array, row)?);
            }
        }
        Ok(values)
    }

    /// What numpy holds a column as: `f8`, `i8` or `u8` as they are, `f8` also for whole numbers of which some are missing, `time` for
    /// milliseconds, `text` for places among words, `switch` for bytes of 0 and 1, and `list` for anything else.
    fn kind(&self, name: &str) -> PyResult<&'static str> {
        let (data_type, parts) = self.parts(name)?;
        let is_whole = parts.iter().all(|part| part.null_count() == 0);
        Ok(match data_type {
            DataType::Float64 => "f8",
            DataType::Int64 if is_whole => "i8",
            DataType::UInt64 if is_whole => "u8",
            DataType::Int64 | DataType::UInt64 => "f8",
            DataType::Timestamp(_, _) => "time",
            DataType::Boolean if is_whole => "switch",
            DataType::Utf8 => "text",
            _ => "list",
        })
    }

    /// Writes a column into an array of numpy of its kind. Where there is nothing it is NaN, of times the least number, of texts -1. The
    /// result are the distinct texts.
    fn fill(&self, py: Python<'_>, name: &str, array: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        let (data_type, parts) = self.parts(name)?;
        match (data_type, self.kind(name)?) {
            (DataType::Float64, _) => fill_numbers::<Float64Type>(py, &parts, f64::NAN, array)?,
            (DataType::Int64, "i8") => fill_numbers::<Int64Type>(py, &parts, 0, array)?,
            (DataType::UInt64, "u8") => fill_numbers::<UInt64Type>(py, &parts, 0, array)?,
            (DataType::Int64, _) => fill(py, array, &with_gaps::<Int64Type>(&parts, |value| value as f64)?)?,
            (DataType::UInt64, _) => {
                fill(py, array, &with_gaps::<UInt64Type>(&parts, |value| value as f64)?)?
            }
            (DataType::Timestamp(_, _), _) => {
                fill_numbers::<TimestampMillisecondType>(py, &parts, i64::MIN, array)?;
            }
            (DataType::Boolean, "switch") => {
                let parts = of_type::<BooleanArray>(&parts)?.into_iter();
                let switches = parts.flat_map(|part| part.values().iter().map(u8::from));
                fill(py, array, &switches.collect::<Vec<u8>>())?;
            }
            (DataType::Utf8, _) => {
                let (places, words) = words(&of_type::<StringArray>(&parts)?);
                fill(py, array, &places)?;
                return Ok(words);
            }
            _ => return Err(PyTypeError::new_err(format!("a column of type {data_type}"))),
        }
        Ok(Vec::new())
    }
}

impl RawTable {
    /// The type of a column and its arrays, one of each batch.
    fn parts(&self, name: &str) -> PyResult<(&DataType, Vec<&ArrayRef>)> {
        let at = self.schema.index_of(name).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok((self.schema.field(at).data_type(), self.batches.iter().map(|batch| batch.column(at)).collect()))
    }
}

fn of_type<'a, A: Array + 'static>(parts: &[&'a ArrayRef]) -> PyResult<Vec<&'a A>> {
    let parts = parts.iter().copied().map(|part| part.as_any().downcast_ref::<A>());
    parts.collect::<Option<_>>().ok_or_else(|| PyTypeError::new_err("a column of another type"))
}

/// Writes values into an array of numpy that has as many elements.
fn fill<T: Element>(py: Python<'_>, array: &Bound<'_, PyAny>, values: &[T]) -> PyResult<()> {
    PyBuffer::<T>::get(array)?.copy_from_slice(py, values)
}

/// Writes the numbers of a column, batch by batch.
fn fill_numbers<T: ArrowPrimitiveType<Native: Element>>(
    py: Python<'_>,
    parts: &[&ArrayRef],
    missing: T::Native,
    array: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let mut from = 0;
    for part in of_type::<PrimitiveArray<T>>(parts)? {
        let to = from + part.len() as isize;
        let elements = array.get_item(PySlice::new(py, from, to, 1))?;
        if part.null_count() == 0 {
            fill(py, &elements, part.values())?;
        } else {
            let values: Vec<T::Native> = part.iter().map(|value| value.unwrap_or(missing)).collect();
            fill(py, &elements, &values)?;
        }
        from = to;
    }
    Ok(())
}

/// Whole numbers of which some are missing.
fn with_gaps<T: ArrowPrimitiveType>(parts: &[&ArrayRef], number: fn(T::Native) -> f64) -> PyResult<Vec<f64>> {
    let parts = of_type::<PrimitiveArray<T>>(parts)?.into_iter();
    Ok(parts.flat_map(|part| part.iter().map(|value| value.map_or(f64::NAN, number))).collect())
}

/// The distinct texts of a column in the order in which they come, and the place of each row among them.
fn words(parts: &[&StringArray]) -> (Vec<i64>, Vec<String>) {
    let (mut places, mut words) = (Vec::new(), Vec::<String>::new());
    let (mut known, mut last) = (HashMap::<&str, i64>::new(), None::<(&str, i64)>);
    for word in parts.iter().flat_map(|part| part.iter()) {
        places.push(match (word, last) {
            (None, _) => -1,
            // Symbols come in long runs.
            (Some(word), Some((before, place))) if word == before => place,
            (Some(word), _) => {
                let place = *known.entry(word).or_insert_with(|| {
                    words.push(word.to_owned());
                    words.len() as i64 - 1
                });
                last = Some((word, place));
                place
            }
        });
    }
    (places, words)
}

fn cell<'py>(py: Python<'py>, array: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if array.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    let any = array.as_any();
    if let Some(values) = any.downcast_ref::<StringArray>() {
        return Ok(values.value(row).into_pyobject(py)?.into_any());
    }
    if let Some(values) = any.downcast_ref::<BooleanArray>() {
        return Ok(values.value(row).into_pyobject(py)?.to_owned().into_any());
    }
    if let Some(values) = any.downcast_ref::<Int64Array>() {
        return Ok(values.value(row).into_pyobject(py)?.into_any());
    }
    if let Some(values) = any.downcast_ref::<Float64Array>() {
        return Ok(values.value(row).into_pyobject(py)?.into_any());
    }
    if let Some(values) = any.downcast_ref::<UInt64Array>() {
        return Ok(values.value(row).into_pyobject(py)?.into_any());
    }
    if let Some(values) = any.downcast_ref::<TimestampMillisecondArray>() {
        return Ok(values.value(row).into_pyobject(py)?.into_any());
    }
    Err(PyTypeError::new_err(format!("a column of type {}", array.data_type())))
}

/// The table of something that has `__arrow_c_stream__`, or of the columns of a frame that has not: name, kind, unit and values, as
/// `python/tidemill/_frame.py` makes them.
pub fn given(frame: &Bound<'_, PyAny>, symbol: String, origin: String) -> PyResult<GivenFrame> {
    if let Ok(columns) = frame.extract::<Vec<(String, String, Bound<'_, PyAny>)>>() {
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
            .into_iter()
            .map(|(name, kind, values)| {
                let array = from_buffer(&kind, &values)?;
                Ok((Field::new(name, array.data_type().clone(), true), array))
            })
            .collect::<PyResult<Vec<_>>>()?
            .into_iter()
            .unzip();
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(schema.clone(), arrays);
        let batch = batch.map_err(|error| PyValueError::new_err(error.to_string()))?;
        return Ok(GivenFrame { symbol, origin, schema, batches: vec![batch] });
    }
    let capsule = frame.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the name of the capsule promises such a stream; it is moved out, and what is left releases nothing.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    let read = reader.and_then(|reader| {
        let schema = arrow_array::RecordBatchReader::schema(&reader);
        Ok((schema, reader.collect::<Result<Vec<_>, _>>()?))
    });
    let (schema, batches) =
        read.map_err(|error| PyValueError::new_err(format!("the frame cannot be read: {error}")))?;
    Ok(GivenFrame { symbol, origin, schema, batches })
}

fn from_buffer(kind: &str, values: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let py = values.py();
    let whole = || PyBuffer::<i64>::get(values)?.to_vec(py);
    Ok(match kind {
        "number" => Arc::new(Float64Array::from(PyBuffer::<f64>::get(values)?.to_vec(py)?)),
        "whole" => Arc::new(Int64Array::from(whole()?)),
        "text" => {
            let (places, words) = values.extract::<(Bound<'_, PyAny>, Vec<String>)>()?;
            let places = PyBuffer::<i64>::get(&places)?.to_vec(py)?;
            let word = |place: i64| usize::try_from(place).ok().and_then(|place| words.get(place));
            Arc::new(places.into_iter().map(word).collect::<StringArray>())
        }
        _ => {
            // `time:UNIT` without a zone, `time:UNIT:UTC` with one; the least number is no time.
            let (unit, zone) = match kind.trim_start_matches("time:").split_once(':') {
                Some((unit, zone)) => (unit, Some(zone)),
                None => (kind.trim_start_matches("time:"), None),
            };
            let times = whole()?.into_iter().map(|time| Some(time).filter(|time| *time != i64::MIN));
            let times: Vec<Option<i64>> = times.collect();
            match unit {
                "s" => Arc::new(TimestampSecondArray::from(times).with_timezone_opt(zone)),
                "ms" => Arc::new(TimestampMillisecondArray::from(times).with_timezone_opt(zone)),
                "us" => Arc::new(TimestampMicrosecondArray::from(times).with_timezone_opt(zone)),
                "ns" => Arc::new(TimestampNanosecondArray::from(times).with_timezone_opt(zone)),
                _ => return Err(PyTypeError::new_err(format!("a column of the unknown kind {kind}"))),
            }
        }
    })
}
