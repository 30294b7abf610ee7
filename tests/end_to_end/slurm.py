"""A Slurm of its own on the loopback interface: one node, own daemons, ports, keys and folders.

    with Slurm(folder) as slurm:
        slurm.run(["sinfo"])

Needs root and Debian's slurmctld, slurmd, slurm-client and munge; `lacking` says what is not here.
Nothing of the system's own Slurm is read or changed.
"""

import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo", "munged")

CONFIGURATION = """\
ClusterName=attnbench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
ReturnToService=2
KillWait=30
SlurmdParameters=config_overrides
SchedulerParameters=defer_batch,sched_interval=1,batch_sched_delay=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def lacking():
    """Why no Slurm can be started here; empty where one can."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [name for name in PROGRAMS if not shutil.which(name, path=search_path())]
    return f"needs {', '.join(missing)}" if missing else ""


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.2)
    raise AssertionError(f"waited {seconds} s in vain until {what}")


class Slurm:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.daemons = {}
        # A cache of its own, no pictures, and threads that do not spin beside other tests.
        self.environment = dict(os.environ, PATH=search_path(), ATTNBENCH_PYTHON="/nowhere",
                                XDG_CACHE_HOME=str(self.folder / "cache"), OMP_WAIT_POLICY="passive",
                                SLURM_CONF=str(self.folder / "slurm.conf"))

    def __enter__(self):
        for name in ("munge", "state", "spool"):
            (self.folder / name).mkdir(parents=True, mode=0o755)
        # munged wants folders that nobody else can write, up to the root.
        key = self.folder / "munge/key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        host = socket.gethostname().split(".")[0]
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=host, folder=self.folder, controller_port=free_port(), node_port=free_port()))
        try:
            self.start("munged", ["--foreground", "--force", f"--key-file={key}",
                                  f"--socket={self.folder}/munge/socket",
                                  f"--pid-file={self.folder}/munge/pid",
                                  f"--log-file={self.folder}/munge/log",
                                  f"--seed-file={self.folder}/munge/seed"])
            wait_until(lambda: (self.folder / "munge/socket").exists(), 60, "munged listens")
            self.start("slurmctld", ["-D", "-f", str(self.folder / "slurm.conf")])
            self.start_node()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.run(["scancel", "--user=root"], check=False)
        self.stop()

    def start(self, name, arguments):
        # Ctrl-C is not for it, but what ends all of the test's session ends it, too.
        log = open(self.folder / f"{name}.out", "ab")
        self.daemons[name] = subprocess.Popen(
            [shutil.which(name, path=search_path()), *arguments], stdout=log, stderr=log,
            stdin=subprocess.DEVNULL, env=self.environment, process_group=0)

    def start_node(self):
        self.start("slurmd", ["-D", "-f", str(self.folder / "slurm.conf")])
        ready = ("idle", "mix", "alloc")
        wait_until(lambda: self.run(["sinfo", "-h", "-o", "%T"], check=False).strip().startswith(ready),
                   120, "the node is up: " + self.logs())

    def stop_node(self):
        """Jobs go on: they belong to slurmstepd."""
        self.end("slurmd")

    def end(self, name):
        process = self.daemons.pop(name, None)
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self):
        for name in ("slurmd", "slurmctld", "munged"):
            self.end(name)

    def logs(self):
        text = ""
        for file in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out")):
            text += f"\n--- {file.name}\n" + file.read_text(errors="replace")[-1500:]
        return text

    def run(self, words, check=True):
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=120)
        if check and done.returncode != 0:
            raise AssertionError(f"{words}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def queue(self):
        """States by task, such as {"12_1": "RUNNING"}."""
        lines = self.run(["squeue", "-h", "-r", "-o", "%i|%T"]).splitlines()
        return dict(line.split("|") for line in lines)
