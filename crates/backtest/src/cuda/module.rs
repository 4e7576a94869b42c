//! The sources of a strategy's modules.

use tidemill_gpu::Source;
use tidemill_market::indicator::device as columns;

use super::data::timeframes;
use super::{code, layout};
use crate::exec::engine::Engine;
use crate::plan::Plan;
use crate::strategy::Strategy;
use crate::tally;

/// Characters of generated code that one module holds, about. Modules are compiled side by side; each costs the same preamble.
const MODULE_CHARACTERS: usize = 24_000;

/// The device code of a strategy: first what walks and books, with as many conditions as it has room for, then the other ones.
pub(super) fn sources(plan: &Plan, strategy: &Strategy, timeframes: &[i64]) -> Vec<Source> {
    let code = code::generate(plan, strategy, timeframes);
    let before = [
        ("point.cu", include_str!("../point.cu")),
        ("frame.cu", include_str!("../exec/frame.cu")),
        ("options.cu", &code.options),
        ("mask.cu", include_str!("../exec/mask.cu")),
        ("recursion.cu", include_str!("../exec/recursion.cu")),
    ];
    let before = [&columns::point_pieces()[..], &before].concat();
    let position = [
        ("strategy.cu", code.walk.as_str()),
        ("cost.cu", include_str!("../exec/cost.cu")),
        ("fill.cu", include_str!("../exec/fill.cu")),
        ("exit.cu", include_str!("../exec/exit.cu")),
        ("position.cu", include_str!("../exec/walk/position.cu")),
    ];
    let walk = [
        ("distinct.cu", include_str!("../exec/distinct.cu")),
        ("walk.cu", include_str!("../exec/walk.cu")),
        ("ledger.cu", include_str!("../exec/ledger.cu")),
        ("book.cu", include_str!("../exec/book.cu")),
        ("pool.cu", include_str!("../exec/engine/pool.cu")),
        ("gather.cu", include_str!("../exec/gather.cu")),
        ("over.cu", include_str!("../exec/over.cu")),
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
        if at > 0 {
            let name = format!("{}-{at}.cu", strategy.name);
            return Source::splice(name, &[&before[..], &own].concat());
        }
        // The first has the text of all structs, so the others need not compare theirs.
        Source::splice(format!("{}.cu", strategy.name), &[&before[..], &position, &walk, &own].concat())
            .comparing("", &[columns::LAYOUTS, tally::LAYOUTS, layout::LAYOUTS])
    };
    let mut sources: Vec<Source> = conditions.iter().enumerate().map(module).collect();
    // Walks by blocks follow positions too, which takes as long to compile as all other walks: beside them.
    let block = [("block.cu", include_str!("../exec/walk/block.cu"))];
    sources.push(Source::splice(
        format!("{}-block.cu", strategy.name),
        &[&before[..], &position, &block].concat(),
    ));
    sources
}

/// The kernels of all columns, the same for every strategy.
pub fn column_source() -> Source {
    columns::source()
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
    use crate::cuda::kernel::module_of;
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
