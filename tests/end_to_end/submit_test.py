#!/usr/bin/env python3
"""attnbench submit, status and merge on a real Slurm, which this test starts and stops itself.

    submit_test.py PROGRAM        PROGRAM: build/release/bin/attnbench

A suite of 64 cells in four shards. One task is ended by scancel, the node's daemon is stopped and
started again, and one shard fails twice before it is submitted a third time. At each point `status`
must say what is so, and at the end the merged result has the cells of one run, none twice.
Ends with 77 where no Slurm can be started.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import slurm

# Two at a time: the node has two CPUs, and tasks of this test share it.
SUITE = {
    "name": "sixty_four",
    "task": "kernel",
    "set": {"heads": 1, "head_dim": 8},
    "mechanisms": {
        "latte": {"length": [16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136]},
        "flash": {"length": [16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136]},
        "linear": {"length": [16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136]},
        "window": {"length": [16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136]},
    },
    "measure": {"rounds": 2, "max_samples": 20, "max_seconds": 0.05},
}
WAITING = 300  # seconds: other tests may run beside this one


class Submission:
    def __init__(self, program, cluster, folder):
        self.program, self.cluster, self.folder = program, cluster, folder
        self.suite = folder / "suite.json"
        self.suite.write_text(json.dumps(SUITE))
        self.out = folder / "a submission"

    def call(self, *words, code=0):
        done = subprocess.run([self.program, *map(str, words)], env=self.cluster.environment,
                              cwd=self.folder, capture_output=True, text=True, timeout=600)
        assert done.returncode == code, f"{words}: {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def status(self, code=0):
        return self.call("status", self.out, code=code)

    def states(self, text):
        """The state of each shard, from the table."""
        rows = [line.split() for line in text.splitlines() if line.startswith("  ")]
        return {int(row[0]): row[1] for row in rows if row and row[0].isdigit()}

    def array(self):
        return json.loads((self.out / "submission.json").read_text())["submitted"][-1]["array"]

    def rounds(self, shard):
        journal = self.out / f"shards/{shard}/journal.jsonl"
        return journal.read_text().count('"type":"record"') if journal.exists() else 0

    def wait_for_the_end(self):
        slurm.wait_until(lambda: not self.cluster.queue(), WAITING,
                         "the queue is empty: " + self.cluster.logs())


def refusals(work):
    """What Slurm does not take is said in its words; nothing is left in the queue."""
    text = work.call("submit", work.suite, "--jobs", 2, "--out", work.folder / "nowhere",
                     "--sbatch-option", "partition=nowhere", code=3)
    assert "invalid partition" in text.lower(), text
    text = work.call("submit", work.suite, "--jobs", 2, "--out", work.folder / "dry", "--dry-run")
    assert "nothing was submitted" in text, text
    assert "--exclusive" in (work.folder / "dry/shard.sh").read_text()  # its cells are timed
    assert not work.cluster.queue()


def submit(work):
    broken = work.folder / "broken"
    broken.touch()
    setup = work.folder / "setup.sh"
    setup.write_text(f'[ "${{SLURM_ARRAY_TASK_ID:-}}" != 3 ] || [ ! -e "{broken}" ]\n')
    work.call("submit", work.suite, "--jobs", 4, "--shared", "--no-ceilings", "--setup", setup,
              "--sbatch-option", "job-name=two words", "--out", work.out)
    work.call("submit", work.suite, "--jobs", 4, "--out", work.out, code=2)  # it is there already
    return broken


def disturb(work):
    """Ends task 1 in the middle, and the node's daemon under the others."""
    slurm.wait_until(lambda: work.rounds(1) > 0, WAITING, "shard 1 has begun: " + work.cluster.logs())
    before = work.states(work.status())
    assert before[1] == "running", before
    work.call("submit", "--again", work.out, code=2)  # it is at work
    work.cluster.run(["scancel", f"{work.array()}_1"])
    slurm.wait_until(lambda: f"{work.array()}_1" not in work.cluster.queue(), WAITING, "task 1 has ended")
    state = work.states(work.status())[1]
    assert state in ("interrupted", "killed"), state
    done = work.rounds(1)
    records = [json.loads(line) for line in (work.out / "shards/1/journal.jsonl").read_text().splitlines()]
    bad = [one for one in records if one["type"] == "record" and one["status"] not in ("ok", "unsupported")]
    assert not bad, f"the end of the task was taken for failures of cells: {bad}"
    work.cluster.stop_node()
    work.cluster.start_node()
    work.wait_for_the_end()
    return done


def after_the_first(work):
    text = work.status(code=5)
    states = work.states(text)
    assert states[2] == states[4] == "finished", text
    assert states[3] == "not", text  # "not started"
    assert "submit --again" in text, text
    merged = json.loads((work.out / "merged/result.json").read_text())["attnbench"]
    assert merged["run"]["state"] == "stopped", merged["run"]
    assert len(merged["cells"]) == 64, len(merged["cells"])


def again(work, broken, done):
    text = work.call("submit", "--again", work.out)
    assert "2 shards of 4" in text, text
    work.wait_for_the_end()
    states = work.states(work.status(code=5))
    assert states[1] == "finished" and states[3] == "not", states
    journal = (work.out / "shards/1/journal.jsonl").read_text()
    assert work.rounds(1) >= done and journal.count('"type":"header"') == 2, "it was not resumed"
    broken.unlink()
    text = work.call("submit", "--again", work.out)
    assert "1 shard of 4" in text, text
    work.wait_for_the_end()
    text = work.status()
    assert set(work.states(text).values()) == {"finished"}, text
    assert "nothing was submitted" in work.call("submit", "--again", work.out)


def whole_result(work):
    plan = json.loads(work.call("plan", work.suite, "--json"))[0]
    planned = [cell["id"] for cell in plan["cells"]]
    merged = json.loads((work.out / "merged/result.json").read_text())["attnbench"]
    cells = [cell["id"] for cell in merged["cells"]]
    assert cells == planned and len(set(cells)) == len(cells) >= 60
    assert merged["run"]["state"] == "complete", merged["run"]
    assert merged["run"]["submission"]["exclusive"] is False
    assert {cell["status"] for cell in merged["cells"]} <= {"ok", "disturbed", "unsupported"}


def main():
    reason = slurm.lacking()
    if reason:
        print(f"skipped: a Slurm of its own {reason}")
        return 77
    program = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory(prefix="attnbench-slurm-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        try:
            cluster = slurm.Slurm(folder / "slurm")
            cluster.__enter__()
        except AssertionError as error:
            print(f"skipped: a Slurm of its own does not start here: {error}")
            return 77
        try:
            work = Submission(program, cluster, folder)
            refusals(work)
            broken = submit(work)
            done = disturb(work)
            after_the_first(work)
            again(work, broken, done)
            whole_result(work)
        except BaseException:
            for log in sorted((folder / "a submission/logs").glob("*.log")):
                print(f"--- {log.name}\n{log.read_text()[-1500:]}")
            raise
        finally:
            cluster.__exit__()
    print("4 shards, 64 cells: all there, none twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
