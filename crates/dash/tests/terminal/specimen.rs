//! Journals of made-up runs that look like real ones, the same ones every time.

#![allow(dead_code, reason = "shared by test binaries and an example, each of which uses a part")]

use std::path::Path;

use tidemill_telemetry::{DeviceMode, Event, Timestamp};

/// When all of them start: 2026-01-06 12:00:00 UTC.
pub const START_MS: i64 = 1_767_700_800_000;

/// A run that is being made up.
pub struct Specimen {
    pub events: Vec<Event>,
    run: &'static str,
    clock_ms: f64,
    resumed_ms: f64,
    state: u64,
}

impl Specimen {
    fn new(run: &'static str) -> Self {
        Self { events: Vec::new(), run, clock_ms: 0.0, resumed_ms: 0.0, state: 1 }
    }

    /// A number from 0 up to 1.
    fn random(&mut self) -> f64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn event(&self, phase: &str, step: impl Into<String>) -> Event {
        let mut event = Event::new(self.run, phase, step.into());
        event.timestamp = Timestamp::from_ms(START_MS + self.clock_ms as i64);
        event
    }

    fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// A step that ends now.
    fn span(&self, phase: &str, step: &str, start_ms: f64, duration_ms: f64, device: DeviceMode) -> Event {
        let event = self.event(phase, step).lasting_ms(duration_ms).on(device);
        event.value("start_ms", start_ms - self.resumed_ms)
    }

    fn start_sweep(&mut self, step: &str, total: f64) {
        let event = self
            .event("run", step)
            .parameter("workload", "sweep")
            .parameter("title", "ema-cross on BTCUSDT 15m")
            .parameter("progress", "trials")
            .parameter("score", "best")
            .parameter("better", "higher")
            .parameter("lanes", serde_json::json!({ "ask": "sampler", "tell": "sampler" }))
            .parameter("sampler", "auto")
            .parameter("seed", 7)
            .value("total", total);
        self.push(event);
    }

    /// Batches of a sweep on a device with some streams, or on the CPU.
    fn batches(&mut self, batches: std::ops::Range<u64>, n_streams: u32, mode: impl Fn(u64) -> DeviceMode) {
        const TRIALS: f64 = 4096.0;
        let mut best = 1.93 - 2.5 * (-(batches.start as f64) / 40.0).exp();
        for batch in batches {
            let step = format!("batch_{batch}");
            let began_ms = self.clock_ms;
            let ask_ms = 1.0 + self.random();
            let kernel_ms = 11.0 + 3.0 * self.random();
            let trials = (batch + 1) as f64 * TRIALS;
            let device = match mode(batch) {
                DeviceMode::Gpu { .. } => DeviceMode::Gpu { stream: batch as u32 % n_streams },
                other => other,
            };
            let is_gpu = matches!(device, DeviceMode::Gpu { .. });
            let slow = if is_gpu { 1.0 } else { 20.0 };
            self.clock_ms = began_ms + ask_ms;
            self.push(self.span("ask", &step, began_ms, ask_ms, DeviceMode::Cpu));
            let mut at_ms = self.clock_ms;
            if is_gpu {
                let event = self.span("upload", &step, at_ms, 0.8, device.clone()).value("bytes", 262_144.0);
                self.push(event);
                at_ms += 0.8;
            }
            let found = 1.93 - 2.5 * (-(batch as f64) / 40.0).exp() + 0.02 * self.random();
            if found > best + 0.02 {
                best = found;
                let trial = trials - 1.0 - (TRIALS - 1.0) * self.random().floor();
                let fast = (5.0 + 55.0 * self.random()).floor();
                let slow = (50.0 + 350.0 * self.random()).floor();
                let event = self
                    .event("improvement", format!("trial_{trial}"))
                    .value("best", best)
                    .value("trial", trial)
                    .parameter("fast", fast)
                    .parameter("slow", slow)
                    .parameter("k", 2.25)
                    .parameter("mode", "tight");
                self.push(event);
            }
            let busy = (0.99 - 0.03 * self.random()) * if is_gpu { 1.0 } else { 0.0 };
            let duration_ms = kernel_ms * slow * if is_gpu { f64::from(n_streams).min(2.0) } else { 1.0 };
            let mut event = self.span(
                if is_gpu { "kernel" } else { "evaluate" },
                &step,
                at_ms,
                duration_ms,
                device.clone(),
            );
            event = event.value("best", best).value("trials", trials).value("valid", (trials * 0.9).floor());
            if is_gpu {
                event = event.value("busy", busy).value("fill", 0.125 * busy);
            }
            self.clock_ms = began_ms + kernel_ms * slow;
            event.timestamp = Timestamp::from_ms(START_MS + self.clock_ms as i64);
            self.push(event);
            if is_gpu {
                self.push(self.span("download", &step, at_ms + duration_ms, 0.4, device));
            }
            self.push(self.span("tell", &step, self.clock_ms - 0.9, 0.9, DeviceMode::Cpu));
        }
    }

    fn end(&mut self, outcome: &str, sentence: &str) {
        self.clock_ms += 5.0;
        self.push(self.event("run", "end").parameter("outcome", outcome).note(sentence));
    }

    /// The lines of its journal.
    pub fn text(&self) -> String {
        self.events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect()
    }

    /// Writes its journal into a folder, which is made.
    pub fn write(&self, dir: &Path) {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("journal.jsonl"), self.text()).unwrap();
    }

    /// Time of its last event.
    pub fn end_ms(&self) -> i64 {
        START_MS + self.clock_ms as i64
    }
}

const GPU: DeviceMode = DeviceMode::Gpu { stream: 0 };

/// A sweep on a GPU, with two to four streams, that did all it should.
pub fn gpu_sweep(n_batches: u64, n_streams: u32) -> Specimen {
    let mut run = Specimen::new("sweep-7");
    run.start_sweep("start", n_batches as f64 * 4096.0);
    run.batches(0..n_batches, n_streams, |_| GPU);
    run.end("complete", "all trials are done");
    run
}

/// A sweep on the CPU that was stopped.
pub fn cpu_sweep() -> Specimen {
    let mut run = Specimen::new("sweep-7");
    run.start_sweep("start", 1_000_000.0);
    run.batches(0..60, 1, |_| DeviceMode::Cpu);
    run.end("stopped", "stopped by Ctrl-C");
    run
}

/// A sweep that lost its GPU half-way and went on.
pub fn fallback() -> Specimen {
    let mut run = Specimen::new("sweep-7");
    run.start_sweep("start", 80.0 * 4096.0);
    let reason = "the device was lost: CUDA_ERROR_LAUNCH_FAILED in `walk`";
    run.batches(0..80, 2, |batch| {
        if batch < 40 { GPU } else { DeviceMode::CpuFallback { reason: reason.to_owned() } }
    });
    run.push(run.event("warning", "device").note("the GPU is not used any more"));
    run.end("complete", "all trials are done");
    run
}

/// A sweep that was killed: there is no end, and the last line may be torn.
pub fn killed() -> Specimen {
    let mut run = Specimen::new("sweep-7");
    run.start_sweep("start", 200.0 * 4096.0);
    run.batches(0..70, 3, |_| GPU);
    run
}

/// The same, resumed an hour later and complete.
pub fn resumed() -> Specimen {
    let mut run = killed();
    run.clock_ms += 3_600_000.0;
    run.resumed_ms = run.clock_ms;
    run.start_sweep("resume", 200.0 * 4096.0);
    run.batches(70..200, 3, |_| GPU);
    run.end("complete", "all trials are done");
    run
}

/// A sweep whose hypertuner acts and gives advice.
pub fn tuned() -> Specimen {
    let mut run = Specimen::new("sweep-7");
    run.start_sweep("start", 200.0 * 4096.0);
    run.batches(0..60, 2, |_| GPU);
    let apply = run
        .event("hypertune", "apply")
        .value("id", 1.0)
        .value("batch", 61.0)
        .parameter("rule", "low_efficiency")
        .parameter("knob", "batch")
        .parameter("old", 1024)
        .parameter("new", 4096)
        .note("the device was busy 61.0 % of the last 8 batches, less than 90 %");
    run.push(apply);
    run.batches(60..90, 2, |_| GPU);
    let effect = run
        .event("hypertune", "effect")
        .value("id", 1.0)
        .value("before", 110_000.0)
        .value("after", 312_500.0)
        .parameter("measure", "trials_per_s");
    run.push(effect);
    let advise = run
        .event("hypertune", "advise")
        .value("id", 2.0)
        .parameter("rule", "no_improvement")
        .parameter("knob", "restart")
        .parameter("old", false)
        .parameter("new", true)
        .note("no improvement for 30 batches");
    run.push(advise);
    run.push(run.event("journal", "dropped").value("dropped", 12.0));
    run.batches(90..100, 2, |_| GPU);
    run
}

/// A run of another kind: a graph is coloured, fewer colours are better, and there is no end to be known.
pub fn coloring() -> Specimen {
    let mut run = Specimen::new("color-3");
    let start = run
        .event("run", "start")
        .parameter("workload", "color")
        .parameter("title", "DSJC500.5")
        .parameter("progress", "iterations")
        .parameter("score", "k")
        .parameter("better", "lower")
        .parameter("seed", 3);
    run.push(start);
    let mut k = 60.0;
    for batch in 0..120_u64 {
        let step = format!("batch_{batch}");
        let phase = if batch % 3 == 2 { "tempering" } else { "tabu" };
        let duration_ms = 40.0 + 10.0 * run.random();
        let began_ms = run.clock_ms;
        run.clock_ms += duration_ms;
        let conflicts = (30.0 * run.random()).floor() + 2.0;
        let event = run
            .span(phase, &step, began_ms, duration_ms, DeviceMode::Gpu { stream: batch as u32 % 2 })
            .value("k", k)
            .value("conflicts", conflicts)
            .value("iterations", (batch + 1) as f64 * 8e6)
            .value("it_per_s", 1.9e8)
            .value("busy", 0.97);
        run.push(event);
        if batch % 10 == 9 {
            k -= 1.0;
            let event = run
                .event("improvement", format!("coloring_{k}"))
                .value("k", k)
                .value("iterations", (batch + 1) as f64 * 8e6)
                .parameter("tenure", 10)
                .parameter("restart", batch / 10);
            run.push(event);
        }
    }
    run
}

/// One of each kind, by name.
pub fn all() -> [(&'static str, Specimen); 7] {
    [
        ("gpu", gpu_sweep(400, 4)),
        ("cpu", cpu_sweep()),
        ("fallback", fallback()),
        ("killed", killed()),
        ("resumed", resumed()),
        ("tuned", tuned()),
        ("coloring", coloring()),
    ]
}
