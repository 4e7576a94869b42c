//! The examples run.

#[path = "../examples/sweep.rs"]
mod sweep;
#[path = "../examples/verdict.rs"]
mod verdict;
#[path = "../examples/walk_forward.rs"]
mod walk_forward;

#[test]
fn a_sweep() {
    sweep::main().unwrap();
}

#[test]
fn a_walk_forward() {
    walk_forward::main().unwrap();
}

#[test]
fn a_verdict() {
    verdict::main().unwrap();
}
