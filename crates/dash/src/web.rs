//! Runs in the browser.
