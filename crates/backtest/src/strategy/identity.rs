//! When two texts are the same strategy: comments, layout and the places of things in the file do not count.

use crate::expr::Expr;
use crate::strategy::{Exit, Label, LabelPart, ParamSpec, SideRules, Strategy};

/// What a strategy does, without where it is written.
#[derive(PartialEq)]
struct Rules {
    params: Vec<ParamSpec>,
    lets: Vec<(String, Expr)>,
    long: Option<SideRules>,
    short: Option<SideRules>,
}

impl Strategy {
    /// Whether both have the same parameters, series and sides, in the same order. The order of parameters counts, because a search proposes
    /// their values in this order. Name, execution and objectives are compared by those who may override them.
    pub fn has_rules_of(&self, other: &Self) -> bool {
        self.rules() == other.rules()
    }

    fn rules(&self) -> Rules {
        let param = |spec: &ParamSpec| ParamSpec {
            when: spec.when.as_ref().map(Expr::unplaced),
            span: 0..0,
            ..spec.clone()
        };
        Rules {
            params: self.params.iter().map(param).collect(),
            lets: self.lets.iter().map(|(name, expr)| (name.clone(), expr.unplaced())).collect(),
            long: self.long.as_ref().map(unplaced_side),
            short: self.short.as_ref().map(unplaced_side),
        }
    }
}

fn unplaced_side(side: &SideRules) -> SideRules {
    let exit = |exit: &Exit| Exit {
        kind: exit.kind,
        value: exit.value.unplaced(),
        when: exit.when.as_ref().map(Expr::unplaced),
        label: unplaced_label(&exit.label),
        gap_label: unplaced_label(&exit.gap_label),
    };
    SideRules {
        enter: side.enter.unplaced(),
        exits: side.exits.iter().map(exit).collect(),
        risk: side.risk.as_ref().map(Expr::unplaced),
        size: side.size.as_ref().map(Expr::unplaced),
    }
}

fn unplaced_label(label: &Label) -> Label {
    let part = |part: &LabelPart| match part {
        LabelPart::Text(text) => LabelPart::Text(text.clone()),
        LabelPart::Value(expr, decimals) => LabelPart::Value(expr.unplaced(), *decimals),
    };
    Label { parts: label.parts.iter().map(part).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::Overrides;

    const TEXT: &str = r#"
name = "cross"
[params]
fast = { int = [2, 20], default = 5 }
slow = { int = [20, 90], default = 30 }
wide = { float = [1.0, 3.0], default = 2.0, when = "fast > 3" }
[let]
gap = "ema(close, fast) - ema(close, slow)"
[long]
enter = "gap > 0 and gap[1] <= 0"
stop = "low - wide * atr(14)"
max_hold = 30
"#;

    fn is_same(text: &str) -> bool {
        let parse = |text: &str| Strategy::parse("a.toml", text, &Overrides::default()).unwrap();
        parse(TEXT).has_rules_of(&parse(text))
    }

    #[test]
    fn comments_layout_and_spaces_in_expressions_do_not_count() {
        assert!(is_same(TEXT));
        assert!(is_same(&format!("# why\n{}", TEXT.replace('\n', "\n\n# so\n"))));
        assert!(is_same(&TEXT.replace("gap > 0 and", "  gap>0   and")));
        assert!(is_same(&TEXT.replace("{ int = [2, 20], default = 5 }", "{default=5,int=[2,20]}")));
        assert!(is_same(&TEXT.replace("low - wide * atr(14)", "low - (wide * atr(14))")));
    }

    #[test]
    fn every_rule_and_the_order_of_parameters_count() {
        let fast = "fast = { int = [2, 20], default = 5 }\n";
        let slow = "slow = { int = [20, 90], default = 30 }\n";
        for (from, to) in [
            ("[2, 20]", "[2, 21]"),
            ("default = 5", "default = 6"),
            ("fast > 3", "fast > 4"),
            ("gap[1]", "gap[2]"),
            ("atr(14)", "atr(15)"),
            ("max_hold = 30", "max_hold = 31"),
            ("low - wide * atr(14)", "(low - wide) * atr(14)"),
            ("max_hold = 30", "max_hold = 30\nrisk = \"atr(5)\""),
            (&format!("{fast}{slow}"), &format!("{slow}{fast}")),
        ] {
            let changed = TEXT.replace(from, to);
            assert_ne!(changed, TEXT, "{from}");
            assert!(!is_same(&changed), "{from} → {to}");
        }
    }
}
