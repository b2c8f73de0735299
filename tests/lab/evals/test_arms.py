from __future__ import annotations

import pytest

from mindchat.config import Config, change
from mindchat.errors import ConfigError, UsageError
from mindchat.lab.evals.arms import decisive, expand, flat, name_of


def test_every_combination_is_an_arm() -> None:
    axes = {"engine.policy": ["mind", "once"], "layout.repeat": ["0", "1", "auto"], "memory.mode": ["on", "off"]}
    arms = expand(Config(), axes, seed=5)
    assert len(arms) == 12
    assert len({arm.name for arm in arms}) == 12
    assert all(arm.config.engine.seed == 5 for arm in arms)
    assert arms[0].name == "mind repeat=0"
    assert "once repeat=auto memory=off" in {arm.name for arm in arms}


def test_equal_combinations_count_once() -> None:
    assert len(expand(Config(), {"engine.policy": ["mind", "mind"]})) == 1


def test_names_do_not_depend_on_the_other_arms_or_on_threads() -> None:
    alone = expand(Config(), {"engine.filter": ["conf"]})[0].name
    among = [arm.name for arm in expand(Config(), {"engine.filter": ["auto", "conf"]})]
    assert alone in among
    assert name_of(change(Config(), "model.threads", "1")) == name_of(Config()) == Config().engine.policy
    assert name_of(change(Config(), "rind.alpha", "0.5")) == f"{Config().engine.policy} rind.alpha=0.5"


def test_bad_axes() -> None:
    with pytest.raises(ConfigError):
        expand(Config(), {"engine.max_hops": ["-1"]})
    with pytest.raises(UsageError):
        expand(Config(), {"engine.policy": []})


@pytest.mark.parametrize("key", ["server.url", "index.milvus"])
def test_an_arm_s_settings_hold_no_credentials(key: str) -> None:
    config = change(Config(), key, "http://ada:hunter2@host:1/v1")
    assert "hunter2" not in repr(flat(config)) + repr(decisive(config))
    assert decisive(config) == decisive(change(Config(), key, "http://eve:other@host:1/v1"))
