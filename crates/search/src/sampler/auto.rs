//! The default sampler: a portfolio that gives more trials to the members that find good ones.
//!
//! No sampler is best everywhere. Density models learn most from the first hundreds of trials, evolution on the elites of the
//! study wins by orders of magnitude with a hundred thousand, a surface through the best trials leaps where the objective is
//! smooth, and which operator suits depends on the problem. So several run side by side. A member earns credit when a trial of its own enters the best of the study, and the shares follow what a trial
//! of each member earned lately.
//!
//! Some members are islands: they learn from their own trials alone, and from the few best of the study every now and then. A
//! basin that draws everybody else then leaves them alone for a while.

mod credit;
mod migrant;
mod surface;

use rayon::prelude::*;

use crate::point::Points;
use crate::rng::{Stream, to_unit};
use crate::sampler::fingerprint::Pending;
use crate::sampler::{Differential, Genetic, Nsga2, Sampler, SamplerKnob, SamplerSettings, Sobol, Tpe};
use crate::score::Scores;
use crate::space::{Space, min_columns};
use credit::Credit;
use migrant::Migrants;
use surface::Surface;

/// Place of the sequence that starts a study; it keeps a small share for ever.
const START: u8 = 0;

/// Islands hear of the best of the study after this many batches.
const BATCHES_PER_EXCHANGE: u64 = 8;

/// The increment that spreads trials over members: 2^64 divided by the golden ratio, made odd.
const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

/// Keeps the streams of this sampler apart from those of others under the same seed.
const SEED_TWIST: u64 = 0x506f_7274_666f_6c69;

/// Up to this many trials a study is short, and density models get most of it.
const MAX_SHORT_TRIALS: u64 = 8192;

/// The least number of trials that count as a batch, where time is measured in batches.
const MIN_PERIOD: usize = 32;

/// How a member proposes points.
#[derive(Clone, Copy, Debug)]
enum Method {
    Densities,
    Genetic,
    Differential,
    Surface,
    Fronts,
}

/// A member before it is built.
#[derive(Clone, Copy, Debug)]
struct Role {
    method: Method,
    is_island: bool,
    start: f64,
    floor: f64,
}

const fn role(method: Method, is_island: bool, start: f64, floor: f64) -> Role {
    Role { method, is_island, start, floor }
}

/// Measured best with about a thousand trials.
const SHORT: [Role; 4] = [
    role(Method::Densities, false, 0.58, 0.1),
    role(Method::Surface, false, 0.2, 0.05),
    role(Method::Genetic, false, 0.1, 0.05),
    role(Method::Differential, false, 0.1, 0.05),
];

/// Measured best with a hundred thousand trials. Most is kept for breeding: credit alone would favour whoever descends fastest,
/// into a basin that need not be the best.
const LONG: [Role; 5] = [
    role(Method::Densities, false, 0.08, 0.05),
    role(Method::Surface, false, 0.1, 0.05),
    role(Method::Genetic, true, 0.4, 0.4),
    role(Method::Genetic, false, 0.22, 0.2),
    role(Method::Differential, false, 0.18, 0.1),
];

/// For several objectives.
const FRONTS: [Role; 1] = [role(Method::Fronts, false, 0.98, 0.9)];

/// Splits trials over several samplers by what they have found lately.
///
/// Which member proposes a trial depends on the seed, the number of the trial and the shares as of the last `tell`.
pub struct Auto {
    n_params: usize,
    members: Vec<Member>,
    credit: Credit,
    /// Which member proposed which trial.
    pending: Pending<u8>,
    migrants: Migrants,
    /// What the members have yet to learn. Each does it when it is next asked, and goes on to propose while others still learn.
    news: Option<News>,
    /// Where the sequence that spreads trials over members begins.
    offset: u64,
    n_asked: u64,
    n_told: u64,
    /// Trials between two exchanges.
    exchange_period: u64,
}

/// A sampler of the portfolio.
struct Member {
    sampler: Box<dyn Sampler>,
    /// Learns from its own trials, the start and strangers alone.
    is_island: bool,
    /// Share at the start, and the least it ever gets.
    start: f64,
    floor: f64,
}

/// A batch that was told.
struct News {
    points: Points,
    scores: Scores,
    owners: Vec<Option<u8>>,
    /// The best of the study, at times.
    migrants: Option<(Points, Scores)>,
}

impl Member {
    fn learn(&mut self, member_idx: usize, news: &News) {
        if !self.is_island {
            self.sampler.tell(&news.points, &news.scores);
            return;
        }
        let is_heard =
            |owner: Option<u8>| owner.is_none_or(|owner| owner == START || usize::from(owner) == member_idx);
        // What is not heard is told as invalid: islands breed, and only what is valid breeds.
        let hear = |column: &[f64]| {
            let told = column.iter().zip(&news.owners);
            told.map(|(score, owner)| if is_heard(*owner) { *score } else { f64::NAN }).collect()
        };
        let columns = (0..news.scores.n_objectives()).map(|idx| hear(news.scores.column(idx))).collect();
        self.sampler.tell(&news.points, &Scores::from_columns(news.scores.len(), columns));
        if let Some((points, scores)) = &news.migrants {
            self.sampler.tell(points, scores);
        }
    }
}

impl Auto {
    /// A sampler over a valid space.
    pub fn new(space: &Space, settings: &SamplerSettings) -> Self {
        let members = members(space, settings);
        let period = settings.batch.max(MIN_PERIOD);
        let credit = Credit::new(members.iter().map(|member| (member.start, member.floor)), period);
        Self {
            n_params: space.len(),
            members,
            credit,
            pending: Pending::default(),
            migrants: Migrants::default(),
            news: None,
            offset: Stream::new(settings.seed ^ SEED_TWIST, 0).bits(0),
            n_asked: 0,
            n_told: 0,
            exchange_period: BATCHES_PER_EXCHANGE * period as u64,
        }
    }

    /// The names of the members and the shares of the trials that they get until the next `tell`.
    pub fn shares(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.members.iter().map(|member| member.sampler.name()).zip(self.credit.shares())
    }

    /// Has the members learn what they have yet to.
    fn learn(&mut self) {
        if let Some(news) = self.news.take() {
            let members = self.members.par_iter_mut().enumerate();
            members.for_each(|(member_idx, member)| member.learn(member_idx, &news));
        }
    }

    /// The member that proposes a trial.
    fn owner(&self, trial: u64, bounds: &[f64]) -> u8 {
        if self.n_told == 0 {
            return START;
        }
        // Multiples of the golden ratio fill the interval evenly, so that every few trials are split by the shares.
        let place = to_unit(self.offset.wrapping_add(trial.wrapping_mul(WEYL)));
        bounds.iter().position(|bound| place < *bound).unwrap_or(bounds.len() - 1) as u8
    }
}

/// The members for a space and a budget.
///
/// Several objectives have no single order by which to pay credit, so that one sampler which ranks by fronts serves them alone.
fn members(space: &Space, settings: &SamplerSettings) -> Vec<Member> {
    let start = Member {
        sampler: Box::new(Sobol::new(space, settings.seed)),
        is_island: false,
        start: 0.02,
        floor: 0.02,
    };
    let is_long = settings.n_trials.is_none_or(|n_trials| n_trials > MAX_SHORT_TRIALS);
    let plan: &[Role] = match (settings.n_objectives, is_long) {
        (2.., _) => &FRONTS,
        (_, true) => &LONG,
        (_, false) => &SHORT,
    };
    let member = |(role_idx, role): (usize, &Role)| {
        let settings = SamplerSettings {
            seed: Stream::new(settings.seed ^ SEED_TWIST, 1 + role_idx as u64).bits(0),
            ..*settings
        };
        // A density model explores by how many points it proposes at a time, which is its own share.
        let own_batch = (settings.batch as f64 * role.start).ceil() as usize;
        let sampler: Box<dyn Sampler> = match role.method {
            Method::Densities => Box::new(Tpe::new(space, &SamplerSettings { batch: own_batch, ..settings })),
            Method::Genetic => Box::new(Genetic::new(space, &settings)),
            Method::Differential => Box::new(Differential::new(space, &settings)),
            Method::Surface => Box::new(Surface::new(space, &settings)),
            Method::Fronts => Box::new(Nsga2::new(space, &settings)),
        };
        Member { sampler, is_island: role.is_island, start: role.start, floor: role.floor }
    };
    std::iter::once(start).chain(plan.iter().enumerate().map(member)).collect()
}

impl Sampler for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn ask(&mut self, n: usize) -> Points {
        let mut bounds: Vec<f64> = self.credit.shares().collect();
        for member_idx in 1..bounds.len() {
            bounds[member_idx] += bounds[member_idx - 1];
        }
        let owners: Vec<u8> = (0..n as u64).map(|idx| self.owner(self.n_asked + idx, &bounds)).collect();
        self.n_asked += n as u64;
        // Where the points of each member go.
        let mut places: Vec<Vec<usize>> = vec![Vec::new(); self.members.len()];
        owners.iter().enumerate().for_each(|(place, owner)| places[usize::from(*owner)].push(place));
        let news = self.news.take();
        let propose = |(member_idx, (member, places)): (usize, (&mut Member, &Vec<usize>))| {
            if let Some(news) = &news {
                member.learn(member_idx, news);
            }
            member.sampler.ask(places.len())
        };
        let asked = self.members.par_iter_mut().zip(&places).enumerate();
        let parts: Vec<Points> = asked.map(propose).collect();
        let column = |param_idx: usize| {
            let mut column = vec![f64::NAN; n];
            for (part, places) in parts.iter().zip(&places) {
                places.iter().zip(part.column(param_idx)).for_each(|(place, value)| column[*place] = *value);
            }
            column
        };
        // Values are put in place several times quicker than they are drawn.
        let min_columns = 8 * min_columns(n);
        let columns = (0..self.n_params).into_par_iter().with_min_len(min_columns).map(column).collect();
        // So many small pieces of memory are given back beside what follows.
        rayon::spawn(move || drop(parts));
        let points = Points::from_columns(n, columns);
        self.pending.push(&points, owners);
        points
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        let owners = self.pending.pop(points);
        let column = scores.column(0);
        self.credit.book(&owners, column);
        self.migrants.extend(points, column);
        let n_before = self.n_told;
        self.n_told += points.len() as u64;
        let is_exchange = self.n_told / self.exchange_period > n_before / self.exchange_period;
        let migrants = is_exchange.then(|| self.migrants.points(self.n_params));
        self.learn();
        self.news = Some(News { points: points.clone(), scores: scores.clone(), owners, migrants });
    }

    fn remaining(&self) -> Option<u64> {
        None
    }

    fn retract(&mut self, points: &Points) {
        self.pending.pop(points);
    }

    /// Those of its members; members with the same knob turn it together.
    fn knobs(&self) -> Vec<SamplerKnob> {
        let mut knobs: Vec<SamplerKnob> = Vec::new();
        for knob in self.members.iter().flat_map(|member| member.sampler.knobs()) {
            if !knobs.iter().any(|known| known.name == knob.name) {
                knobs.push(knob);
            }
        }
        knobs
    }

    fn turn(&mut self, knob: &str, value: f64) -> bool {
        // What was told before the knob was turned is learned as it was.
        self.learn();
        let turned = self.members.iter_mut().map(|member| member.sampler.turn(knob, value));
        turned.fold(false, |any, one| any | one)
    }

    fn facts(&self) -> Vec<(String, f64)> {
        let shares = self.shares().enumerate();
        shares.map(|(at, (name, share))| (format!("share_{at}_{name}"), share)).collect()
    }
}
