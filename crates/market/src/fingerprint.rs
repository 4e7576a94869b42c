//! A hash of the data, to compare runs.

use sha2::{Digest, Sha256};

use crate::bars::{Bars, Universe};

impl Universe {
    /// SHA-256 over all names and columns, as lower-case hexadecimal.
    ///
    /// Equal universes have equal fingerprints on every platform; NaN counts as one value whatever its bits.
    pub fn fingerprint(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(b"tidemill bars 1");
        hash_len(&mut hasher, self.symbols.len());
        for bars in &self.symbols {
            hash_bars(&mut hasher, bars);
        }
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn hash_bars(hasher: &mut Sha256, bars: &Bars) {
    hash_text(hasher, &bars.symbol);
    hasher.update(bars.timeframe_ms.to_le_bytes());
    hash_len(hasher, bars.len());
    hash_words(hasher, bars.ts_ms.iter().map(|ts_ms| *ts_ms as u64));
    for column in [&bars.open, &bars.high, &bars.low, &bars.close, &bars.volume] {
        hash_words(hasher, column.iter().map(|value| bits(*value)));
    }
    if bars.closes_only {
        hash_text(hasher, "closes only");
    }
    hash_len(hasher, bars.extra.len());
    for (name, column) in &bars.extra {
        hash_text(hasher, name);
        hash_words(hasher, column.iter().map(|value| bits(*value)));
    }
}

fn bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

fn hash_len(hasher: &mut Sha256, len: usize) {
    hasher.update((len as u64).to_le_bytes());
}

fn hash_text(hasher: &mut Sha256, text: &str) {
    hash_len(hasher, text.len());
    hasher.update(text.as_bytes());
}

/// Feeds words in blocks: one call per value would cost more than the hash.
fn hash_words(hasher: &mut Sha256, words: impl Iterator<Item = u64>) {
    let mut block = [0_u8; 8 * 512];
    let mut used = 0;
    for word in words {
        block[used..used + 8].copy_from_slice(&word.to_le_bytes());
        used += 8;
        if used == block.len() {
            hasher.update(block);
            used = 0;
        }
    }
    hasher.update(&block[..used]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_change_changes_the_fingerprint() {
        let base = Universe { symbols: vec![crate::synth::lcg(700)] };
        let print = base.fingerprint();
        assert_eq!(print.len(), 64);
        assert_eq!(print, base.clone().fingerprint());
        let changes: [fn(&mut Bars); 6] = [
            |bars| bars.symbol.push('x'),
            |bars| bars.close[699] += 1e-9,
            |bars| bars.ts_ms[0] -= 1,
            |bars| bars.timeframe_ms += 1,
            |bars| bars.closes_only = true,
            |bars| bars.extra.push(("x".into(), vec![f64::NAN; 700])),
        ];
        for change in changes {
            let mut other = base.clone();
            change(&mut other.symbols[0]);
            assert_ne!(other.fingerprint(), print);
        }
    }

    #[test]
    fn the_bits_of_nan_do_not_matter() {
        let with = |nan: f64| {
            let mut bars = crate::synth::lcg(3);
            bars.extra.push(("x".into(), vec![nan, 1.0, nan]));
            Universe { symbols: vec![bars] }.fingerprint()
        };
        assert_eq!(with(f64::NAN), with(-f64::NAN));
    }
}
