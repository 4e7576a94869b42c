//! The same figures of one study, wherever they are shown: terminal, JSON, the report of its winner, its own page,
//! the dashboard.

use serde_json::Value;

use crate::dash::Dash;
use crate::support::Place;

const PARTS: [(&str, &str); 4] = [
    ("in_sample", "in sample"),
    ("out_of_sample", "out of sample"),
    ("holdout", "holdout"),
    ("whole", "whole period"),
];

/// Labels with their texts by part, in the order of [`PARTS`].
type Figures = Vec<(String, Vec<String>)>;

/// The table by part of a text that was printed.
fn printed(stdout: &str) -> Figures {
    let mut lines =
        stdout.lines().skip_while(|line| !line.starts_with("trial ") || !line.contains(PARTS[3].1));
    let header = lines.next().unwrap_or_else(|| panic!("there is no table by part: {stdout}"));
    for (_, label) in PARTS {
        assert!(header.contains(label), "{header}");
    }
    let rows = lines.skip(3).take_while(|line| !line.is_empty() && !line.starts_with("The best trial"));
    rows.map(|line| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let texts = words.split_off(words.len() - PARTS.len());
        (words.join(" "), texts.into_iter().map(str::to_owned).collect())
    })
    .collect()
}

/// The table by part inside a page.
fn embedded(page: &str) -> Figures {
    let json = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    drawn(&serde_json::from_str::<Value>(json).unwrap()["parts"])
}

/// A table by part, as pages draw it.
fn drawn(table: &Value) -> Figures {
    let columns: Vec<&str> =
        table["columns"].as_array().unwrap().iter().map(|column| column["label"].as_str().unwrap()).collect();
    assert_eq!(columns, PARTS.map(|(_, label)| label));
    let texts = |row: &Value| -> Vec<String> {
        row["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    table["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["label"].as_str().unwrap().to_owned(), texts(row)))
        .collect()
}

/// Figures of a JSON document `parts` beside the label that they are shown under.
fn stored(parts: &Value) -> Figures {
    let rows = [
        ("Return [%]", "metrics", "total_return"),
        ("Return of buy and hold [%]", "market", "benchmark_return"),
        ("Excess Return [%]", "market", "excess_return"),
        ("Sharpe Ratio", "metrics", "sharpe"),
        ("Max. Drawdown [%]", "metrics", "max_drawdown"),
        ("# Trades", "metrics", "trades"),
        ("Beta", "market", "beta"),
        ("Alpha, a year [%]", "market", "alpha"),
        ("t of Alpha", "market", "t_alpha"),
    ];
    let texts = |label: &str, of: &str, key: &str| {
        let value = |part: &str| parts[part][of][key].as_f64();
        PARTS.iter().map(|(part, _)| tidemill_lab::number::metric(label, value(part))).collect()
    };
    rows.iter().map(|(label, of, key)| ((*label).to_owned(), texts(label, of, key))).collect()
}

#[test]
fn the_figures_of_a_winner_are_the_same_everywhere() {
    for n_symbols in [1, 2] {
        let place = Place::new();
        place.ok(&format!(
            "data generate --kind regime --bars 6000 --timeframe 1h --symbols {n_symbols} --out data.parquet"
        ));
        let parts = "--split 0.6 --holdout 2020-07-01";
        let line =
            format!("sweep zscore-dip --data data.parquet --trials 200 --device cpu {parts} --out study");
        let shown = printed(&place.ok(&line).stdout);
        assert!(
            shown.iter().any(|(_, texts)| texts.iter().collect::<std::collections::BTreeSet<_>>().len() == 4)
        );
        // The same command again judges the same study again.
        let answer = place.json(&line);
        assert_eq!(stored(&answer["parts"]), shown, "sweep --json");
        assert_eq!(stored(&answer["holding_up"]["winners"][0]["parts"]), shown, "the verdict");

        assert_eq!(printed(&place.ok("study show study --html study.html").stdout), shown, "study show");
        assert_eq!(embedded(&place.read("study.html")), shown, "the page of the study");
        assert_eq!(printed(&place.ok("study best study").stdout), shown, "study best");
        let best = place.json("study best study");
        assert_eq!(stored(&best["best"][0]["parts"]), shown, "study best --json");

        let trial = answer["best"][0]["trial"].as_u64().unwrap();
        assert_eq!(best["best"][0]["trial"], trial);
        let report = place.json(&format!("backtest --trial study:{trial} --report report.html"));
        assert_eq!(stored(&report["parts"]), shown, "backtest --json");
        let verdict = best["best"][0]["verdict"].as_str().unwrap();
        assert!(verdict.contains(&format!("trial {trial} survives")), "{verdict}");
        assert_eq!(report["verdict"], verdict);
        assert_eq!(embedded(&place.read("report.html")), shown, "the report");
        let text = place.ok(&format!("backtest --trial study:{trial}")).stdout;
        for (label, texts) in &shown {
            let row = text.lines().find(|row| row.starts_with(&format!("{label}  "))).unwrap();
            let words: Vec<&str> = row[label.len()..].split_whitespace().collect();
            assert_eq!(words[..4], texts[..], "{label} of backtest");
        }
        let summary = Dash::start(&place, &["study"]).ok("/api/runs/study/summary");
        assert_eq!(summary["best"]["trial"], trial);
        assert_eq!(drawn(&summary["best"]["parts"]), shown, "the dashboard");
    }
}
