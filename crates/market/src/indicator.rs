//! Indicators as plain functions over slices, one file each.
