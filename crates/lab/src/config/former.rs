//! Stored configurations that say the same in another form: those of former versions, and those whose strategy is only written differently.

use tidemill_backtest::expr;
use tidemill_backtest::{Overrides, Strategy};
use tidemill_search::StudyHeader;

use super::{CONFIG_VERSION, StudyConfig};

impl StudyConfig {
    /// Brings a stored configuration into the form of this one, so that only what decides a result is left to differ: where its strategy has
    /// the rules of this one, it takes over this one's text.
    pub(super) fn upgrade(&self, stored: &mut toml::Table) {
        upgrade(stored);
        if let Some(source) = text(stored, "strategy", "source")
            && let Some(own) = &self.strategy.source
            && text(stored, "strategy", "profile") == self.strategy.profile.as_deref()
            && source != own
            && self.has_rules_of(source, own)
        {
            set(stored, "strategy", "source", own.as_str().into());
        }
        if let Some(require) = text(stored, "objective", "require")
            && let Some(own) = &self.objective.require
            && is_same_expression(require, own)
        {
            set(stored, "objective", "require", own.as_str().into());
        }
        let maximize = stored.get("objective").and_then(|objective| objective.get("maximize")?.as_array());
        let own = &self.objective.maximize;
        if let Some(maximize) = maximize
            && maximize.len() == own.len()
            && maximize
                .iter()
                .zip(own)
                .all(|(stored, own)| stored.as_str().is_some_and(|stored| is_same_expression(stored, own)))
        {
            set(stored, "objective", "maximize", own.clone().into());
        }
    }

    /// The header of a stored study in the form of this version and, where it says the same, in the words of this study.
    pub fn worded_alike(&self, header: &StudyHeader) -> StudyHeader {
        let mut header = header.clone();
        self.upgrade(&mut header.config);
        header
    }

    /// Whether two texts are the same strategy under the profile of the study.
    fn has_rules_of(&self, one: &str, other: &str) -> bool {
        let overrides = Overrides { profile: self.strategy.profile.clone(), ..Overrides::default() };
        let parsed = |source| Strategy::parse("strategy.toml", source, &overrides);
        // A text that this version does not understand stays as it is, and is listed as a difference.
        matches!((parsed(one), parsed(other)), (Ok(one), Ok(other)) if one.has_rules_of(&other))
    }
}

fn is_same_expression(one: &str, other: &str) -> bool {
    let parsed = |text| expr::parse(text, 0).map(|expr| expr.unplaced());
    one == other || matches!((parsed(one), parsed(other)), (Ok(one), Ok(other)) if one == other)
}

fn text<'a>(config: &'a toml::Table, section: &str, key: &str) -> Option<&'a str> {
    config.get(section)?.get(key)?.as_str()
}

fn set(config: &mut toml::Table, section: &str, key: &str, value: toml::Value) {
    if let Some(toml::Value::Table(section)) = config.get_mut(section) {
        section.insert(key.into(), value);
    }
}

/// Brings a configuration of a former version into the present form.
pub(super) fn upgrade(config: &mut toml::Table) {
    // Before a study could get more trials, it was planned for those that it has.
    if let Some(trials) = requested(config).and_then(|trials| i64::try_from(trials).ok())
        && let Some(toml::Value::Table(sweep)) = config.get_mut("sweep")
    {
        sweep.entry("plan_trials").or_insert(toml::Value::Integer(trials));
    }
    if config.contains_key("version") {
        return;
    }
    config.insert("version".into(), toml::Value::Integer(CONFIG_VERSION.into()));
    if let Some(toml::Value::Table(objective)) = config.get_mut("objective") {
        let first = objective.remove("maximize");
        let further = match objective.remove("further") {
            Some(toml::Value::Array(further)) => further,
            _ => Vec::new(),
        };
        let all: Vec<toml::Value> = match first {
            Some(toml::Value::Array(all)) => all,
            first => first.into_iter().chain(further).collect(),
        };
        objective.insert("maximize".into(), toml::Value::Array(all));
    }
}

/// The requested number of trials of a configuration.
pub(super) fn requested(config: &toml::Table) -> Option<u64> {
    config.get("sweep")?.get("trials")?.as_integer()?.try_into().ok()
}

pub(super) fn set_requested(config: &mut toml::Table, trials: u64) {
    if let Some(toml::Value::Table(sweep)) = config.get_mut("sweep") {
        sweep.insert("trials".into(), toml::Value::Integer(i64::try_from(trials).unwrap_or(i64::MAX)));
    }
}
