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
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyCapsule};
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

    /// A column for numpy: its kind and its values. `f8`, `i8`, `u8`, `?` and `time` are bytes, where nothing is NaN or, of times, the least
    /// number; whole numbers of which some are missing are `f8`. `text` is the place of each row among the words, -1 for nothing, and the
    /// words. Anything else is a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let at = self.schema.index_of(name).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let parts: Vec<&ArrayRef> = self.batches.iter().map(|batch| batch.column(at)).collect();
        let is_whole = parts.iter().all(|part| part.null_count() == 0);
        Ok(match self.schema.field(at).data_type() {
            DataType::Float64 => {
                ("f8", bytes(py, numbers::<Float64Type>(&parts, f64::NAN)?, f64::to_ne_bytes)?)
            }
            DataType::Int64 if is_whole => {
                ("i8", bytes(py, numbers::<Int64Type>(&parts, 0)?, i64::to_ne_bytes)?)
            }
            DataType::UInt64 if is_whole => {
                ("u8", bytes(py, numbers::<UInt64Type>(&parts, 0)?, u64::to_ne_bytes)?)
            }
            DataType::Int64 => {
                ("f8", bytes(py, with_gaps::<Int64Type>(&parts, |value| value as f64)?, f64::to_ne_bytes)?)
            }
            DataType::UInt64 => {
                ("f8", bytes(py, with_gaps::<UInt64Type>(&parts, |value| value as f64)?, f64::to_ne_bytes)?)
            }
            DataType::Timestamp(_, _) => {
                ("time", bytes(py, numbers::<TimestampMillisecondType>(&parts, i64::MIN)?, i64::to_ne_bytes)?)
            }
            DataType::Boolean if is_whole => {
                let switches = of_type::<BooleanArray>(&parts)?.into_iter();
                let switches = switches.flat_map(|part| part.values().iter().map(u8::from));
                ("?", PyByteArray::new(py, &switches.collect::<Vec<u8>>()).into_any())
            }
            DataType::Utf8 => {
                let (places, words) = words(&of_type::<StringArray>(&parts)?);
                ("text", (bytes(py, places, i64::to_ne_bytes)?, words).into_pyobject(py)?.into_any())
            }
            _ => ("list", self.values(py, name)?.into_pyobject(py)?.into_any()),
        })
    }
}

fn of_type<'a, A: Array + 'static>(parts: &[&'a ArrayRef]) -> PyResult<Vec<&'a A>> {
    let parts = parts.iter().copied().map(|part| part.as_any().downcast_ref::<A>());
    parts.collect::<Option<_>>().ok_or_else(|| PyTypeError::new_err("a column of another type"))
}

/// The numbers of a column, in one piece.
fn numbers<T: ArrowPrimitiveType>(parts: &[&ArrayRef], missing: T::Native) -> PyResult<Vec<T::Native>> {
    let mut all = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
    for part in of_type::<PrimitiveArray<T>>(parts)? {
        if part.null_count() == 0 {
            all.extend_from_slice(part.values());
        } else {
            all.extend(part.iter().map(|value| value.unwrap_or(missing)));
        }
    }
    Ok(all)
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

/// Numbers as bytes that numpy may write to.
fn bytes<T: Copy>(py: Python<'_>, values: Vec<T>, of: fn(T) -> [u8; 8]) -> PyResult<Bound<'_, PyAny>> {
    let written = PyByteArray::new_with(py, 8 * values.len(), |bytes| {
        for (place, value) in bytes.chunks_exact_mut(8).zip(values) {
            place.copy_from_slice(&of(value));
        }
        Ok(())
    })?;
    Ok(written.into_any())
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
