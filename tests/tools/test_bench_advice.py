# SPDX-License-Identifier: Apache-2.0
"""bench/programs/advice.py finds advice that a program already follows, each rule by each of its sources, and can fail."""

import json
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/programs"))
import advice  # noqa: E402

# A program that trains wide parameters with nothing of what is advised, its own advice included.
PLAIN = {
    "trains": True, "autocast": False, "checkpointing": False, "checkpointing_waits": False, "trained_in_eval": False,
    "loader": True, "expandable_segments": False, "copy_called": False, "cudnn_benchmark": True, "workspace_config": False,
    "small_optimizer_state": False, "parameter_bytes": 1000, "wide_parameter_bytes": 1000, "small_parameter_bytes": 0,
    "trained_parameter_bytes": 1000,
}  # fmt: skip
# id -> facts under which it helps, facts under which it does not
CASES = {
    "checkpointing": [({}, {"checkpointing": True}), ({}, {"checkpointing_waits": True}), ({}, {"trains": False})],
    "train_mode": [({"trained_in_eval": True}, {"trained_in_eval": False})],
    "autocast": [({}, {"autocast": True}), ({}, {"wide_parameter_bytes": 0})],
    "parameters_16_bits": [({}, {"wide_parameter_bytes": 10})],
    "inference_16_bits": [({"trains": False}, {"wide_parameter_bytes": 10})],
    "quantise": [({"trains": False}, {"small_parameter_bytes": 600}), ({"trains": False}, {"trains": True})],
    "quantise_frozen": [({"trained_parameter_bytes": 9}, {"trained_parameter_bytes": 900}),
                        ({"trained_parameter_bytes": 9}, {"trains": False})],
    "shard_model": [({}, {"sharded": True})],
    "shard_early": [({}, {"sharded": True})],
    "small_state": [({}, {"small_optimizer_state": True}), ({}, {"trained_parameter_bytes": 9}), ({}, {"trains": False})],
    "lora": [({}, {"trained_parameter_bytes": 9}), ({}, {"trains": False})],
    "accumulate": [({}, {"trains": False})],
    "smaller_batch": [({"trains": False}, {"trains": True})],
    "fewer_workers": [({}, {"loader": False})],
    "pin_by_loader": [({}, {"loader": False})],
    "expandable": [({}, {"expandable_segments": True})],
    "no_grad": [({}, {"trained_in_eval": True})],
    "no_benchmark": [({}, {"cudnn_benchmark": False})],
    "workspace_config": [({}, {"workspace_config": True})],
    "copy_on_cpu": [({}, {"copy_called": True})],
    "copy_in_16_bits": [({"copy_called": True}, {"copy_called": False}), ({"copy_called": True}, {"wide_parameter_bytes": 0})],
    "chunked_loss": [({}, {"trains": False})],
}  # fmt: skip


def report_of(name, facts, holds=True):
    return {"facts": {**PLAIN, **facts}, "advice": [{"id": name, "holds": holds}]}


def test_each_rule_has_a_case():
    assert set(CASES) == set(advice.RULES)


@pytest.mark.parametrize("name", CASES)
def test_what_the_facts_say_makes_it_void(name):
    for helps, does_not in CASES[name]:
        assert advice.check({"name": "p"}, report_of(name, helps)) == []
        assert advice.check({"name": "p"}, report_of(name, {**helps, **does_not})), does_not


@pytest.mark.parametrize("name", [name for name, rule in advice.RULES.items() if rule[1]])
def test_what_the_row_follows_makes_it_void(name):
    helps = CASES[name][0][0]
    for done in advice.RULES[name][1]:
        assert advice.check({"name": "p", "follows": [done]}, report_of(name, helps)), done


def test_a_condition_that_does_not_hold_and_a_piece_that_nobody_knows():
    assert "does not hold" in advice.check({"name": "p"}, report_of("autocast", {}, holds=False))[0]
    assert "nothing is known" in advice.check({"name": "p"}, report_of("buy_a_card", {}))[0]


def test_words_of_a_build_without_ids():
    report = {"facts": PLAIN, "findings": [{"do": "a smaller batch, or autocast to 16 bits"}]}
    assert advice.check({"name": "p"}, report) == []
    assert advice.check({"name": "p", "follows": ["autocast"]}, report)


def test_every_row_of_the_table_is_known():
    """The ids of src/verdict/advice.c: those with a condition have a rule, all others hang on their finding."""
    text = (ROOT / "src/verdict/advice.c").read_text()
    table = text[text.index("static const struct tn_advice table[]"):]
    rows = re.findall(r'\{ "(\w+)",.*?(\w+) \},\n', table[:table.index("\n};") + 1], flags=re.S)
    assert len(rows) > 40
    assert {name for name, holds in rows if holds != "NULL"} == set(advice.RULES) | advice.BY_OTHERS
    assert {name for name, holds in rows if holds == "NULL"} == advice.BY_FINDING


def test_the_command_reads_results_and_can_fail(tmp_path, capsys):
    """One line a program, without running any; 1 where a piece is void, and where there is nothing to read."""
    assert advice.main(["--results", str(tmp_path)]) == 1 and "nothing is stored" in capsys.readouterr().out
    (tmp_path / "trainer_adamw_torch.json").write_text(json.dumps({"report": report_of("autocast", {})}))
    assert advice.main(["--results", str(tmp_path)]) == 0
    assert re.search(r"^good +trainer_adamw_torch +autocast$", capsys.readouterr().out, re.M)
    (tmp_path / "trainer_adamw_fused.json").write_text(json.dumps({"report": report_of("autocast", {"autocast": True})}))
    assert advice.main(["--results", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert re.search(r"^VOID +trainer_adamw_fused", said, re.M) and "autocast is on" in said and "1 programs with" in said
