//! Prints how well samplers search, beside recorded results of others.
//!
//! `--suite sequential|small|large --sampler NAME,NAME --seeds 0..5 --lag 0`

use std::error::Error;

use tidemill_search::SamplerKind;
use tidemill_search::quality::Suite;

fn main() -> Result<(), Box<dyn Error>> {
    let mut suites = Suite::ALL.to_vec();
    let mut kinds: Vec<SamplerKind> = SamplerKind::ALL.to_vec();
    let mut seeds = 0..5;
    let mut lag = 0;
    let mut arguments = std::env::args().skip(1);
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--suite" => {
                let suite = Suite::by_name(&value).ok_or_else(|| format!("there is no suite `{value}`"))?;
                suites = vec![suite];
            }
            "--sampler" => kinds = value.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--seeds" => {
                let (from, to) = value.split_once("..").ok_or("--seeds takes a range like 0..5")?;
                seeds = from.parse()?..to.parse()?;
            }
            "--lag" => lag = value.parse()?,
            _ => return Err(format!("there is no option {flag}").into()),
        }
    }
    let seeds: Vec<u64> = seeds.collect();
    for suite in suites {
        println!("{} ({} seeds, lag {lag})", suite.name(), seeds.len());
        println!("{}", suite.compare(&kinds, &seeds, lag)?);
    }
    Ok(())
}
