"""Which logs of earlier starts `make run` keeps."""

from pathlib import Path

from deploy.demo.run import rotate_log


def test_starts_that_fail_do_not_cost_the_log_of_a_run(tmp_path: Path) -> None:
    log = tmp_path / "backend.log"
    for said in ("oldest", "a day's run", "", "wrong port", "", "", "good"):
        rotate_log(log)
        log.write_text(said, encoding="utf-8")
    kept = [(tmp_path / f"backend.log{end}").read_text(encoding="utf-8") for end in ("", ".1", ".2", ".3", ".4", ".5")]
    assert kept == ["good", "", "", "wrong port", "", "a day's run"]
    assert len(list(tmp_path.iterdir())) == 6
