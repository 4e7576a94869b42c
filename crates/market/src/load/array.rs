//! Arrow arrays of any type as the numbers, times and names that bars are made of.

use arrow_array::cast::AsArray;
use arrow_array::types as arrow;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};

use super::number::{Decimal, parse_number};
use super::table::SymbolColumn;
use crate::bars::DAY_MS;
use crate::timestamp::{Stamp, epoch_f64_to_ms, epoch_to_ms, parse_stamp, parse_time_of_day};

/// Whether the type holds numbers, or nothing but nulls.
pub(crate) fn is_numeric(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_numeric(values),
        DataType::Boolean | DataType::Null => true,
        kind => kind.is_numeric(),
    }
}

/// Whether the type holds text, dictionaries of text included.
pub(crate) fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

fn mismatch(array: &dyn Array) -> String {
    format!("a column of type {} cannot be read here", array.data_type())
}

/// The values of a primitive array as the type says it has.
fn values<T: ArrowPrimitiveType>(
    array: &dyn Array,
) -> Result<impl Iterator<Item = Option<T::Native>>, String> {
    array.as_primitive_opt::<T>().map(|array| array.iter()).ok_or_else(|| mismatch(array))
}

/// Appends an array's numbers; null is NaN, text is parsed.
pub(crate) fn push_numbers(array: &ArrayRef, out: &mut Vec<f64>) -> Result<(), String> {
    if let Some(floats) =
        array.as_primitive_opt::<arrow::Float64Type>().filter(|floats| floats.null_count() == 0)
    {
        out.extend_from_slice(floats.values());
        return Ok(());
    }
    /// Extends `out` with one primitive type's values under a conversion.
    macro_rules! extend {
        ($type:ident, $convert:expr) => {
            out.extend(values::<arrow::$type>(array)?.map(|value| value.map_or(f64::NAN, $convert)))
        };
    }
    match array.data_type() {
        DataType::Null => out.resize(out.len() + array.len(), f64::NAN),
        DataType::Float64 => extend!(Float64Type, |value| value),
        DataType::Float32 => extend!(Float32Type, f64::from),
        DataType::Float16 => extend!(Float16Type, |value| value.to_f64()),
        DataType::Int8 => extend!(Int8Type, f64::from),
        DataType::Int16 => extend!(Int16Type, f64::from),
        DataType::Int32 => extend!(Int32Type, f64::from),
        DataType::Int64 => extend!(Int64Type, |value| value as f64),
        DataType::UInt8 => extend!(UInt8Type, f64::from),
        DataType::UInt16 => extend!(UInt16Type, f64::from),
        DataType::UInt32 => extend!(UInt32Type, f64::from),
        DataType::UInt64 => extend!(UInt64Type, |value| value as f64),
        DataType::Decimal32(_, scale) => extend!(Decimal32Type, |value| decimal(value, *scale)),
        DataType::Decimal64(_, scale) => extend!(Decimal64Type, |value| decimal(value, *scale)),
        DataType::Decimal128(_, scale) => extend!(Decimal128Type, |value| decimal(value, *scale)),
        DataType::Decimal256(_, scale) => extend!(Decimal256Type, |value| decimal(value, *scale)),
        DataType::Boolean => {
            let array = array.as_boolean_opt().ok_or_else(|| mismatch(array))?;
            out.extend(array.iter().map(|value| value.map_or(f64::NAN, f64::from)));
        }
        kind if is_text(kind) => {
            return for_each_text(array, &mut |cell| {
                out.push(cell.map_or(f64::NAN, |cell| parse_number(cell, Decimal::Point)));
            });
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary_opt().ok_or_else(|| mismatch(array))?;
            let mut numbers = Vec::new();
            push_numbers(dictionary.values(), &mut numbers)?;
            let keys = dictionary.normalized_keys();
            out.extend(keys.iter().enumerate().map(|(row, &key)| {
                if dictionary.is_null(row) { f64::NAN } else { numbers.get(key).copied().unwrap_or(f64::NAN) }
            }));
        }
        _ => return Err(mismatch(array)),
    }
    Ok(())
}

/// The double nearest to `unscaled × 10^-scale`; decimal text is the one exact way that covers all widths.
fn decimal(unscaled: impl std::fmt::Display, scale: i8) -> f64 {
    format!("{unscaled}e{}", -i32::from(scale)).parse().unwrap_or(f64::NAN)
}

/// Which millisecond stands for a finer time.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Rounding {
    /// The one it lies in.
    Down,
    /// The first that has not begun before it: what became known then must not be read earlier.
    Up,
}

impl Rounding {
    fn divide(self, value: i64, by: i64) -> i64 {
        value.div_euclid(by) + i64::from(self == Self::Up && value.rem_euclid(by) > 0)
    }
}

/// Hands every time to `push`, `None` where there is none.
pub(crate) fn push_stamps(
    array: &ArrayRef,
    rounding: Rounding,
    mut push: impl FnMut(Option<Stamp>),
) -> Result<(), String> {
    /// Pushes one primitive type's values under a conversion to a stamp.
    macro_rules! each {
        ($type:ident, $convert:expr) => {
            values::<arrow::$type>(array)?.for_each(|value| push(value.and_then($convert)))
        };
    }
    match array.data_type() {
        DataType::Timestamp(unit, zone) => {
            // With a zone Arrow stores instants, without one the clock on some wall.
            let zoned = zone.is_some();
            let stamp = move |ms: i64| if zoned { Stamp::instant(ms) } else { Stamp::local(ms, false) };
            match unit {
                TimeUnit::Second => {
                    each!(TimestampSecondType, |value| value.checked_mul(1_000).and_then(stamp))
                }
                TimeUnit::Millisecond => each!(TimestampMillisecondType, stamp),
                TimeUnit::Microsecond => {
                    each!(TimestampMicrosecondType, |value| stamp(rounding.divide(value, 1_000)))
                }
                TimeUnit::Nanosecond => {
                    each!(TimestampNanosecondType, |value| stamp(rounding.divide(value, 1_000_000)))
                }
            }
        }
        DataType::Date32 => each!(Date32Type, |days| Stamp::local(i64::from(days) * DAY_MS, true)),
        DataType::Date64 => each!(Date64Type, |ms| Stamp::local(ms, ms % DAY_MS == 0)),
        DataType::Int32 => each!(Int32Type, |value| integer_stamp(i64::from(value))),
        DataType::UInt32 => each!(UInt32Type, |value| integer_stamp(i64::from(value))),
        DataType::Int64 => each!(Int64Type, integer_stamp),
        DataType::UInt64 => each!(UInt64Type, |value| i64::try_from(value).ok().and_then(integer_stamp)),
        DataType::Float64 => each!(Float64Type, |value| Stamp::instant(epoch_f64_to_ms(value)?)),
        kind if is_text(kind) => return for_each_text(array, &mut |cell| push(cell.and_then(parse_stamp))),
        _ => return Err(mismatch(array)),
    }
    Ok(())
}

/// An integer is an epoch, unless it reads as a calendar day such as 20150320.
fn integer_stamp(value: i64) -> Option<Stamp> {
    if (18_000_101..22_000_101).contains(&value) {
        return parse_stamp(value.to_string().as_bytes());
    }
    Stamp::instant(epoch_to_ms(value)?)
}

/// Appends times of day in milliseconds.
pub(crate) fn push_clocks(array: &ArrayRef, out: &mut Vec<Option<i64>>) -> Result<(), String> {
    let in_day = |ms: i64| (0..=DAY_MS).contains(&ms).then_some(ms);
    /// Extends `out` with one primitive type's values under a conversion to milliseconds.
    macro_rules! extend {
        ($type:ident, $convert:expr) => {
            out.extend(values::<arrow::$type>(array)?.map(|value| value.map($convert).and_then(in_day)))
        };
    }
    match array.data_type() {
        DataType::Time32(TimeUnit::Second) => extend!(Time32SecondType, |value| i64::from(value) * 1_000),
        DataType::Time32(TimeUnit::Millisecond) => extend!(Time32MillisecondType, i64::from),
        DataType::Time64(TimeUnit::Microsecond) => {
            extend!(Time64MicrosecondType, |value| value.div_euclid(1_000))
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            extend!(Time64NanosecondType, |value| value.div_euclid(1_000_000))
        }
        kind if is_text(kind) => {
            return for_each_text(array, &mut |cell| out.push(cell.and_then(parse_time_of_day)));
        }
        _ => return Err(mismatch(array)),
    }
    Ok(())
}

/// Appends symbols; numbers are symbols too (some exchanges use them), null is none.
pub(crate) fn push_symbols(array: &ArrayRef, out: &mut SymbolColumn) -> Result<(), String> {
    if is_text(array.data_type()) {
        return for_each_text(array, &mut |cell| out.push(cell.unwrap_or(b"")));
    }
    let mut numbers = Vec::new();
    push_numbers(array, &mut numbers)?;
    for number in numbers {
        let name = if number.is_nan() { String::new() } else { number.to_string() };
        out.push(name.as_bytes());
    }
    Ok(())
}

/// The cells of a text array for a first look; empty for null.
pub(crate) fn text_cells(array: &ArrayRef) -> Vec<String> {
    let mut cells = Vec::new();
    let read = for_each_text(array, &mut |cell| {
        cells.push(String::from_utf8_lossy(cell.unwrap_or(b"")).into_owned())
    });
    if read.is_err() {
        cells.clear();
    }
    cells
}

fn for_each_text(array: &ArrayRef, visit: &mut dyn FnMut(Option<&[u8]>)) -> Result<(), String> {
    match array.data_type() {
        DataType::Utf8 => {
            let array = array.as_string_opt::<i32>().ok_or_else(|| mismatch(array))?;
            array.iter().for_each(|cell| visit(cell.map(str::as_bytes)));
        }
        DataType::LargeUtf8 => {
            let array = array.as_string_opt::<i64>().ok_or_else(|| mismatch(array))?;
            array.iter().for_each(|cell| visit(cell.map(str::as_bytes)));
        }
        DataType::Utf8View => {
            let array = array.as_string_view_opt().ok_or_else(|| mismatch(array))?;
            array.iter().for_each(|cell| visit(cell.map(str::as_bytes)));
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary_opt().ok_or_else(|| mismatch(array))?;
            let mut texts: Vec<Option<Vec<u8>>> = Vec::new();
            for_each_text(dictionary.values(), &mut |cell| texts.push(cell.map(<[u8]>::to_vec)))?;
            for (row, &key) in dictionary.normalized_keys().iter().enumerate() {
                let text = texts.get(key).and_then(|text| text.as_deref());
                visit(if dictionary.is_null(row) { None } else { text });
            }
        }
        _ => return Err(mismatch(array)),
    }
    Ok(())
}
