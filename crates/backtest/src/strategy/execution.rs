//! `[execution]`: every modelling choice is written down, with the realistic one as default.

use serde::Serialize;
use serde::ser::SerializeStruct;

use super::reader::{Reader, number, option_value};
use crate::diagnostic::Diagnostic;
use crate::document::{Table, Value};

/// Where orders of a closed bar fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FillAt {
    /// At the open of the next bar.
    NextOpen,
    /// At the close of the signal bar itself.
    Close,
}

/// The first bar whose high and low are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstCheck {
    /// The bar of the entry.
    EntryBar,
    /// The bar after it.
    NextBar,
}

/// The fill of a level that the bar opened beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GapFill {
    /// The open: what the market gave.
    Open,
    /// The level: what was hoped for.
    Level,
}

/// What happens to an entry one of whose levels lies on the wrong side of the fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InvalidLevel {
    /// The entry is not taken.
    Skip,
    /// The entry is taken.
    Take,
}

/// What happens to a position that is open at the end of its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndOfData {
    /// Closed at the last close, and flagged.
    Close,
    /// Forgotten, as though it had never been opened.
    Discard,
}

/// How much equity a trade commits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizing {
    /// All of it.
    AllIn,
    /// One unit of the asset; equity adds up in price units.
    Unit,
    /// This share of it.
    Fraction(f64),
    /// So much that a loss of one R costs this share, never more than all of it.
    Risk(f64),
}

/// How an order meets the market, which decides what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKind {
    /// At the price there is: entries, signals, time exits, the end of the data.
    Market,
    /// At the market once a level is reached that lies against the position: stops, trails, break-evens, ruin.
    Stop,
    /// At a level in favour of the position: targets.
    Limit,
}

/// Costs per side in hundredths of a percent of the price, by the kind of order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostBps {
    /// Of market orders.
    pub market: f64,
    /// Of stop orders.
    pub stop: f64,
    /// Of limit orders.
    pub limit: f64,
}

impl CostBps {
    /// The same for all kinds.
    pub const fn all(bps: f64) -> Self {
        Self { market: bps, stop: bps, limit: bps }
    }

    /// Each times a factor.
    pub fn times(self, factor: f64) -> Self {
        Self { market: self.market * factor, stop: self.stop * factor, limit: self.limit * factor }
    }

    /// Whether nothing costs anything.
    pub fn is_zero(self) -> bool {
        self == Self::all(0.0)
    }
}

/// One number where all kinds cost the same, as a file may write it.
impl Serialize for CostBps {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { market, stop, limit } = *self;
        if *self == Self::all(market) {
            return serializer.serialize_f64(market);
        }
        let mut table = serializer.serialize_struct("CostBps", 3)?;
        table.serialize_field("market", &market)?;
        table.serialize_field("stop", &stop)?;
        table.serialize_field("limit", &limit)?;
        table.end()
    }
}

/// All modelling choices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Execution {
    /// Fee per side.
    pub fee_bps: CostBps,
    /// Slippage per side.
    pub slippage_bps: CostBps,
    /// How much equity a trade commits.
    pub sizing: Sizing,
    /// Where entries and signal exits fill.
    pub fill: FillAt,
    /// The first bar inspected for exits.
    pub first_check: FirstCheck,
    /// Fill of a stop that the bar opened beyond.
    pub gap_fill_stop: GapFill,
    /// Fill of a target that the bar opened beyond.
    pub gap_fill_target: GapFill,
    /// Entries whose stop is already beyond the fill.
    pub invalid_stop: InvalidLevel,
    /// Entries whose target is already reached by the fill.
    pub invalid_target: InvalidLevel,
    /// Positions open at the end.
    pub end_of_data: EndOfData,
    /// Bars after an exit in which signals do not count.
    pub cooldown: u32,
}

impl Default for Execution {
    fn default() -> Self {
        Self {
            fee_bps: CostBps::all(5.0),
            slippage_bps: CostBps { market: 5.0, stop: 10.0, limit: 0.0 },
            sizing: Sizing::AllIn,
            fill: FillAt::NextOpen,
            first_check: FirstCheck::EntryBar,
            gap_fill_stop: GapFill::Open,
            gap_fill_target: GapFill::Open,
            invalid_stop: InvalidLevel::Skip,
            invalid_target: InvalidLevel::Skip,
            end_of_data: EndOfData::Close,
            cooldown: 0,
        }
    }
}

/// Keys of `[execution]`.
pub const KEYS: [&str; 11] = [
    "fee_bps",
    "slippage_bps",
    "sizing",
    "fill",
    "first_check",
    "gap_fill_stop",
    "gap_fill_target",
    "invalid_stop",
    "invalid_target",
    "end_of_data",
    "cooldown",
];

impl Execution {
    /// Sets one key.
    pub(super) fn set(&mut self, key: &str, value: &Value) -> Result<(), String> {
        let gap = [("open", GapFill::Open), ("level", GapFill::Level)];
        let wrong_side = [("skip", InvalidLevel::Skip), ("take", InvalidLevel::Take)];
        match key {
            "fee_bps" => self.fee_bps = cost(value)?,
            "slippage_bps" => self.slippage_bps = cost(value)?,
            "sizing" => self.sizing = sizing(value)?,
            "fill" => {
                self.fill =
                    option_value(value, &[("next_open", FillAt::NextOpen), ("close", FillAt::Close)])?;
            }
            "first_check" => {
                let options = [("entry_bar", FirstCheck::EntryBar), ("next_bar", FirstCheck::NextBar)];
                self.first_check = option_value(value, &options)?;
            }
            "gap_fill_stop" => self.gap_fill_stop = option_value(value, &gap)?,
            "gap_fill_target" => self.gap_fill_target = option_value(value, &gap)?,
            "invalid_stop" => self.invalid_stop = option_value(value, &wrong_side)?,
            "invalid_target" => self.invalid_target = option_value(value, &wrong_side)?,
            "end_of_data" => {
                let options = [("close", EndOfData::Close), ("discard", EndOfData::Discard)];
                self.end_of_data = option_value(value, &options)?;
            }
            "cooldown" => match value {
                Value::Int(bars) if (0..=1_000_000_000).contains(bars) => self.cooldown = *bars as u32,
                _ => return Err("must be a number of bars, 0 or more".into()),
            },
            _ => return Err("is not an execution key".into()),
        }
        Ok(())
    }
}

/// One number for all kinds of orders, or a table of them; a kind that is not named costs as a market order does.
fn cost(value: &Value) -> Result<CostBps, String> {
    let bps = |value: &Value| match number(value) {
        Some(bps) if (0.0..10_000.0).contains(&bps) => Ok(bps),
        _ => Err("must be basis points, 0 or more and below 10000".to_owned()),
    };
    let Value::Table(table) = value else { return bps(value).map(CostBps::all) };
    let of = |key: &str| table.get(key).map(|item| bps(&item.value)).transpose();
    let unknown =
        table.entries.iter().find(|entry| !["market", "stop", "limit"].contains(&entry.key.as_str()));
    match (of("market")?, unknown) {
        (Some(market), None) => {
            Ok(CostBps { market, stop: of("stop")?.unwrap_or(market), limit: of("limit")?.unwrap_or(market) })
        }
        (_, Some(entry)) => {
            Err(format!("has no kind `{}`; write {{ market = 5, stop = 10, limit = 0 }}", entry.key))
        }
        (None, _) => Err("needs at least `market`: write { market = 5, stop = 10, limit = 0 }".into()),
    }
}

fn sizing(value: &Value) -> Result<Sizing, String> {
    let share = |item: &Value| number(item).filter(|share| *share > 0.0 && *share <= 1.0);
    match value {
        Value::Text(text, _) if text == "all_in" => return Ok(Sizing::AllIn),
        Value::Text(text, _) if text == "unit" => return Ok(Sizing::Unit),
        Value::Table(table) if table.entries.len() == 1 => {
            let entry = &table.entries[0];
            match (entry.key.as_str(), share(&entry.item.value)) {
                ("fraction", Some(share)) => return Ok(Sizing::Fraction(share)),
                ("risk", Some(share)) => return Ok(Sizing::Risk(share)),
                _ => {}
            }
        }
        _ => {}
    }
    Err("must be \"all_in\", \"unit\", { fraction = 0.25 } or { risk = 0.01 }, shares above 0 and up to 1"
        .into())
}

pub(super) fn read(reader: &mut Reader, table: &Table) -> Execution {
    reader.known_keys(table, &KEYS, "[execution]");
    let mut execution = Execution::default();
    for entry in table.entries.iter().filter(|entry| KEYS.contains(&entry.key.as_str())) {
        if let Err(message) = execution.set(&entry.key, &entry.item.value) {
            reader.error(Diagnostic::new(entry.item.span.clone(), format!("`{}` {message}", entry.key)));
        }
    }
    execution
}
