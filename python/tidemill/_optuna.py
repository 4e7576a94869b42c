"""A study for the tools around Optuna."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.exceptions import ExperimentalWarning
from optuna.trial import TrialState, create_trial

from ._argument import count

if TYPE_CHECKING:
    from ._study import Study


def to_optuna(study: Study, n: int) -> optuna.Study:
    """The `n` best trials of a study, in the order in which they were tried."""
    n = count("n", n)
    strategy = study.strategy
    searched = {name: param for name, param in strategy.params.items() if param["fixed"] is None}
    distributions = {name: _distribution(param["domain"]) for name, param in searched.items()}
    objectives = strategy.objectives
    made = optuna.create_study(directions=["maximize"] * len(objectives), study_name=strategy.name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        made.set_metric_names(objectives)
    trials = study.trials
    columns = trials.to_dict()
    values = [columns["objective"], *(columns[f"objective_{at}"] for at in range(2, len(objectives) + 1))]
    about = {column: trials._raw.metadata(column) for column in columns}
    metrics = [column for column in columns if about[column].get("tidemill.role") == "metric"]
    # A parameter with the name of a metric stands in a column of another name.
    column_of = {
        about[column].get("tidemill.name", column): column
        for column in columns
        if about[column].get("tidemill.role") == "param"
    }
    places = range(len(columns["trial"]))
    best = sorted(places, key=lambda at: (values[0][at] is None, -(values[0][at] or 0.0), at))[:n]
    for at in sorted(best):
        given = {name: columns[column_of[name]][at] for name in searched}
        params = {name: value for name, value in given.items() if value is not None}
        attributes: dict[str, Any] = {name: columns[name][at] for name in metrics}
        is_valid = values[0][at] is not None
        made.add_trial(
            create_trial(
                state=TrialState.COMPLETE if is_valid else TrialState.FAIL,
                params=params,
                distributions={name: distributions[name] for name in params},
                values=[column[at] for column in values] if is_valid else None,
                user_attrs={"trial": columns["trial"][at], **attributes},
            )
        )
    return made


def _distribution(domain: dict[str, Any]) -> BaseDistribution:
    if "int" in domain:
        low, high = domain["int"]
        step = 1 if domain["log"] else domain["step"]
        return IntDistribution(low, high, log=domain["log"], step=step)
    if "float" in domain:
        low, high = domain["float"]
        step = None if domain["log"] else domain["step"]
        return FloatDistribution(low, high, log=domain["log"], step=step)
    return CategoricalDistribution([False, True] if "bool" in domain else domain["choice"])
