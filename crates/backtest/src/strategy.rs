//! A strategy file, read and resolved: parameters, named series, the two sides, execution, objective.

mod execution;
mod identity;
mod param;
mod reader;
mod remark;
mod side;
mod stress;

use std::path::Path;

pub use execution::{
    CostBps, EndOfData, Execution, FillAt, FirstCheck, GapFill, InvalidLevel, KEYS as EXECUTION_KEYS,
    OrderKind, Sizing,
};
pub use param::ParamSpec;
pub use side::{Exit, ExitKind, Label, LabelPart, SideRules};

use crate::diagnostic::{Diagnostic, SourceErrors, nearest};
use crate::document::{self, Table, Value};
use crate::expr::Expr;
use reader::Reader;

/// How the objective of several segments becomes one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduce {
    /// Arithmetic mean of the segments' values.
    Mean,
    /// Median of the segments' values.
    Median,
    /// Smallest of the segments' values.
    Worst,
    /// One value over all trades and the summed daily returns.
    Pooled,
}

/// What a search maximises: a metric or an expression over metrics and parameters.
#[derive(Clone, Debug)]
pub struct Objective {
    /// The expression.
    pub expr: Expr,
    /// The expression as it was written.
    pub text: String,
    /// Whether it was given by the user instead of the file; its positions then point into `text`.
    pub overridden: bool,
}

/// What a trial must meet to be valid.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// The condition.
    pub expr: Expr,
    /// The expression as it was written.
    pub text: String,
}

/// A strategy ready to be compiled.
#[derive(Clone, Debug)]
pub struct Strategy {
    /// Name from the file, or that of the file.
    pub name: String,
    /// The file it came from, or what stands for it.
    pub file: String,
    /// The text of the file.
    pub source: String,
    /// What was laid over it.
    pub overrides: Overrides,
    /// Names of all profiles in the file.
    pub profiles: Vec<String>,
    /// What the search varies; conditions look backwards only.
    pub params: Vec<ParamSpec>,
    /// Named series, in the order written.
    pub lets: Vec<(String, Expr)>,
    /// Rules of the long side.
    pub long: Option<SideRules>,
    /// Rules of the short side.
    pub short: Option<SideRules>,
    /// Modelling choices.
    pub execution: Execution,
    /// What a search maximises; at least one.
    pub objectives: Vec<Objective>,
    /// What a trial must meet to be valid.
    pub require: Option<Requirement>,
    /// How the objectives of several segments become one number each.
    pub reduce: Reduce,
}

/// Overrides by the user when opening a strategy.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Profile to lay over the file.
    pub profile: Option<String>,
    /// `name=value` settings of parameters and execution keys, applied last and in order.
    pub set: Vec<(String, String)>,
    /// Objectives to maximise in place of the file's.
    pub objectives: Vec<String>,
}

/// Sections for portfolios that there are not yet, and what does instead.
const LATER: [(&str, &str); 3] = [
    ("book", "every symbol is traded by itself; `rank` and `share_over` compare them in conditions"),
    ("rebalance", "enter and exit by conditions, for example `rank(roc(close, 20)) > 0.8`"),
    ("symbols", "choose symbols on the command line, by --symbols and --trade"),
];

const SECTIONS: [&str; 9] =
    ["name", "description", "params", "let", "long", "short", "execution", "objective", "profiles"];

impl Strategy {
    /// Reads a file.
    pub fn open(path: &Path, overrides: &Overrides) -> Result<Self, StrategyError> {
        let file = path.display().to_string();
        let source = std::fs::read_to_string(path)
            .map_err(|error| StrategyError::Read { file: file.clone(), error: error.to_string() })?;
        Self::parse(&file, &source, overrides)
    }

    /// Reads a text; `file` is the name shown in messages.
    pub fn parse(file: &str, source: &str, overrides: &Overrides) -> Result<Self, StrategyError> {
        let fail = |diagnostics| StrategyError::Source(SourceErrors::new(file, source, diagnostics));
        let mut root = document::parse(source).map_err(fail)?;
        let mut reader = Reader::default();
        for entry in &root.entries {
            if let Some((_, hint)) = LATER.iter().find(|(section, _)| *section == entry.key) {
                let message = format!("[{}] is not available yet", entry.key);
                reader.error(Diagnostic::new(entry.span.clone(), message).hint(*hint));
            }
        }
        root.entries.retain(|entry| LATER.iter().all(|(section, _)| *section != entry.key));
        reader.known_keys(&root, &SECTIONS, "a strategy file");

        let profiles = root.table("profiles").cloned().unwrap_or_default();
        let mut fixed_by_profile = Table::default();
        if let Some(name) = &overrides.profile {
            let Some(profile) = profiles.table(name) else {
                let names = profiles.entries.iter().map(|entry| entry.key.clone()).collect();
                return Err(StrategyError::UnknownProfile { file: file.into(), name: name.clone(), names });
            };
            reader.known_keys(
                profile,
                &["params", "let", "long", "short", "execution", "objective"],
                "a profile",
            );
            let mut profile = profile.clone();
            for entry in &mut profile.entries {
                if let (true, Value::Table(params)) = (entry.key == "params", &mut entry.item.value) {
                    let (ranges, values) =
                        params.entries.drain(..).partition(|e| matches!(e.item.value, Value::Table(_)));
                    params.entries = ranges;
                    fixed_by_profile.entries = values;
                }
                // A side whose exits a profile lists in the other form must not keep both forms.
                if let (true, Value::Table(over)) =
                    (entry.key == "long" || entry.key == "short", &entry.item.value)
                    && let Some(Value::Table(base)) =
                        root.entries.iter_mut().find(|e| e.key == entry.key).map(|e| &mut e.item.value)
                {
                    side::drop_other_form(base, over);
                }
            }
            root.overlay(&profile);
        }

        let name = match root.get("name").map(|item| &item.value) {
            Some(Value::Text(text, _)) => text.clone(),
            Some(other) => {
                let span = root.get("name").map(|item| item.span.clone()).unwrap_or_default();
                reader.error(Diagnostic::new(span, format!("`name` must be text, found {}", other.kind())));
                String::new()
            }
            None => {
                Path::new(file).file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned())
            }
        };
        let section = |reader: &mut Reader, key: &str| -> Option<Table> {
            let item = root.get(key)?;
            match &item.value {
                Value::Table(table) => Some(table.clone()),
                other => {
                    let message = format!("[{key}] must be a table, found {}", other.kind());
                    reader.error(Diagnostic::new(item.span.clone(), message));
                    None
                }
            }
        };
        let params =
            section(&mut reader, "params").map_or_else(Vec::new, |table| param::read(&mut reader, &table));
        let lets = section(&mut reader, "let").map_or_else(Vec::new, |table| reader.expressions(&table));
        let long = section(&mut reader, "long").and_then(|table| side::read(&mut reader, &table, "long"));
        let short = section(&mut reader, "short").and_then(|table| side::read(&mut reader, &table, "short"));
        let execution = section(&mut reader, "execution")
            .map_or_else(Execution::default, |table| execution::read(&mut reader, &table));
        let objective = section(&mut reader, "objective").unwrap_or_default();
        let (objective, require, reduce) = read_objective(&mut reader, &objective);
        if root.get("long").is_none() && root.get("short").is_none() {
            let end = source.len();
            reader.error(
                Diagnostic::new(end..end, "the strategy has no [long] and no [short] section")
                    .hint("add one with at least `enter = \"…\"`"),
            );
        }
        if !reader.diagnostics.is_empty() {
            return Err(fail(reader.diagnostics));
        }
        let mut strategy = Self {
            name,
            file: file.into(),
            source: source.into(),
            overrides: overrides.clone(),
            profiles: profiles.entries.into_iter().map(|entry| entry.key).collect(),
            params: param::order_by_condition(params, &lets).map_err(|diagnostic| fail(vec![diagnostic]))?,
            lets,
            long,
            short,
            execution,
            objectives: vec![objective],
            require,
            reduce,
        };
        for entry in &fixed_by_profile.entries {
            strategy
                .fix_param(&entry.key, &entry.item.value)
                .map_err(|message| fail(vec![Diagnostic::new(entry.item.span.clone(), message)]))?;
        }
        for (name, value) in &overrides.set {
            strategy.set(name, value)?;
        }
        if !overrides.objectives.is_empty() {
            let objectives = overrides.objectives.iter().map(|text| {
                let expr = crate::expr::parse(text, 0).map_err(|diagnostic| {
                    StrategyError::Source(SourceErrors::new("--objective", text, vec![diagnostic]))
                })?;
                Ok(Objective { expr, text: text.clone(), overridden: true })
            });
            strategy.objectives = objectives.collect::<Result<_, StrategyError>>()?;
        }
        Ok(strategy)
    }

    /// The first objective, by which trials are ranked.
    pub fn objective(&self) -> &Objective {
        &self.objectives[0]
    }

    /// The texts of all objectives.
    pub fn objective_texts(&self) -> Vec<&str> {
        self.objectives.iter().map(|objective| objective.text.as_str()).collect()
    }

    /// Position of a parameter.
    pub fn param(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|param| param.name == name)
    }

    fn fix_param(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let Some(at) = self.param(name) else {
            return Err(format!("`{name}` is not a parameter of this strategy"));
        };
        self.params[at].fixed = Some(self.params[at].encode(value)?);
        Ok(())
    }

    /// Applies one `--set name=value`.
    fn set(&mut self, name: &str, text: &str) -> Result<(), StrategyError> {
        let fail = |message: String| StrategyError::Set { name: name.into(), value: text.into(), message };
        let value = document::parse_value(text)
            .filter(|value| !matches!(value, Value::Date))
            .unwrap_or_else(|| Value::Text(text.trim_matches(['"', '\'']).to_string(), 0));
        let param = name.strip_prefix("params.").unwrap_or(name);
        if self.param(param).is_some() {
            return self.fix_param(param, &value).map_err(fail);
        }
        let key = match name.strip_prefix("execution.").unwrap_or(name) {
            "fee_bp" => "fee_bps",
            "slippage_bp" => "slippage_bps",
            other => other,
        };
        if execution::KEYS.contains(&key) {
            return self.execution.set(key, &value).map_err(fail);
        }
        let known = self.params.iter().map(|param| param.name.as_str()).chain(execution::KEYS);
        let mut message = format!("no parameter or execution key `{name}`");
        match nearest(key, known.clone()) {
            Some(near) => message += &format!("; did you mean `{near}`?"),
            None => {
                let names: Vec<&str> = known.take(40).collect();
                message += &format!("; there are {}", names.join(", "));
            }
        }
        Err(fail(message))
    }
}

impl Strategy {
    /// Values that expressions see for an encoded point: inactive parameters are their defaults, choices of numbers are the numbers.
    pub fn decode(&self, row: &[f64]) -> Vec<f64> {
        let value = |(param, encoded): (&ParamSpec, &f64)| {
            param.decode(if encoded.is_nan() { param.default } else { *encoded })
        };
        self.params.iter().zip(row).map(value).collect()
    }

    /// The expressions of series and sides, in the order written; labels hold no series.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let sides = [&self.long, &self.short].into_iter().flatten();
        self.lets.iter().map(|(_, expr)| expr).chain(sides.flat_map(SideRules::expressions))
    }
}

fn read_objective(reader: &mut Reader, table: &Table) -> (Objective, Option<Requirement>, Reduce) {
    reader.known_keys(table, &["maximize", "require", "reduce"], "[objective]");
    let text_of = |key: &str| match table.get(key).map(|item| &item.value) {
        Some(Value::Text(text, _)) => Some(text.clone()),
        _ => None,
    };
    let text = text_of("maximize").unwrap_or_else(|| "sharpe".into());
    let expr = reader
        .expression(table, "maximize")
        .unwrap_or_else(|| Expr { kind: crate::expr::Kind::Name("sharpe".into()), span: 0..0 });
    let reduce = reader
        .option(
            table,
            "reduce",
            &[
                ("mean", Reduce::Mean),
                ("median", Reduce::Median),
                ("worst", Reduce::Worst),
                ("pooled", Reduce::Pooled),
            ],
        )
        .unwrap_or(Reduce::Mean);
    let require = reader
        .expression(table, "require")
        .map(|expr| Requirement { expr, text: text_of("require").unwrap_or_default() });
    (Objective { expr, text, overridden: false }, require, reduce)
}

/// Why a strategy could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum StrategyError {
    /// The file could not be read.
    #[error("cannot read the strategy file {file}: {error}")]
    Read {
        /// Path as given.
        file: String,
        /// The system's error.
        error: String,
    },
    /// The text has problems.
    #[error(transparent)]
    Source(#[from] SourceErrors),
    /// The profile is not in the file.
    #[error("{file} has no profile `{name}`{}", list_profiles(names))]
    UnknownProfile {
        /// The strategy file.
        file: String,
        /// The profile that the file lacks.
        name: String,
        /// The existing names.
        names: Vec<String>,
    },
    /// The data has closes alone, and the strategy needs more.
    #[error(
        "{file} cannot be tested on {symbol}, whose data has closes alone: {}\n  hint: load data with open, high, low and close; closes alone are enough for rules that read no other price, have no level inside a bar, and fill = \"close\"",
        needs.join("; ")
    )]
    ClosesOnly {
        /// The strategy file.
        file: String,
        /// The first symbol with closes alone.
        symbol: String,
        /// What it needs, and why.
        needs: Vec<String>,
    },
    /// A `--set` cannot be applied.
    #[error("--set {name}={value}: {message}")]
    Set {
        /// Left of the equals sign.
        name: String,
        /// Right of it.
        value: String,
        /// What is wrong.
        message: String,
    },
}

fn list_profiles(names: &[String]) -> String {
    if names.is_empty() { "; it has none".into() } else { format!("; it has {}", names.join(", ")) }
}
