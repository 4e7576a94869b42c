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
use pyo3::types::{PyBytes, PyCapsule};
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

    /// Whether a column holds moments of UTC.
    fn is_utc(&self, name: &str) -> bool {
        let field = self.schema.field_with_name(name);
        field.is_ok_and(|field| matches!(field.data_type(), DataType::Timestamp(_, Some(_))))
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

    /// A column for numpy: its kind and its values as bytes (`f8`, `i8`, `u8` and `time`, where nothing is NaN or the least number), or as a
    /// list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let at = self.schema.index_of(name).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let parts: Vec<&ArrayRef> = self.batches.iter().map(|batch| batch.column(at)).collect();
        match self.schema.field(at).data_type() {
            DataType::Float64 => Ok(("f8", numbers::<Float64Type>(py, &parts, f64::NAN, f64::to_le_bytes)?)),
            DataType::Int64 if parts.iter().all(|part| part.null_count() == 0) => {
                Ok(("i8", numbers::<Int64Type>(py, &parts, 0, i64::to_le_bytes)?))
            }
            DataType::UInt64 if parts.iter().all(|part| part.null_count() == 0) => {
                Ok(("u8", numbers::<UInt64Type>(py, &parts, 0, u64::to_le_bytes)?))
            }
            DataType::Timestamp(_, _) => {
                Ok(("time", numbers::<TimestampMillisecondType>(py, &parts, i64::MIN, i64::to_le_bytes)?))
            }
            _ => Ok(("list", self.values(py, name)?.into_pyobject(py)?.into_any())),
        }
    }
}

fn numbers<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    parts: &[&ArrayRef],
    null: T::Native,
    bytes: fn(T::Native) -> [u8; 8],
) -> PyResult<Bound<'py, PyAny>> {
    let mut all = Vec::with_capacity(parts.iter().map(|part| 8 * part.len()).sum());
    for part in parts {
        let values = part.as_any().downcast_ref::<PrimitiveArray<T>>();
        let values = values.ok_or_else(|| PyTypeError::new_err("a column of another type"))?;
        values.iter().for_each(|value| all.extend_from_slice(&bytes(value.unwrap_or(null))));
    }
    Ok(PyBytes::new(py, &all).into_any())
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
        "text" => Arc::new(StringArray::from(values.extract::<Vec<Option<String>>>()?)),
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
