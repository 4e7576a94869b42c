//! The dashboard and the pages that are one file in a real browser, over real runs that the program made.
//!
//! Needs Chromium or Chrome: the one that `TIDEMILL_BROWSER` names, or one in the path. Without one the tests skip and say so, unless
//! `TIDEMILL_REQUIRE_BROWSER=1` makes that a failure.

#[path = "browser/chromium.rs"]
mod chromium;
#[path = "browser/dash.rs"]
mod dash;
#[path = "browser/live.rs"]
mod live;
#[path = "browser/pages.rs"]
mod pages;
#[path = "browser/report.rs"]
mod report;
#[path = "browser/study.rs"]
mod study;
#[allow(dead_code, reason = "the tests of the command line use the rest")]
#[path = "cli/support.rs"]
mod support;
