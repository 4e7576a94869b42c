//! Names that other tools use, and what to write here instead.
//!
//! A typo is found by its distance ([`nearest`](crate::diagnostic::nearest)); these words are no typos, and the nearest name would often
//! be a wrong one.

/// Functions as TradingView, TA-Lib, pandas and others call them.
const FUNCTIONS: &[(&[&str], &str)] = &[
    (&["crossover", "cross_over", "crossabove", "cross_above", "crossed_above", "cross_up"], "crosses_above"),
    (
        &["crossunder", "cross_under", "crossbelow", "cross_below", "crossed_below", "cross_down"],
        "crosses_below",
    ),
    (&["mean", "average", "avg", "rolling_mean", "ma"], "sma"),
    (&["ewm", "ewma", "exp_average"], "ema"),
    (&["smma", "wilder", "wilders"], "rma"),
    (&["std", "stdev", "rolling_std", "sd"], "stddev"),
    (&["bbands", "bb", "bollinger_bands"], "bollinger"),
    (&["stoch"], "stochastic"),
    (&["hhv", "rolling_max", "highest_high"], "highest"),
    (&["llv", "rolling_min", "lowest_low"], "lowest"),
    (&["linreg", "linear_regression"], "lsma"),
    (&["mom"], "momentum"),
    (&["sar", "parabolic", "parabolic_sar"], "psar"),
    (&["corr", "correl"], "correlation"),
    (&["linreg_slope", "linearreg_slope"], "slope"),
    (&["percentile", "percentile_linear_interpolation"], "quantile"),
    (&["willr", "wpr", "williams"], "williams_r"),
    (&["kc", "keltner_channel", "keltner_channels"], "keltner"),
    (&["dc", "donchian_channel", "donchian_channels"], "donchian"),
    (&["heikinashi", "ha"], "heikin_ashi"),
    (&["logret", "log_returns", "log", "ln"], "log_return"),
    (&["barssince", "since"], "bars_since"),
    (&["valuewhen"], "value_when"),
    (&["cumsum", "cumulative"], "cum"),
    (&["isnan", "isna", "na", "is_nan"], "is_na"),
    (&["iff", "where", "ifelse", "iif"], "if"),
    (&["clamp"], "clip"),
    (&["true_range", "trange"], "tr"),
];

/// Functions that are no functions here.
const FORMS: &[(&[&str], &str)] = &[
    (&["shift", "lag", "ref", "delay", "prev", "previous"], "the value of a bar before is written `x[1]`"),
    (&["diff", "change"], "a change is written `x - x[1]`"),
    (&["mod", "fmod", "remainder"], "there is no remainder; `hour` and `weekday` give the time of a bar"),
    (&["pow", "power"], "there is no power here; multiply"),
    (
        &["security", "request_security", "htf", "timeframe", "resample"],
        "longer bars are tf('4h', x), another symbol of('BTCUSDT', x)",
    ),
];

/// Metrics as other tools call them.
const METRICS: &[(&[&str], &str)] = &[
    (&["sharpe_ratio", "sharperatio", "sr"], "sharpe"),
    (&["sortino_ratio", "sortinoratio"], "sortino"),
    (&["calmar_ratio", "calmarratio", "mar"], "calmar"),
    (&["return", "returns", "roi", "cum_return", "cumulative_return", "net_return"], "total_return"),
    (&["cagr", "annualized_return", "annualised_return", "ann_return"], "annual_return"),
    (&["pnl", "profit", "net_profit", "netprofit"], "net_pnl"),
    (&["drawdown", "dd", "mdd", "maxdd", "max_dd", "maximum_drawdown"], "max_drawdown"),
    (&["n_trades", "num_trades", "trade_count", "total_trades", "ntrades", "number_of_trades"], "trades"),
    (&["winrate", "win_ratio", "hit_rate", "accuracy", "win_pct"], "win_rate"),
    (&["pf", "profitfactor"], "profit_factor"),
    (&["expectancy_ratio", "avg_trade", "mean_return"], "expectancy"),
    (&["time_in_market", "exposure_time"], "exposure"),
];

/// Keys of a strategy file that other tools have.
const KEYS: &[(&[&str], &str)] = &[
    (
        &["minimize", "minimise", "min"],
        "the search maximises: write maximize = \"-(…)\" to make a value small",
    ),
    (&["maximise", "objective", "metric", "target_metric"], "write maximize = \"…\""),
    (&["constraint", "constraints", "filter"], "write require = \"…\""),
    (&["fee", "fees", "commission"], "write fee_bps = …, in basis points: 5 is 0.05 %"),
    (&["slippage"], "write slippage_bps = …, in basis points: 5 is 0.05 %"),
    (&["stop_loss", "stoploss", "sl"], "write stop = \"…\", a price"),
    (&["take_profit", "takeprofit", "tp"], "write target = \"…\", a price"),
    (&["trailing_stop", "trailing"], "write trail = \"…\""),
    (&["entry", "buy", "entries"], "write enter = \"…\""),
    (&["exits", "sell", "close"], "write exit = \"…\""),
    (&["parameters", "param"], "write [params]"),
];

fn find(table: &[(&'static [&'static str], &'static str)], name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    table.iter().find(|(words, _)| words.contains(&name.as_str())).map(|(_, here)| *here)
}

/// The function that is called so elsewhere.
pub fn function(name: &str) -> Option<&'static str> {
    find(FUNCTIONS, name)
}

/// What to write instead of a function that there is not.
pub fn form(name: &str) -> Option<&'static str> {
    find(FORMS, name)
}

/// The metric that is called so elsewhere.
pub fn metric(name: &str) -> Option<&'static str> {
    find(METRICS, name)
}

/// What to write instead of a key, if what is meant is among the keys known at that place.
pub fn key(name: &str, known: &[&str]) -> Option<&'static str> {
    let is_known = |hint: &str| {
        let words = hint.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.into_iter().any(|word| known.contains(&word))
    };
    find(KEYS, name).filter(|hint| is_known(hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::function::signature;

    #[test]
    fn every_synonym_leads_to_a_name_that_exists_and_is_none_itself() {
        for (words, here) in FUNCTIONS {
            assert!(signature(here).is_some(), "{here}");
            words.iter().for_each(|word| assert!(signature(word).is_none(), "{word}"));
        }
        for (words, _) in FORMS {
            words.iter().for_each(|word| assert!(signature(word).is_none(), "{word}"));
        }
        let is_metric = |name: &str| crate::METRICS.iter().any(|(_, of, _)| *of == name);
        for (words, here) in METRICS {
            assert!(is_metric(here), "{here}");
            words.iter().for_each(|word| assert!(!is_metric(word), "{word}"));
        }
    }

    #[test]
    fn a_key_is_explained_only_where_its_meaning_has_a_place() {
        let objective = ["maximize", "require", "reduce"];
        assert!(key("minimize", &objective).unwrap().contains("maximize = \"-(…)\""));
        assert_eq!(key("fee", &objective), None);
        assert!(key("Fee", &["fee_bps"]).unwrap().contains("fee_bps"));
    }
}
