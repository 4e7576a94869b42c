//! A batch that is too small grows, on simulated devices of several kinds.

use super::*;

/// A device with a fixed cost per batch that nothing hides, and that a small batch does not fill.
struct SimulatedDevice {
    overhead_ms: f64,
    per_trial_ms: f64,
    fill: f64,
}

impl SimulatedDevice {
    /// The wall time of a study whose batch stays as it is.
    fn wall_ms(&self, n_trials: f64, batch: f64) -> f64 {
        n_trials / batch * (batch.max(self.fill) * self.per_trial_ms + self.overhead_ms)
    }

    /// The wall time of a study with a tuner, and the batch that it ends with. The fold is 20 ms behind, as it is in a journal.
    fn tuned(&self, n_trials: f64, batch: f64) -> (f64, f64) {
        let knobs = vec![knob("batch", batch, 16.0, 1_048_576.0), knob("lag", 1.0, 0.0, 8.0)];
        let remedies = vec![
            remedy(Symptom::LowEfficiency, "batch", Change::Multiply(4.0)),
            remedy(Symptom::LowEfficiency, "lag", Change::Add(1.0)),
        ];
        let mut tuner = Tuner::new(Mode::On, Thresholds::default(), SIGNALS, knobs, remedies);
        let mut run = SimulatedRun::new();
        let mut shown = run.snapshot.clone();
        let mut shown_at_ms = 0.0;
        let mut under_way = batch;
        while run.trials < n_trials {
            // With a lag of one the batch that was asked before the knob was turned is evaluated first.
            let now = std::mem::replace(&mut under_way, tuner.knob("batch").unwrap());
            let evaluate_ms = now.max(self.fill) * self.per_trial_ms;
            let values = [("evaluate_ms", evaluate_ms), ("idle_ms", self.overhead_ms)];
            run.timed_batch(evaluate_ms + self.overhead_ms, now, &values);
            if run.at_ms >= shown_at_ms + 20.0 {
                shown.clone_from(&run.snapshot);
                shown_at_ms = run.at_ms;
            }
            tuner.look(&shown, run.batch + 1);
        }
        (run.at_ms / run.trials * n_trials, tuner.knob("batch").unwrap())
    }
}

#[test]
fn a_batch_64_times_too_small_costs_less_than_a_tenth() {
    let devices = [
        SimulatedDevice { overhead_ms: 1.5, per_trial_ms: 0.001, fill: 0.0 },
        SimulatedDevice { overhead_ms: 1.5, per_trial_ms: 0.001, fill: 8192.0 },
        SimulatedDevice { overhead_ms: 0.3, per_trial_ms: 0.0004, fill: 32_768.0 },
        SimulatedDevice { overhead_ms: 10.0, per_trial_ms: 0.002, fill: 1024.0 },
    ];
    for device in devices {
        let n_trials = 10_000.0 / device.per_trial_ms;
        let by_hand_ms = device.wall_ms(n_trials, 65_536.0);
        assert!(
            device.wall_ms(n_trials, 1024.0) > 2.0 * by_hand_ms,
            "a small batch must hurt, or this shows nothing"
        );
        let (ms, batch) = device.tuned(n_trials, 1024.0);
        assert!(
            ms < 1.1 * by_hand_ms,
            "{ms} ms with the tuner, {by_hand_ms} by hand; the last batch was {batch}"
        );
    }
}

#[test]
fn a_batch_that_is_large_enough_is_left_alone() {
    let device = SimulatedDevice { overhead_ms: 1.0, per_trial_ms: 0.001, fill: 0.0 };
    assert_eq!(device.tuned(5_000_000.0, 32_768.0).1, 32_768.0);
}
