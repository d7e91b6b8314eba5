"""Foreign judges of prefix caches read an export of the real pair; `make test-cache-judges` installs and runs them.

kvlint asks for a model's tokenizer and chat template: both are made here, of bytes, so that nothing is fetched.
"""

import csv
import json
import os
import subprocess
from pathlib import Path

import orjson
import pytest

from tests.e2e.ballast_command import ballast, environ_of, lines_of
from tests.e2e.conftest import Pairs
from tests.e2e.pair import Pair
from tests.e2e.turns import bare_client, file_search, new_base, new_conversation, search, turn
from tests.fakes.model_server import FakeModelControl, Reply
from tests.house.sources import ROOT

ENVIRONMENT = ROOT / "var" / "cache-judges-environment" / "bin"
USER = "judged"
ONE_POINT = 0.01
CALLS = 200
TALK = (
    "The keeper of the pier boils {} kettles before the first ferry leaves, writes each into the book of the house, "
    "and hands the book to whoever has the next watch, so that nobody boils a kettle twice. "
)
MAKE_TOKENIZER = """\
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
made = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
template = (
    "{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
)
PreTrainedTokenizerFast(tokenizer_object=made, chat_template=template).save_pretrained(sys.argv[1])
"""


def run(directory: Path, program: str, *arguments: str) -> str:
    """Run a program of the judges, which may leave files where it runs."""
    environ = {"PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1", "COLUMNS": "160"}
    done = subprocess.run(
        [str(ENVIRONMENT / program), *arguments],
        cwd=directory,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
async def talked(pairs: Pairs, small_pair: Pair, small_model: FakeModelControl) -> Pair:
    """A pair with six conversations of four turns each, which search, bind another base, and go on by turns."""
    asks = [Reply(tool_calls=(search("kettle", f"call_{number}"),)) for number in range(CALLS)]
    replies = [ask if number % 3 == 0 else Reply(text=(TALK.format(number),)) for number, ask in enumerate(asks)]
    await small_model.script(*replies)
    async with bare_client(small_pair, USER) as client:
        bases = [await new_base(client, name, kettles=TALK.format(name) * 20) for name in ("Pier", "Harbour")]
        conversations = [await new_conversation(client) for _ in range(6)]
        for number in range(4):
            for conversation in conversations:
                scope = bases[:1] if number < 2 else bases
                question = TALK.format(number) + "And what then?"
                await turn(client, question, tools=[file_search(*scope)], conversation=conversation)
    return small_pair


def exported(pair: Pair, folder: Path, form: str) -> Path:
    written = ballast(environ_of(pair, USER, folder), "cache", "export", "--form", form)
    assert written.returncode == 0, written.stderr
    log = folder / f"{form}.jsonl"
    # a judge reads calls in the order in which they were made
    lines = sorted(lines_of(written.stdout), key=lambda line: line["timestamp"])
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return log


async def test_kvlint_finds_nothing_above_low_and_a_hit_for_all_that_was_sent_before(
    talked: Pair, tmp_path: Path
) -> None:
    folded, report = exported(talked, tmp_path, "folded"), tmp_path / "kvlint.json"
    run(tmp_path, "python", "-c", MAKE_TOKENIZER, str(tmp_path / "tokenizer"))
    options = ("--model", str(tmp_path / "tokenizer"), "--fail-on", "medium", "--json", str(report))
    print(run(tmp_path, "kvlint", "lint", str(folded), *options))
    (vllm, *_) = orjson.loads(report.read_bytes())["sims"]
    conversation_of = {line["request_id"]: line["conversation"] for line in lines_of(folded.read_text())}
    sent: dict[str, int] = {}
    possible = cached = total = 0
    for call in vllm["per_request"]:
        conversation = conversation_of[call["request_id"]]
        possible += sent.get(conversation, 0)
        cached += min(call["cached_tokens"], sent.get(conversation, 0))
        total += call["prompt_tokens"]
        sent[conversation] = call["prompt_tokens"]
    print(f"{cached / total:.1%} of the tokens hit what their conversation had sent, {possible / total:.1%} can")
    assert (possible - cached) / total < ONE_POINT


async def test_a_cache_of_bounded_size_reaches_the_ceiling_of_llmtrafficlens(talked: Pair, tmp_path: Path) -> None:
    table = tmp_path / "gateway.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["timestamp", "request_json"])
        for call in lines_of(exported(talked, tmp_path, "openai").read_text()):
            body = {name: call[name] for name in ("model", "messages", "tools")}
            writer.writerow([call["timestamp"], json.dumps(body)])
    print(run(tmp_path, "llmtrafficlens", "profile", str(table), "-o", str(tmp_path / "report"), "--warmup", "0"))
    curve = orjson.loads((tmp_path / "report.json").read_bytes())["reuse_potential"]["curve"]
    at = {size["capacity_tokens"]: size["hit_rate"] for size in curve}
    assert at[65536] > curve[-1]["hit_rate"] - ONE_POINT


async def test_our_own_check_finds_that_each_call_extends_the_one_before(talked: Pair, tmp_path: Path) -> None:
    log = exported(talked, tmp_path, "openai")
    checked = ballast(environ_of(talked, USER, tmp_path), "cache", "verify", str(log), "--json")
    (report,) = lines_of(checked.stdout)
    assert (checked.returncode, report["kept_share"], report["paths"]) == (0, 1.0, {})
