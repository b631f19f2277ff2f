"""A ledger that is correct by construction, used by many clients at once, on simulated time.

Every effect takes place at a known instant, applied to the law itself; the stamps that clients see
lie around it. So a history made here *has* an explanation, whatever the judge may think. What a
correct ledger may choose (victims by count, eviction by age at any time, a refused submit that
sweeps) is drawn at random. A `fault` makes the ledger wrong in one named way.
"""

import heapq
import math
import random
from dataclasses import dataclass, field
from itertools import count

from counterfoil_conformance.oracle.history import Call
from counterfoil_conformance.oracle.setting import Setting
from counterfoil_spec import ledger as law
from counterfoil_spec.ledger import Limits, State


@dataclass
class Plan:
    """What to simulate; times in µs."""

    limits: Limits
    clients: int = 4
    calls: int = 60
    wire: bool = False
    visible: bool = True
    runners: int = 2
    latency_us: int = 2_000
    think_us: int = 3_000
    grain_us: int = 1
    victims: str = "completion"
    refused_sweeps: bool = False
    early_age: bool = False
    lose: float = 0.0
    clocks: int = 1
    fault: str = ""
    waits_ms: tuple[int, ...] = (1, 5, 20)


@dataclass
class World:
    """The simulated ledger, its clients, and the history they record."""

    plan: Plan
    rng: random.Random
    now: float = 0.0
    ledger: law.Ledger = None
    calls: list = field(default_factory=list)
    agenda: list = field(default_factory=list)
    ids: list = field(default_factory=list)
    waiters: dict = field(default_factory=dict)
    history: dict = field(default_factory=dict)
    broken: set = field(default_factory=set)
    made: int = 0

    def __post_init__(self):
        self.ledger = law.empty_ledger(self.plan.limits)
        self._order = count()
        self.used = []
        self.ghosts = {}

    # time

    def at(self, when, what):
        heapq.heappush(self.agenda, (when, next(self._order), what))

    def run(self):
        for k in range(self.plan.clients):
            self.at(self.rng.uniform(0, self.plan.think_us), Client(self, f"client-{k}").step)
        for k in range(self.plan.runners):
            role = Runner(self, f"runner-{k}")
            self.at(self.rng.uniform(0, self.plan.think_us), role.step)
        while self.agenda:
            self.now, _, what = heapq.heappop(self.agenda)
            self.ledger = self.ledger._replace(now=int(self.now // 1000))
            what()
        return self.calls

    def later(self, mean):
        return self.now + self.rng.expovariate(1 / mean) + 0.01

    # effects

    def fault(self, name):
        return self.plan.fault == name

    def find(self, law_id):
        return self.ledger.find(law_id)

    def sweep(self):
        limits, now = self.ledger.limits, self.ledger.now
        ttl = limits.job_ttl_ms
        if self.fault("ttl halved"):
            ttl //= 2
        keep = max(limits.max_completed, 0)
        if self.fault("one too few kept"):
            keep -= 1
        young = list(self.ledger.retained)
        if not self.fault("no eviction by age"):
            young = [job for job in young if now - job.completed_at <= ttl]
        if self.fault("all evicted at the bound") and len(young) > keep:
            young = []
        excess = 0 if self.fault("no eviction by count") else len(young) - keep
        excess = min(excess, len(young))
        if excess > 0:
            if self.plan.victims == "completion":
                gone = young[:excess]
            elif self.plan.victims == "submission":
                gone = sorted(young, key=lambda job: job.id)[:excess]
            else:
                gone = self.rng.sample(young, excess)
            young = [job for job in young if job not in gone]
        live = self.ledger.live
        if self.fault("running evicted") and len(live) > 1 and self.rng.random() < 0.2:
            live = live[1:]
        self.ledger = self.ledger._replace(retained=tuple(young), live=live)

    def age(self):
        kept = tuple(
            job
            for job in self.ledger.retained
            if not law.has_expired(job, self.ledger.limits, self.ledger.now)
        )
        self.ledger = self.ledger._replace(retained=kept)

    def admit(self, task_id):
        ledger = self.ledger
        if self.fault("one too many admitted"):
            ledger = ledger._replace(limits=ledger.limits._replace(max_queue=99))
        if self.fault("one too few admitted"):
            ledger = ledger._replace(
                limits=ledger.limits._replace(max_queue=ledger.limits.max_queue - 1)
            )
        step = law.admit(ledger, task_id, f"payload of {task_id}")
        if not step.accepted:
            if self.fault("a refusal takes a place") and self.rng.random() < 0.2:
                self.ledger = self.ledger._replace(depth=self.ledger.depth + 1)
            return None
        self.ledger = step.ledger._replace(limits=self.plan.limits, sweeps_owed=0)
        return step.reply.job.id

    def end(self, law_id, op, value):
        before = self.find(law_id)
        act = {"finish": law.finish, "fail": law.fail, "timeout": law.time_out}[op]
        step = act(self.ledger, law_id, value)
        if before and before.state.terminal and self.fault("a second end is accepted"):
            return True
        if before and before.state.terminal and self.fault("a refused end overwrites"):
            changed = before._replace(
                state={"finish": State.DONE, "fail": State.FAILED, "timeout": State.TIMEOUT}[op],
                result=value if op == "finish" else None,
                error=None if op == "finish" else value,
            )
            kept = tuple(changed if j.id == law_id else j for j in self.ledger.retained)
            self.ledger = self.ledger._replace(retained=kept)
            return False
        self.ledger = step.ledger
        if step.accepted and self.fault("a place leaks") and self.rng.random() < 0.3:
            self.ledger = self.ledger._replace(depth=self.ledger.depth + 1)
        if step.accepted:
            for wake in self.waiters.pop(law_id, []):
                if not self.fault("lost wake-up"):
                    wake()
        return step.accepted

    # answers

    def shown(self, job):
        if job is None:
            return {"unknown": True}
        reply = {"state": str(job.state), "error": job.error}
        if not self.plan.wire:
            reply |= {"submitted_at": job.submitted_at, "completed_at": job.completed_at}
        if self.plan.wire:
            until = job.completed_at if job.state.terminal else self.ledger.now
            reply["elapsed_ms"] = until - job.submitted_at
            if self.fault("elapsed goes back"):
                reply["elapsed_ms"] = self.rng.randrange(reply["elapsed_ms"] + 1)
            if self.fault("elapsed in seconds"):
                reply["elapsed_ms"] //= 1000
            if self.fault("elapsed of the server"):
                reply["elapsed_ms"] = self.ledger.now + 40
        if self.fault("an error is missing") and job.state is State.FAILED:
            reply["error"] = None
        if self.fault("stale reads") and self.rng.random() < 0.3:
            reply |= {"state": "pending", "error": None}
            if "completed_at" in reply:
                reply["completed_at"] = None
        if self.fault("a completion time too early") and job.state.terminal:
            reply["completed_at"] = job.submitted_at - 5
        return reply

    def result(self, job):
        if job is None:
            return {"status": "not_found"}
        if job.state is not State.DONE:
            return {"status": "not_done", "state": str(job.state)}
        if self.fault("a done result is refused") and self.rng.random() < 0.5:
            return {"status": "not_done", "state": "running"}
        value = job.result
        if self.fault("results change"):
            value = f"{value} {self.rng.random()}"
        if self.fault("results are mixed up"):
            done = [j for j in self.ledger.retained if j.state is State.DONE]
            value = self.rng.choice(done).result
        task = "lost" if self.fault("the task id is lost") else job.task_id
        return {"status": "ready", "task_id": task, "result": value}


class Role:
    """One client: makes a call, waits for the answer, thinks, goes on."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        clock = world.rng.randrange(world.plan.clocks)
        self.clock = f"clock-{clock}"
        self.offset = clock * 1_000_000

    def open(self, op, job, **args):
        world = self.world
        world.made += 1
        self.pending = (op, job, world.now, args)

    def close(self, reply, record=True):
        """Return to the client after some latency."""
        world = self.world
        op, job, started, args = self.pending

        def back():
            lost = record and world.rng.random() < world.plan.lose
            if record:
                call = Call(
                    self.name,
                    op,
                    job,
                    self.stamp(started),
                    self.stamp(world.now),
                    self.clock,
                    args,
                    None if lost else reply,
                )
                world.calls.append(call)
            self.next()
            if op == "submit" and reply.get("job") and not lost:
                world.ids.append(reply["job"])

        world.at(world.later(world.plan.latency_us), back)

    def stamp(self, when):
        grain = self.world.plan.grain_us
        return math.floor((when + self.offset) / grain) * grain

    def next(self):
        if self.world.made < self.world.plan.calls:
            self.world.at(self.world.later(self.world.plan.think_us), self.step)

    def effect(self, what):
        self.world.at(self.world.later(self.world.plan.latency_us), what)

    def real(self, law_id):
        world = self.world
        if world.fault("ids repeat") and law_id and law_id % 5 == 0:
            law_id -= 1
        return f"job_{law_id}"

    def law_id(self, job):
        return int(job.split("_")[1])


class Client(Role):
    """Submits, reads, waits."""

    def step(self):
        world = self.world
        ops = ["submit", "snapshot", "snapshot", "result", "wait", "depth"]
        if world.plan.wire:
            ops.remove("depth")
        op = world.rng.choice(ops)
        if op == "submit":
            return self.submit()
        if op == "depth":
            self.open("depth", None)
            return self.effect(self.depth)
        if not world.ids or world.rng.random() < 0.03:
            job = f"job_{10_000 + world.rng.randrange(3)}"
        else:
            recent = world.ids[-8:]
            job = world.rng.choice(recent if world.rng.random() < 0.8 else world.ids)
        if op == "wait":
            return self.wait(job)
        self.open(op, job)
        return self.effect(lambda: self.read(op, job))

    def depth(self):
        world = self.world
        lie = 1 if world.fault("depth is off by one") else 0
        self.close({"depth": world.ledger.depth + lie})

    def read(self, op, job):
        world = self.world
        if world.plan.early_age:
            world.age()
        found = world.find(self.law_id(job))
        law_id = self.law_id(job)
        if world.fault("404 window") and found and world.now < world.history[law_id] + 4000:
            found = None
        if world.fault("back from the dead"):
            if found is not None:
                world.ghosts[law_id] = found
            elif world.rng.random() < 0.5:
                found = world.ghosts.get(law_id)
        self.close(world.shown(found) if op == "snapshot" else world.result(found))

    def submit(self):
        task = f"t{self.world.made}"
        self.open("submit", None, task_id=task)

        def admit():
            world = self.world
            law_id = world.admit(task)
            if law_id is None:
                if world.plan.refused_sweeps and world.rng.random() < 0.5:
                    world.sweep()
                return self.close({"refused": True})
            world.history[law_id] = world.now
            world.used.append(law_id)
            return self.effect(lambda: sweep(law_id))

        def sweep(law_id):
            self.world.sweep()
            self.close({"job": self.real(law_id)})

        self.effect(admit)

    def wait(self, job):
        world = self.world
        budget = world.rng.choice(world.plan.waits_ms)
        self.open("wait", job, budget_ms=budget)
        over = world.now + budget * 1000
        law_id = self.law_id(job)
        state = {"done": False}

        def answer():
            if not state["done"]:
                state["done"] = True
                self.close(world.shown(world.find(law_id)))

        def arrive():
            found = world.find(law_id)
            if found is None or found.state.terminal:
                if world.fault("a wait on a terminal job sleeps"):
                    return world.at(world.now + 900_000, answer)
                return answer()
            if world.fault("waits end early"):
                return answer()
            world.waiters.setdefault(law_id, []).append(lambda: self.effect(answer))
            late = 900_000 if world.fault("lost wake-up") else 0
            return world.at(max(over, world.now) + late, answer)

        self.effect(arrive)


class Runner(Role):
    """Starts jobs and ends them, sometimes twice; its calls are recorded only if visible."""

    def step(self):
        world = self.world
        alive = [j.id for j in world.ledger.live]
        ended = [j.id for j in world.ledger.retained]
        late = not alive or world.rng.random() < 0.1
        pool = (ended or alive) if late else alive
        if not pool:
            world.made += 1
            return self.next()
        law_id = world.rng.choice(pool)
        op = world.rng.choice(["start", "take_request", "finish", "finish", "fail", "timeout"])
        args = {}
        if op == "finish":
            args = {"result": f"result {world.made}"}
        elif op in ("fail", "timeout"):
            args = {"error": f"error {world.made}"}
        self.open(op, self.real(law_id), **args)
        return self.effect(lambda: self.act(op, law_id, args))

    def act(self, op, law_id, args):
        world = self.world
        visible = world.plan.visible
        if op == "start":
            job = world.find(law_id)
            step = law.start(world.ledger, law_id)
            world.ledger = step.ledger
            accepted = step.accepted
            if job and job.state is State.RUNNING and world.fault("a second start is accepted"):
                accepted = True
            return self.close({"accepted": accepted}, visible)
        if op == "take_request":
            step = law.take_request(world.ledger, law_id)
            if step.reply.job is None:
                return self.close({"unknown": True}, visible)
            if not world.fault("the payload is handed out again"):
                world.ledger = step.ledger
            job = step.reply.job
            return self.close({"task_id": job.task_id, "payload": job.payload}, visible)
        value = args.get("result") or args.get("error")
        return self.close({"accepted": world.end(law_id, op, value)}, visible)


def simulate(plan, seed):
    """The history of one run."""
    return tuple(World(plan, random.Random(seed)).run())


def setting_of(plan):
    """What a judge of such a history may know."""
    return Setting(
        max_queue=plan.limits.max_queue,
        job_ttl_ms=plan.limits.job_ttl_ms,
        max_completed=plan.limits.max_completed,
        wire=plan.wire,
        visible=plan.visible,
    )


def random_plan(rng, **changes):
    """A plan with everything that a correct ledger and an honest recorder may vary."""
    wire = rng.random() < 0.4
    plan = Plan(
        Limits(
            rng.choice([0, 1, 2, 4]), rng.choice([0, 5, 40, 200, 5000]), rng.choice([-1, 0, 1, 3])
        ),
        clients=rng.choice([1, 2, 4, 8]),
        calls=rng.choice([20, 60, 120]),
        wire=wire,
        visible=rng.random() < 0.5,
        runners=rng.choice([1, 2, 3]),
        latency_us=rng.choice([1, 300, 2000, 20000]),
        think_us=rng.choice([10, 3000, 30000]),
        grain_us=rng.choice([1, 1, 1000, 15000]),
        victims=rng.choice(["completion", "submission", "random"]),
        refused_sweeps=rng.random() < 0.3,
        early_age=wire and rng.random() < 0.5,
        lose=rng.choice([0.0, 0.0, 0.1]),
        clocks=rng.choice([1, 1, 1, 3]),
    )
    for key, value in changes.items():
        setattr(plan, key, value)
    return plan
