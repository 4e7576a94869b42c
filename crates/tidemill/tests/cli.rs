//! The whole program from the outside: what a person types, what comes back, which exit code, which files.
//!
//! Every test runs the built program in a folder of its own, so that no `tidemill.toml` of the developer is read.

#[path = "cli/agreement.rs"]
mod agreement;
#[path = "cli/bad_input.rs"]
mod bad_input;
#[path = "cli/cluster.rs"]
mod cluster;
#[path = "cli/color.rs"]
mod color;
#[path = "cli/dash.rs"]
mod dash;
#[path = "cli/data_choice.rs"]
mod data_choice;
#[path = "cli/device.rs"]
mod device;
#[path = "cli/figure.rs"]
mod figure;
#[path = "cli/golden.rs"]
mod golden;
#[path = "cli/holding.rs"]
mod holding;
#[path = "cli/hypertune.rs"]
mod hypertune;
#[path = "cli/market.rs"]
mod market;
#[path = "cli/monitor.rs"]
mod monitor;
#[path = "cli/output.rs"]
mod output;
#[path = "cli/process.rs"]
mod process;
#[path = "cli/scan.rs"]
mod scan;
#[path = "cli/settings.rs"]
mod settings;
#[path = "cli/shared_data.rs"]
mod shared_data;
#[path = "cli/signal.rs"]
mod signal;
#[path = "cli/study.rs"]
mod study;
#[path = "cli/study_manage.rs"]
mod study_manage;
#[path = "cli/support.rs"]
mod support;
#[path = "cli/sweep.rs"]
mod sweep;
#[path = "cli/terminal.rs"]
mod terminal;
#[path = "cli/trial.rs"]
mod trial;
#[path = "cli/walkforward.rs"]
mod walkforward;
