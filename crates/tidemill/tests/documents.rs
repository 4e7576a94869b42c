//! The commands of README.md and docs/ are run, and what they print is what the pages show.
//!
//! A page is followed from top to bottom in an empty folder, as a reader would. How its blocks are marked is described in
//! `documents/page.rs` and, for authors, in CONTRIBUTING.md. With `TIDEMILL_BLESS=1` outputs that differ are written into the pages.
#![cfg(unix)]

#[path = "documents/follow.rs"]
mod follow;
#[path = "documents/output.rs"]
mod output;
#[path = "documents/page.rs"]
mod page;
#[path = "documents/renew.rs"]
mod renew;
#[path = "documents/shell.rs"]
mod shell;

use std::fs;
use std::path::{Path, PathBuf};

use crate::follow::{PageOutcome, follow};
use crate::page::Page;

/// README.md and every page in docs/, in order.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut docs: Vec<PathBuf> =
        fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    docs.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    docs.sort();
    [vec![root.join("README.md")], docs].concat()
}

#[test]
fn commands_of_the_documents_print_what_the_documents_show() {
    let is_blessed = std::env::var_os("TIDEMILL_BLESS").is_some_and(|value| value == "1");
    let mut problems = Vec::new();
    let mut all = PageOutcome::default();
    for path in documents() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let page = Page::read(&text);
        problems.extend(page.problems.iter().map(|problem| format!("{name}:{problem}")));
        let followed = follow(&page);
        if is_blessed && !followed.differences.is_empty() {
            fs::write(&path, renew::page(&text, &followed.differences)).unwrap();
            println!("renewed: {} output(s) of {name}", followed.differences.len());
        } else {
            problems.extend(
                followed.differences.iter().map(|difference| format!("{name}:{}", difference.shown())),
            );
        }
        problems.extend(followed.failures.iter().map(|failure| format!("{name}:{failure}")));
        println!("{name}: {} command(s) ran, {} output(s) compared", followed.n_ran, followed.n_compared);
        for (line, reason) in &followed.not_run {
            println!("not run: {name}:{line}: {reason}");
        }
        all.n_ran += followed.n_ran;
        all.n_compared += followed.n_compared;
        all.not_run.extend(followed.not_run);
    }
    println!(
        "{} commands ran, {} outputs were compared, {} blocks or commands were not run",
        all.n_ran,
        all.n_compared,
        all.not_run.len()
    );
    let hint =
        "if the new output is right: TIDEMILL_BLESS=1 cargo test --release -p tidemill --test documents";
    assert!(problems.is_empty(), "{}\n\nhint: {hint}\n", problems.join("\n"));
    assert!(all.n_ran > 0 && all.n_compared > 0, "the pages have nothing to run");
}
