//! How much triple buffering gains: batches whose upload, computation and download take 2 : 5 : 2, in a row and overlapped.
//!
//! Lengths of the transfers and of the computation are measured and set at the start, because every machine has its own. The host does
//! nothing while it is timed: all input lies in page-locked memory before, and every batch has a place of its own for its results, which
//! are compared afterwards.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use tidemill_gpu::{
    Context, ContextOptions, Device, DeviceBuffer, DeviceKind, DevicePtr, Event, GpuError, Kernel, Launch,
    Pinned, Pipeline, PipelineStatistics, Purpose, Source, Stream, StreamMode, kernel_structs,
};

use tidemill_lab::number;
use tidemill_lab::{DeviceChoice, Devices};

#[derive(Args)]
pub struct OverlapArgs {
    /// Number of batches [default: 48; 8 under emulation].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    batches: Option<u32>,
    /// Largest transfer of a batch, in MiB [default: 64; 1 under emulation].
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1024))]
    mib: Option<u32>,
    /// Repetitions; the median counts.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    repeat: u32,
    /// Write what ran when in the last overlapped run, as a trace for Perfetto.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Where it runs: cuda, cuda:N or emulated.
    #[arg(long, value_name = "DEVICE", default_value = "cuda")]
    device: DeviceChoice,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Upload, computation and download, as parts of a batch.
const PARTS: [f64; 3] = [2.0, 5.0, 2.0];

/// By how many elements the input of a batch lies behind that of the batch before, so that all differ.
const STEP: usize = 1024;

kernel_structs! {
    const LAYOUTS;

    /// What the kernel takes.
    struct SpinArgs {
        from: DevicePtr<u32>,
        to: DevicePtr<u32>,
        n_in: u32,
        n_out: u32,
        seed: u32,
        n_rounds: u32,
    }
}

/// Everything that both runs share.
#[derive(Clone)]
struct Workload {
    device: Device,
    kernel: Kernel,
    launch: Launch,
    input: Arc<Pinned<u32>>,
    n_in: usize,
    n_out: usize,
    n_rounds: u32,
}

/// What one batch in flight needs on the device.
struct Lane {
    from: DeviceBuffer<u32>,
    to: DeviceBuffer<u32>,
}

/// A batch and the place for its results.
struct Batch {
    number: usize,
    results: Pinned<u32>,
}

/// One run over all batches.
struct PipelineRun {
    wall_ms: f64,
    statistics: PipelineStatistics,
}

pub fn run(args: OverlapArgs) -> Result<ExitCode> {
    let devices = Devices::choose(args.device)?;
    let Some(device) = devices.devices.first() else { bail!("this benchmark needs a GPU") };
    let is_host = device.info().kind == DeviceKind::Host;
    let n_batches = args.batches.unwrap_or(if is_host { 8 } else { 48 }) as usize;
    let mib = args.mib.unwrap_or(if is_host { 1 } else { 64 }) as usize;
    // Before the work, so that a path that cannot be written is an error at once.
    let timeline =
        args.timeline.as_ref().map(|path| File::create(path).with_context(|| path.display().to_string()));
    let timeline = timeline.transpose()?;

    let work = Workload::calibrated(device, mib << 18, n_batches)?;
    let mut results = (0..n_batches).map(|_| device.pinned(work.n_out)).collect::<Result<Vec<_>, _>>()?;
    let mut expected: Vec<Vec<u32>> = Vec::new();
    let (mut n_compared, mut n_differ) = (0, 0);
    let (mut sequential, mut overlapped) = (Vec::new(), Vec::new());
    let mut trace = String::new();
    for _ in 0..args.repeat {
        for (mode, runs) in
            [(StreamMode::Sequential, &mut sequential), (StreamMode::Parallel, &mut overlapped)]
        {
            // What a run leaves undone must not look like the results of the run before.
            for place in &mut results {
                place.as_mut_slice()?.fill(0);
            }
            let context = Context::new(device, ContextOptions { mode, ..ContextOptions::parallel(3) })?;
            let (run, done) = work.run(&context, results)?;
            results = done;
            runs.push(run);
            if expected.is_empty() {
                expected = results
                    .iter()
                    .map(|place| Ok(place.as_slice()?.to_vec()))
                    .collect::<Result<_, GpuError>>()?;
            }
            for (number, (place, expected)) in results.iter().zip(&expected).enumerate() {
                let place = place.as_slice()?;
                let is_right = place == expected && work.is_right(number, place)?;
                n_compared += 1;
                n_differ += usize::from(!is_right);
            }
            if mode == StreamMode::Parallel && timeline.is_some() {
                trace = context.to_json();
            }
        }
    }
    if let (Some(mut file), Some(path)) = (timeline, &args.timeline) {
        file.write_all(trace.as_bytes()).with_context(|| path.display().to_string())?;
    }

    let (sequential, overlapped) = (median(sequential)?, median(overlapped)?);
    let events = EventCosts::measured(device)?;
    let speed_up = sequential.wall_ms / overlapped.wall_ms;
    let ideal = ideal_speed_up(n_batches);
    let mut out = std::io::stdout().lock();
    if args.json {
        let result = json!({
            "bench": "overlap", "device": device.info().name, "batches": n_batches, "repeat": args.repeat,
            "upload_bytes": work.n_in * 4, "download_bytes": work.n_out * 4, "rounds": work.n_rounds,
            "sequential": sequential.json(), "overlapped": overlapped.json(),
            "speed_up": speed_up, "ideal_speed_up": ideal, "compared": n_compared, "different": n_differ,
            "events": events.json(),
        });
        writeln!(out, "{result}")?;
    } else {
        let shown = |n: usize| (n * 4) as f64 / f64::from(1 << 20);
        writeln!(
            out,
            "overlap: {} batches on {}, {:.1} MiB there and {:.1} MiB back, {} of computation",
            number::count(n_batches as u64),
            device.info().name,
            shown(work.n_in),
            shown(work.n_out),
            number::counted(u64::from(work.n_rounds), "round")
        )?;
        writeln!(
            out,
            "                        wall   upload  compute download  busy  overlap     idle   (ms, each of a batch)"
        )?;
        sequential.write(&mut out, "one stream, 1 lane")?;
        overlapped.write(&mut out, "3 streams, 3 lanes")?;
        let [upload, compute, download] = sequential.parts();
        writeln!(out, "  upload : compute : download = {upload:.2} : {compute:.2} : {download:.2}")?;
        writeln!(out, "  speed-up {speed_up:.3}; {ideal:.3} would be ideal for 2 : 5 : 2")?;
        writeln!(out, "  compared {}: {n_differ} differ", number::counted(n_compared, "result"))?;
        writeln!(out, "  {events}")?;
    }
    out.flush()?;
    Ok(if n_differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What the host pays for an event, in microseconds.
struct EventCosts {
    /// Making one, beyond recording it.
    create_us: f64,
    /// Recording one that was used before.
    record_us: f64,
    /// Asking whether one is done.
    query_us: f64,
    /// Waiting for one that is done.
    wait_us: f64,
    /// Letting another stream wait for one.
    order_us: f64,
}

impl EventCosts {
    fn measured(device: &Device) -> Result<Self, GpuError> {
        const EVENTS: usize = 2_000;
        let (stream, other) = (device.stream()?, device.stream()?);
        let time_us = |mut work: Box<dyn FnMut() -> Result<(), GpuError> + '_>| {
            let began = Instant::now();
            work()?;
            Ok::<f64, GpuError>(began.elapsed().as_secs_f64() * 1e6 / EVENTS as f64)
        };
        // Events that are idle already are taken first.
        let idle = (0..device.events().idle()).map(|_| stream.record()).collect::<Result<Vec<_>, _>>()?;
        let (mut events, n_created) = (Vec::with_capacity(EVENTS), device.events().created());
        let record = |events: &mut Vec<Event>| {
            time_us(Box::new(|| {
                (0..EVENTS).try_for_each(|_| stream.record().map(|event| events.push(event)))
            }))
        };
        let first_us = record(&mut events)?;
        assert_eq!(device.events().created() - n_created, EVENTS as u64, "all are new");
        events.clear();
        let record_us = record(&mut events)?;
        stream.synchronize()?;
        let query_us = time_us(Box::new(|| events.iter().try_for_each(|event| event.is_done().map(drop))))?;
        let wait_us = time_us(Box::new(|| events.iter().try_for_each(Event::wait)))?;
        let order_us = time_us(Box::new(|| events.iter().try_for_each(|event| other.wait(event))))?;
        other.synchronize()?;
        drop(idle);
        Ok(Self { create_us: (first_us - record_us).max(0.0), record_us, query_us, wait_us, order_us })
    }

    fn json(&self) -> Value {
        let Self { create_us, record_us, query_us, wait_us, order_us } = self;
        json!({
            "create_us": create_us, "record_us": record_us, "query_us": query_us, "wait_us": wait_us,
            "order_us": order_us,
        })
    }
}

impl std::fmt::Display for EventCosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { create_us, record_us, query_us, wait_us, order_us } = self;
        write!(
            f,
            "an event costs the host {create_us:.2} µs to make, {record_us:.2} to record, {query_us:.2} to ask, {wait_us:.2} to wait for when done, {order_us:.2} to let a stream wait"
        )
    }
}

/// What can be gained at most: only the first upload and the last download are not beside a computation.
fn ideal_speed_up(n_batches: usize) -> f64 {
    let [upload, compute, download] = PARTS;
    let n = n_batches as f64;
    n * (upload + compute + download) / (upload + n * compute + download)
}

fn median(mut runs: Vec<PipelineRun>) -> Result<PipelineRun> {
    runs.sort_by(|a, b| a.wall_ms.total_cmp(&b.wall_ms));
    let middle = runs.len() / 2;
    runs.into_iter().nth(middle).context("there is no run")
}

impl PipelineRun {
    fn stage_ms(&self) -> impl Iterator<Item = f64> {
        self.statistics.stages.iter().map(|stage| stage.mean_ms)
    }

    /// Times of the stages, the whole batch being 9.
    fn parts(&self) -> [f64; 3] {
        let whole = self.stage_ms().sum::<f64>().max(f64::MIN_POSITIVE);
        let mut parts = [0.0; 3];
        for (part, ms) in parts.iter_mut().zip(self.stage_ms()) {
            *part = ms / whole * PARTS.iter().sum::<f64>();
        }
        parts
    }

    fn json(&self) -> Value {
        let statistics = &self.statistics;
        let stages: Map<String, Value> =
            statistics.stages.iter().map(|stage| (stage.name.clone(), json!(stage.mean_ms))).collect();
        json!({
            "wall_ms": self.wall_ms, "device_ms": statistics.wall_ms, "busy_share": statistics.busy_share, "fill": statistics.fill,
            "overlap_ms": statistics.overlap_ms, "idle_ms": statistics.idle_ms, "stages_ms": stages,
        })
    }

    fn write(&self, out: &mut impl Write, name: &str) -> Result<()> {
        let statistics = &self.statistics;
        let n = statistics.iterations.max(1) as f64;
        write!(out, "  {name:<18}{:8.3}", self.wall_ms / n)?;
        for ms in self.stage_ms() {
            write!(out, " {ms:8.3}")?;
        }
        let (busy, overlap, idle) =
            (statistics.busy_share * 100.0, statistics.overlap_ms / n, statistics.idle_ms / n);
        writeln!(out, " {busy:3.0} % {overlap:8.3} {idle:8.3}")?;
        Ok(())
    }
}

impl Workload {
    /// A workload of the right proportions, of which the larger transfer has `len` elements.
    fn calibrated(device: &Device, len: usize, n_batches: usize) -> Result<Self, GpuError> {
        let kernel = device.load(&source())?.kernel("spin")?;
        let launch = match device.info().kind {
            // Threads are dear under emulation, elements are not.
            DeviceKind::Host => Launch::blocks(4, 32),
            DeviceKind::Cuda => Launch::blocks(device.info().multiprocessors * 8, 256),
        };
        let mut input = device.pinned(len + n_batches * STEP)?;
        for (element, at) in input.as_mut_slice()?.iter_mut().zip(0_u32..) {
            *element = (at ^ (at >> 15)).wrapping_mul(0x2c1b_3c6d);
        }
        let input = Arc::new(input);
        let mut work =
            Self { device: device.clone(), kernel, launch, input, n_in: len, n_out: len, n_rounds: 1 };

        let stream = device.stream()?;
        let lane = work.lane()?;
        let mut place = device.pinned(len)?;
        let upload_ms = time_ms(&stream, |stream| stream.upload(&work.input, 0, &lane.from, 0, len))?;
        let download_ms = time_ms(&stream, |stream| stream.download(&lane.to, 0, &mut place, 0, len))?;
        // The faster way moves everything, the slower one what it can in the same time.
        let transfer_ms = upload_ms.min(download_ms).max(1e-6);
        work.n_in = part_of(len, transfer_ms / upload_ms);
        work.n_out = part_of(len, transfer_ms / download_ms);
        let wanted_ms = transfer_ms * PARTS[1] / PARTS[0];
        // Not all of the time is in the rounds, so it takes some turns.
        for _ in 0..6 {
            let took_ms = time_ms(&stream, |stream| work.spin(stream, &lane, 0))?;
            let n_rounds = f64::from(work.n_rounds) * wanted_ms / took_ms.max(1e-6);
            work.n_rounds = n_rounds.round().clamp(1.0, 1e6) as u32;
        }
        Ok(work)
    }

    fn lane(&self) -> Result<Lane, GpuError> {
        Ok(Lane { from: self.device.alloc(self.n_in)?, to: self.device.alloc(self.n_out)? })
    }

    fn spin(&self, stream: &Stream, lane: &Lane, number: usize) -> Result<(), GpuError> {
        let args = SpinArgs {
            from: lane.from.ptr(),
            to: lane.to.ptr(),
            n_in: self.n_in as u32,
            n_out: self.n_out as u32,
            seed: number as u32,
            n_rounds: self.n_rounds,
        };
        // SAFETY: `source` compares the layout of `SpinArgs`; threads stride over the `n_in` and `n_out` elements that `lane` allocated. The
        // streams of both runs order what reads and writes a lane.
        unsafe { stream.launch(&self.kernel, self.launch, &args) }
    }

    /// The result for one element.
    fn result(&self, number: usize, at: usize) -> Result<u32, GpuError> {
        let first = self.input.as_slice()?[number * STEP + at % self.n_in] ^ number as u32;
        Ok((0..self.n_rounds).fold(first, |x, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)))
    }

    /// Whether some elements of a batch are what they must be. That all are is for the comparison of the runs to say.
    fn is_right(&self, number: usize, results: &[u32]) -> Result<bool, GpuError> {
        for at in (0..8).map(|eighth| (results.len() - 1) * eighth / 7) {
            if results[at] != self.result(number, at)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sends all batches through, one for each place; returns the places with the results.
    fn run(
        &self,
        context: &Context,
        places: Vec<Pinned<u32>>,
    ) -> Result<(PipelineRun, Vec<Pinned<u32>>), GpuError> {
        let lanes =
            (0..context.options().n_lanes()).map(|_| self.lane()).collect::<Result<Vec<Lane>, GpuError>>()?;
        let (there, work, back) = (self.clone(), self.clone(), self.n_out);
        let mut pipeline = Pipeline::new(context, lanes)?
            .stage("upload", Purpose::Upload, move |stream, lane: &mut Lane, batch: Batch| {
                stream.upload(&there.input, batch.number * STEP, &lane.from, 0, there.n_in)?;
                Ok(batch)
            })
            .stage("compute", Purpose::Compute, move |stream, lane, batch| {
                work.spin(stream, lane, batch.number)?;
                Ok(batch)
            })
            .stage("download", Purpose::Download, move |stream, lane, mut batch| {
                stream.download(&lane.to, 0, &mut batch.results, 0, back)?;
                Ok(batch)
            });
        let batches = places.into_iter().enumerate().map(|(number, results)| Batch { number, results });
        let batches: Vec<Batch> = batches.collect();
        let mut done = Vec::with_capacity(batches.len());
        self.device.synchronize()?;
        let began = Instant::now();
        let statistics = pipeline.run(batches, |_, batch| {
            done.push(batch.results);
            Ok::<(), GpuError>(())
        })?;
        Ok((PipelineRun { wall_ms: began.elapsed().as_secs_f64() * 1e3, statistics }, done))
    }
}

/// The kernel's text.
fn source() -> Source {
    Source::splice("overlap", &[("overlap.cu", include_str!("overlap.cu"))]).comparing("", &[LAYOUTS])
}

/// How long some work takes on an idle device: the median of five times, after two that do not count.
fn time_ms(stream: &Stream, mut work: impl FnMut(&Stream) -> Result<(), GpuError>) -> Result<f64, GpuError> {
    let mut times = Vec::new();
    for turn in 0..7 {
        let start = stream.record()?;
        work(stream)?;
        let end = stream.record()?;
        end.wait()?;
        if turn >= 2 {
            times.push(end.since_ms(&start)?);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// A share of so many elements, in whole pages and not none.
fn part_of(len: usize, share: f64) -> usize {
    const PAGE: usize = 1024;
    (((len as f64 * share) as usize).min(len) / PAGE * PAGE).max(PAGE)
}

#[cfg(test)]
mod tests {
    use tidemill_gpu::HostOptions;

    use super::*;

    /// Reports a missing device as a skip, or as a failure if the variable requires it.
    fn unless_missing<T>(result: Result<T, GpuError>, required: &str) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error @ GpuError::Unavailable { .. }) => {
                tidemill_skip::skipped_unless_required(required, &error);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn every_batch_has_the_results_of_its_own_input() {
        let device = Device::host(HostOptions::default());
        let work = Workload::calibrated(&device, 8 * STEP, 8);
        let Some(mut work) = unless_missing(work, "TIDEMILL_REQUIRE_EMULATION") else { return };
        (work.n_in, work.n_out, work.n_rounds) = (3 * STEP, 8 * STEP, 3);
        for mode in [StreamMode::Sequential, StreamMode::Parallel] {
            let places = (0..7).map(|_| device.pinned(work.n_out).unwrap()).collect();
            let options = ContextOptions { mode, ..ContextOptions::parallel(3) };
            let context = Context::new(&device, options).unwrap();
            let (run, places) = work.run(&context, places).unwrap();
            assert_eq!((run.statistics.iterations, context.timeline().spans().len()), (7, 21));
            for (number, place) in places.iter().enumerate() {
                for (at, &result) in place.as_slice().unwrap().iter().enumerate() {
                    let expected = work.result(number, at).unwrap();
                    assert_eq!(result, expected, "{mode:?}, batch {number}, element {at}");
                }
                assert!(work.is_right(number, place.as_slice().unwrap()).unwrap());
                assert!(!work.is_right(number + 1, place.as_slice().unwrap()).unwrap_or(false));
            }
        }
    }

    #[test]
    fn the_kernel_compiles_for_a_gpu() {
        let compiled = tidemill_gpu::compile(&source(), "sm_90");
        let Some(code) = unless_missing(compiled, "TIDEMILL_REQUIRE_NVRTC") else { return };
        assert!(!code.is_empty());
    }

    #[test]
    fn the_ideal_gain_grows_to_nine_fifths() {
        assert_eq!(ideal_speed_up(1), 1.0);
        assert!(ideal_speed_up(48) > 1.7 && ideal_speed_up(1_000_000) <= 1.8);
    }
}
