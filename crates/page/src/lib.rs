//! The pages of Tidemill, from plain data. The principal type is the [`kit::Page`]: one HTML file that opens offline and fetches nothing.
//!
//! A back-test has a [`report`], a study, a comparison of studies and a walk-forward have a page each ([`study`], [`compare`],
//! [`walkforward`]): a struct that the caller fills, and a function `html` that turns it into the file. The [`kit`] holds what they share with each other and with the dashboard.

pub mod compare;
pub mod kit;
pub mod report;
pub mod study;
pub mod walkforward;
