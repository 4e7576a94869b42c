//! How many trials a batch has, and how far the sampler lags behind, where the user does not say.

use tidemill_search::SamplerKind;

/// Largest batch: beyond it nothing is shared better.
pub const MAX_BATCH: usize = 1 << 20;

/// Bars that a batch evaluates at most, so that it takes about a third of a second on two cores.
const BARS_PER_BATCH: u64 = 300_000_000;

/// The batch size of a study of this many trials and bars. It follows from the study alone, never from the machine, so that a seed means
/// the same everywhere.
///
/// Samplers that learn do so from batch to batch, and better from small ones; the others only gain from sharing work. With 64 batches and more
/// a larger batch was measured to find as much (docs/search.md), and it fills a device.
pub fn auto_batch(sampler: SamplerKind, trials: u64, n_bars: u64, n_params: usize) -> usize {
    let fits = (BARS_PER_BATCH / n_bars.max(1)).clamp(16, 4096);
    let batch = if sampler.learns() { (trials / 64).clamp(16, 1024).min(fits) } else { fits };
    // Rounded down to a power of two, which suits caches and Sobol sequences.
    let batch = 1 << batch.ilog2();
    // With three under way in place of two, about as many trials are.
    let has_many = sampler.learns() && n_params > FEW_PARAMS;
    if has_many && trials >= STORED_OF_MANY { batch / 4 * 3 } else { batch }
}

/// Trials from which on a search is worth an overlap of proposing and evaluating, and those from which on a device is worth a batch in store.
const OVERLAPPED: u64 = 2048;
const STORED: u64 = 8192;

/// With more free parameters than this every batch counts: a batch is in store in long studies alone, and batches are smaller there.
const FEW_PARAMS: usize = 32;
const STORED_OF_MANY: u64 = 65_536;

/// By how many batches the sampler lags behind in a study of this many trials and free parameters. It follows from the study alone, as the
/// batch does.
///
/// A small study takes no time worth saving, and the batch before is a large part of what it knows. In a large one it is a small part, and a
/// device would wait for the sampler; with more of them under way it does not wait for results to be fetched and points to be brought either
/// (docs/search.md).
///
/// Of three that a device has, one waits for the others; a fourth one is proposed meanwhile.
pub fn auto_lag(sampler: SamplerKind, trials: u64, n_params: usize) -> usize {
    if !sampler.learns() {
        return 2;
    }
    match trials {
        ..OVERLAPPED => 0,
        STORED.. if n_params <= FEW_PARAMS => 3,
        STORED_OF_MANY.. => 2,
        _ => 1,
    }
}

/// The most trials of a batch that tuning goes to: a sampler that learns still learns a few dozen times.
pub fn most_batch(sampler: SamplerKind, trials: u64) -> usize {
    let times = if sampler.learns() { 64 } else { 8 };
    usize::try_from(trials / times).unwrap_or(MAX_BATCH).clamp(16, 65_536)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_study_waits_for_every_result_and_a_large_one_for_none() {
        assert_eq!(auto_lag(SamplerKind::Auto, 512, 5), 0);
        assert_eq!(auto_lag(SamplerKind::Tpe, OVERLAPPED - 1, 5), 0);
        assert_eq!(auto_lag(SamplerKind::Tpe, OVERLAPPED, 5), 1);
        assert_eq!(auto_lag(SamplerKind::Tpe, STORED, 5), 3);
        // Many parameters are learnt for long.
        assert_eq!(auto_lag(SamplerKind::Tpe, STORED_OF_MANY - 1, 142), 1);
        assert_eq!(auto_lag(SamplerKind::Tpe, STORED_OF_MANY, 142), 2);
        // What does not learn has nothing to wait for.
        assert_eq!(auto_lag(SamplerKind::Random, 16, 142), 2);
    }

    #[test]
    fn batches_follow_from_the_study() {
        let batch = |trials, n_params| auto_batch(SamplerKind::Auto, trials, 60_000, n_params);
        assert_eq!([batch(100, 5), batch(512, 5), batch(20_000, 5), batch(100_000, 5)], [16, 16, 256, 1024]);
        // Long studies of many parameters have three under way.
        assert_eq!([batch(STORED_OF_MANY - 1, 142), batch(STORED_OF_MANY, 142)], [512, 768]);
        assert_eq!(auto_batch(SamplerKind::Random, 100_000, 60_000, 142), 4096);
        // Over many bars they are smaller.
        assert_eq!(auto_batch(SamplerKind::Auto, 100_000, 2_600_000, 5), 64);
    }
}
