//! The modules of a strategy: what their sources are, and which of them holds which kernel.

use std::collections::HashMap;

use tidemill_gpu::{Device, GpuError, Kernel, Module, Source};
use tidemill_market::indicator::device as columns;

use super::{code, timeframes};
use crate::exec::engine::Engine;
use crate::plan::Plan;
use crate::strategy::Strategy;

/// The kernels of a strategy and of the columns, by name.
///
/// A driver is never asked for a kernel that a module does not hold: tools that watch for failed calls would report each of them.
pub(super) struct Kernels {
    modules: Vec<Module>,
    /// The first module that has a kernel of this name.
    module_of: HashMap<String, usize>,
}

impl Kernels {
    /// Compiles and loads all modules of a strategy, and that of the columns.
    pub(super) fn load(
        device: &Device,
        plan: &Plan,
        strategy: &Strategy,
        timeframes: &[i64],
    ) -> Result<Self, GpuError> {
        let mut sources = sources(plan, strategy, timeframes);
        sources.push(column_source());
        Ok(Self { modules: device.load_all(&sources)?, module_of: module_of(&sources) })
    }

    /// The kernel of this name.
    pub(super) fn get(&self, name: &str) -> Result<Kernel, GpuError> {
        match self.module_of.get(name) {
            Some(module) => self.modules[*module].kernel(name),
            None => Err(GpuError::NoKernel { module: "none".into(), kernel: name.into() }),
        }
    }
}

/// Which of some sources is the first that has a kernel of each name.
fn module_of(sources: &[Source]) -> HashMap<String, usize> {
    let mut out = HashMap::new();
    for (module, source) in sources.iter().enumerate() {
        for kernel in source.kernels() {
            out.entry(kernel.to_owned()).or_insert(module);
        }
    }
    out
}

/// Characters of generated code that one module holds, about. Modules are compiled side by side; each costs the same preamble.
const MODULE_CHARACTERS: usize = 24_000;

/// The device code of a strategy: first what walks and books, with as many conditions as it has room for, then the other ones.
fn sources(plan: &Plan, strategy: &Strategy, timeframes: &[i64]) -> Vec<Source> {
    let code = code::generate(plan, strategy, timeframes);
    let before = [
        ("point.cu", include_str!("../point.cu")),
        ("frame.cu", include_str!("../exec/frame.cu")),
        ("mask.cu", include_str!("../exec/mask.cu")),
        ("options.cu", &code.options),
    ];
    let before = [&columns::point_pieces()[..], &before].concat();
    let walk = [
        ("distinct.cu", include_str!("../exec/distinct.cu")),
        ("strategy.cu", &code.walk),
        ("cost.cu", include_str!("../exec/cost.cu")),
        ("fill.cu", include_str!("../exec/fill.cu")),
        ("exit.cu", include_str!("../exec/exit.cu")),
        ("walk.cu", include_str!("../exec/walk.cu")),
        ("book.cu", include_str!("../exec/book.cu")),
        ("pool.cu", include_str!("../exec/engine/pool.cu")),
        ("scalars.cu", &code.scalars),
    ];
    let mut modules = vec![code.walk.clone()];
    let mut conditions = vec![String::new()];
    for part in &code.parts {
        if modules[modules.len() - 1].len() + part.len() > MODULE_CHARACTERS {
            modules.push(String::new());
            conditions.push(String::new());
        }
        let last = modules.len() - 1;
        modules[last].push_str(part);
        conditions[last].push_str(part);
    }
    let module = |(at, conditions): (usize, &String)| {
        let own = [("conditions.cu", conditions.as_str())];
        let pieces = if at == 0 { [&before[..], &walk, &own].concat() } else { [&before[..], &own].concat() };
        let number = if at == 0 { String::new() } else { format!("-{at}") };
        Source::splice(format!("{}{number}.cu", strategy.name), &pieces)
    };
    conditions.iter().enumerate().map(module).collect()
}

/// The kernels of all columns, the same for every strategy.
pub fn column_source() -> Source {
    Source::splice("indicators.cu", &columns::pieces())
}

/// The device code of a strategy over data, for those who want to compile or read it.
pub fn device_sources(engine: &Engine<'_>, strategy: &Strategy) -> Vec<Source> {
    let plan = Plan::with_all_slots(&engine.program);
    sources(&plan, strategy, &timeframes(engine, &plan))
}

#[cfg(test)]
mod tests {
    use tidemill_market::Universe;
    use tidemill_market::synth::lcg;

    use super::*;
    use crate::exec::engine::EngineOptions;
    use crate::segment::Layout;
    use crate::strategy::Overrides;

    #[test]
    fn a_kernel_is_sought_in_the_module_that_defines_it() {
        let text = "name = \"x\"\n[long]\nenter = \"close > sma(close, 5)\"\n[[long.exits]]\nkind = \"time\"\nbars = \"3\"\n";
        let strategy = Strategy::parse("x.toml", text, &Overrides::default()).unwrap();
        let universe = Universe { symbols: vec![lcg(50)] };
        let segments = Layout::default().segments(&universe).unwrap();
        let engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
        let mut sources = device_sources(&engine, &strategy);
        let columns = sources.len();
        sources.push(column_source());
        let module_of = module_of(&sources);
        for name in ["scalars", "distinct_insert", "group_begin", "condition_0", "walk", "book"] {
            assert_eq!(module_of.get(name), Some(&0), "{name}");
        }
        // The strategy's modules have its text too, but leave the kernel out.
        for name in ["sma", "prefix_sum_ends", "highest", "swing_low"] {
            assert!(sources[0].text.contains(&format!("KERNEL({name},")), "{name}");
            assert_eq!(module_of.get(name), Some(&columns), "{name}");
        }
        assert_eq!(module_of.get("condition_1"), None);
    }
}
