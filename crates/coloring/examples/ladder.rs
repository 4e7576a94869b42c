//! Runs one search on one graph, on the CPU or a GPU, and prints how fast it was and how far it came.
//!
//! ```sh
//! cargo run --release -p tidemill-coloring --example ladder -- GRAPH SEARCH K [option=value ...]
//! ```
//!
//! `SEARCH` is `tabu`, `partial`, `weighted`, `memetic`, `temper` or `anneal`. Options and what they are otherwise: `device` (`cpu`, or `cuda` or, emulated, `host`,
//! not for `partial` and `weighted`), `seed` 1, `seconds` 10, `iterations` per child or proposals per round (by search), `n` individuals, searches or replicas (as many as the device
//! runs at a time; 2 on the CPU), `size` of an island 2, `distance` 0, `migration` 50, `cycle` 10, `coldest`, `hottest`, `temperature`, `field0`, `field1`, `rounds`.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use tidemill_coloring::device::DeviceGraph;
use tidemill_coloring::experimental::anneal::{Anneal, AnnealOptions};
use tidemill_coloring::experimental::metropolis::{DeviceWalkers, Walkers};
use tidemill_coloring::experimental::temper::{Temper, TemperOptions};
use tidemill_coloring::memetic::{DevicePool, Memetic, MemeticOptions, Pool};
use tidemill_coloring::random::Random;
use tidemill_coloring::tabu::device::DeviceTabu;
use tidemill_coloring::tabu::{Matrix, Partial, Tabu, Weighted};
use tidemill_coloring::{CpuSlots, Graph, read_graph, verify};
use tidemill_gpu::{Device, HostOptions};

struct Job {
    options: HashMap<String, String>,
    start: Instant,
}

impl Job {
    fn number(&self, name: &str, otherwise: f64) -> f64 {
        self.options.get(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }

    fn is_over(&self) -> bool {
        self.start.elapsed() > Duration::from_secs_f64(self.number("seconds", 10.0))
    }

    fn seed(&self) -> u64 {
        self.number("seed", 1.0) as u64
    }

    fn scattered(&self, n: usize, k: usize, stream: u64) -> Vec<u32> {
        let random = Random::new(self.seed(), stream);
        (0..n as u64).map(|vertex| random.below(vertex, k as u32)).collect()
    }
}

/// What a search has found, its conflicts, and how many iterations or proposals it took.
type Found = (Vec<u32>, u32, u64);

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, path, search, k, rest @ ..] = &args[..] else {
        return Err("usage: ladder GRAPH SEARCH K [option=value ...]".into());
    };
    let k: usize = k.parse()?;
    let options = rest.iter().filter_map(|pair| pair.split_once('='));
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let instance = read_graph(Path::new(path))?;
    let graph = instance.graph();
    let matrix = Matrix::new(&graph);
    let mut job = Job { options, start: Instant::now() };
    let on_device = match job.options.get("device").map(String::as_str) {
        Some("cuda") => Some(DeviceGraph::new(&Device::cuda(0)?, &graph)?),
        Some("host") => Some(DeviceGraph::new(&Device::host(HostOptions::default()), &graph)?),
        _ => None,
    };
    let ready = job.start.elapsed();
    // The clock starts when kernels are compiled and the graph is there.
    job.start = Instant::now();
    let (colors, conflicts, steps) = match (search.as_str(), &on_device) {
        ("tabu", None) => tabu(&job, &graph, &matrix, k),
        ("tabu", Some(graph)) => device_tabu(&job, graph, k)?,
        ("partial", None) => partial(&job, &graph, &matrix, k),
        ("weighted", None) => weighted(&job, &graph, k),
        ("memetic", None) => memetic(&job, CpuSlots::new(&graph, &matrix, k), 2, 8_000.0)?,
        ("memetic", Some(graph)) => {
            let pool = DevicePool::new(graph, k, graph.device().stream()?)?;
            let n = pool.n_resident();
            memetic(&job, pool, n, 8_000.0)?
        }
        ("temper", None) => temper(&job, CpuSlots::new(&graph, &matrix, k), 16)?,
        ("temper", Some(graph)) => {
            let walkers = DeviceWalkers::new(graph, k, graph.device().stream()?)?;
            let n = walkers.n_resident(false)?;
            temper(&job, walkers, n)?
        }
        ("anneal", None) => anneal(&job, CpuSlots::new(&graph, &matrix, k), 8)?,
        ("anneal", Some(graph)) => {
            let walkers = DeviceWalkers::new(graph, k, graph.device().stream()?)?;
            let n = walkers.n_resident(true)?;
            anneal(&job, walkers, n)?
        }
        _ => return Err(format!("there is no search `{search}` on this device").into()),
    };
    let seconds = job.start.elapsed().as_secs_f64();
    let is_verified = conflicts == 0 && verify(&instance, &colors).is_ok();
    println!(
        "{} {search} k={k} seed={} device={} | conflicts={conflicts} verified={is_verified} | {seconds:.2} s, {:.3e} it/s, ready after {:.2} s",
        instance.name,
        job.seed(),
        on_device.as_ref().map_or("cpu", |graph| graph.device().info().name.as_str()),
        steps as f64 / seconds,
        ready.as_secs_f64(),
    );
    Ok(())
}

fn tabu(job: &Job, graph: &Graph, matrix: &Matrix, k: usize) -> Found {
    let start = job.scattered(graph.n(), k, 1);
    let mut tabu = Tabu::new(graph, matrix, k, Random::new(job.seed(), 0), &start);
    let outcome = tabu.run(u64::MAX, || job.is_over());
    (tabu.best().to_vec(), outcome.conflicts, outcome.iterations)
}

fn partial(job: &Job, graph: &Graph, matrix: &Matrix, k: usize) -> Found {
    let start = job.scattered(graph.n(), k, 1);
    let mut partial = Partial::new(graph, matrix, k, Random::new(job.seed(), 0), &start);
    let outcome = partial.run(u64::MAX, || job.is_over());
    (partial.best().to_vec(), outcome.conflicts, outcome.iterations)
}

fn weighted(job: &Job, graph: &Graph, k: usize) -> Found {
    let start = job.scattered(graph.n(), k, 1);
    let mut weighted = Weighted::new(graph, k, Random::new(job.seed(), 0), &start);
    let outcome = weighted.run(u64::MAX, || job.is_over());
    (weighted.best().to_vec(), outcome.conflicts, outcome.iterations)
}

fn device_tabu(job: &Job, graph: &DeviceGraph, k: usize) -> Result<Found, Box<dyn Error>> {
    let n = job.number("n", DeviceTabu::n_resident(graph, k)? as f64) as usize;
    let starts: Vec<(Random, Vec<u32>)> = (0..n as u64)
        .map(|i| (Random::new(job.seed(), i * 2), job.scattered(graph.n(), k, i * 2 + 1)))
        .collect();
    let starts: Vec<(Random, &[u32])> =
        starts.iter().map(|(random, colors)| (*random, &colors[..])).collect();
    let mut tabu = DeviceTabu::new(graph, k, graph.device().stream()?, &starts)?;
    loop {
        let outcomes = tabu.run(job.number("iterations", 100_000.0) as u64)?;
        let best = (0..n).min_by_key(|&i| outcomes[i].conflicts).ok_or("no searches")?;
        let conflicts = outcomes[best].conflicts;
        if conflicts == 0 || job.is_over() {
            let steps = outcomes.iter().map(|outcome| outcome.iterations).sum();
            return Ok((tabu.best(best)?, conflicts, steps));
        }
    }
}

fn memetic(job: &Job, pool: impl Pool, n: usize, iterations: f64) -> Result<Found, Box<dyn Error>> {
    let size = job.number("size", 2.0) as usize;
    let n_islands = job.number("n", n as f64) as usize / size;
    let options = MemeticOptions {
        island_size: size,
        cycle: job.number("cycle", 10.0) as u64,
        min_distance: job.number("distance", 0.0) as u32,
        migration_percent: job.number("migration", 50.0) as u32,
        ..MemeticOptions::islands(n_islands, job.number("iterations", iterations) as u64, job.seed())
    };
    let mut memetic = Memetic::new(pool, options, &[])?;
    let (mut steps, mut said) = (0, Instant::now());
    while memetic.best_conflicts() > 0
        && let Some(generation) = memetic.step(&|| job.is_over())?
    {
        steps += generation.iterations;
        if said.elapsed() > Duration::from_secs(2) {
            eprintln!("{generation:?}");
            said = Instant::now();
        }
    }
    eprintln!("{} generations of {n_islands} islands", memetic.n_generations());
    Ok((memetic.best().to_vec(), memetic.best_conflicts(), steps))
}

fn temper(job: &Job, walkers: impl Walkers, n: usize) -> Result<Found, Box<dyn Error>> {
    let options = TemperOptions {
        coldest: job.number("coldest", 0.22),
        hottest: job.number("hottest", 0.36),
        ..TemperOptions::new(
            job.number("n", n as f64) as usize,
            job.number("iterations", 2e5) as u64,
            job.seed(),
        )
    };
    let mut temper = Temper::new(walkers, options, &[])?;
    let (mut steps, mut said) = (0, Instant::now());
    while temper.best_conflicts() > 0 && !job.is_over() {
        let round = temper.step()?;
        steps += round.proposals;
        if said.elapsed() > Duration::from_secs(2) {
            eprintln!("{round:?}");
            said = Instant::now();
        }
    }
    Ok((temper.best().to_vec(), temper.best_conflicts(), steps))
}

fn anneal(job: &Job, walkers: impl Walkers, n: usize) -> Result<Found, Box<dyn Error>> {
    let rounds = job.number("rounds", 200.0) as u64;
    let n_rings = (job.number("n", n as f64) as usize / 8).max(1);
    let options = AnnealOptions {
        temperature: job.number("temperature", 0.35),
        field: [job.number("field0", 2.0), job.number("field1", 0.6)],
        ..AnnealOptions::new(n_rings, rounds, job.number("iterations", 1e5) as u64, job.seed())
    };
    let mut anneal = Anneal::new(walkers, options, &[])?;
    let (mut steps, mut said) = (0, Instant::now());
    while anneal.best_conflicts() > 0 && !job.is_over() {
        let cooling = anneal.step()?;
        steps += cooling.proposals;
        if said.elapsed() > Duration::from_secs(2) {
            eprintln!("{cooling:?}");
            said = Instant::now();
        }
    }
    Ok((anneal.best().to_vec(), anneal.best_conflicts(), steps))
}
