# SPDX-License-Identifier: Apache-2.0
"""What a crew's record (worker/data/step_record.h) says: how far it is, what was repeated, and whether each example was visited
exactly once an epoch."""
import math
from collections import Counter, defaultdict


class Applied:
    __slots__ = ("generation", "name", "first", "last", "at")

    def __init__(self, words):
        self.generation = tuple(int(n) for n in words[1].split("."))
        self.name, self.first, self.last, self.at = words[2], int(words[3]), int(words[4]), int(words[5]) / 1e9


LINES = {"applied": 6, "ticket": 6, "server": 7, "checkpoint": 5, "peer": 6, "lost": 5}  # words of a line; of a share more than 6


def words_of(line):
    """A line is one write. What is two of them in one, or half of one, proves nothing of what it seems to say."""
    words = line.split(" ")
    if words[0] == "share" and len(words) > 6 or len(words) == LINES.get(words[0]):
        return words
    raise ValueError(f"the record has a line that is none of it: {line[:200]!r}")


class History:
    """Reads on where it stopped."""

    def __init__(self, path):
        self.file = open(path)
        self.rest = ""
        self.applied = []
        self.shares = []  # (generation, name, step, epoch, position, examples)
        self.tickets = []  # (generation, fate, worker, ticket)
        self.servers = []  # (server's name, fate, number, whose); "committed" is the chief's word
        self.peers = []  # (name, fate, seat, examples), of PeerToPeer
        self.losses = []  # (when, acknowledged updates that are lost, in all)
        self.step = 0
        self.generation = (0, 0, 0)

    def read(self):
        text = self.rest + self.file.read()
        *lines, self.rest = text.split("\n")
        for line in lines:
            words = words_of(line)
            if words[0] == "applied":
                self.take(Applied(words))
            elif words[0] == "ticket":
                generation = tuple(int(n) for n in words[1].split("."))
                self.tickets.append((generation, words[3], int(words[4]), int(words[5])))
            elif words[0] == "server":
                self.servers.append((words[2], words[3], int(words[5]), words[6]))
            elif words[0] == "checkpoint":
                self.servers.append((words[2], "committed", int(words[3]), words[4]))
            elif words[0] == "peer":
                self.peers.append((words[2], words[3], int(words[4]), int(words[5])))
            elif words[0] == "lost":
                self.losses.append((int(words[4]) / 1e9, int(words[3])))
            else:
                generation = tuple(int(n) for n in words[1].split("."))
                self.shares.append((generation, words[2], int(words[3]), int(words[4]), int(words[5]),
                                    [int(n) for n in words[6:]]))
        return self

    def take(self, applied):
        self.applied.append(applied)
        self.step = max(self.step, applied.last)
        self.generation = max(self.generation, applied.generation)

    def changes(self):
        """[(steps gone back, applied before, applied after)] for each generation that has applied something: the furthest line of
        the one before it, and its own first. What a superseded process applies afterwards does not count, nor all that one applies
        which was superseded before it had applied anything."""
        by_generation = defaultdict(list)
        for applied in self.applied:
            by_generation[applied.generation].append(applied)
        begun = {generation: min(a.at for a in lines) for generation, lines in by_generation.items()}
        found, before = [], []
        for generation in sorted(by_generation):
            if any(later > generation and at < begun[generation] for later, at in begun.items()):
                continue
            first = min(by_generation[generation], key=lambda a: (a.first, a.at))
            before = [a for a in before if a.at < first.at]
            if before:
                last = max(before, key=lambda a: (a.last, -a.at))
                found.append((last.last - first.first + 1, last, first))
            before = by_generation[generation]
        return found

    def repeated(self, before, after, unit, names=None):
        """Steps that the generation of the one line began and that of the other, which follows it, did again. A superseded
        process may go further when it returns; nobody else is more than a unit ahead of what was applied. With `names`, what
        others had only begun does not count: whoever applies a step and dies with it has begun the next one already."""
        begun = max((step for generation, name, step, _, _, _ in self.shares
                     if generation == before.generation and (names is None or name in names)), default=0)
        return max(0, min(begun, before.last + unit) - after.first + 1, before.last - after.first + 1)

    def holders(self, applied):
        """Names of those who have applied something in that line's generation."""
        return {a.name for a in self.applied if a.generation == applied.generation}

    def members(self, generation):
        """Names of those who have taken a share in a generation, or applied anything."""
        return {name for at, name, *_ in self.shares if at == generation} | {a.name for a in self.applied if a.generation == generation}

    def gone_back(self):
        """[(applied before, applied after)] wherever a chief goes on from a step before the one that the crew was at. What a
        superseded chief applies afterwards does not count."""
        found, newest = [], None
        for applied in self.applied:
            if newest is None or applied.generation >= newest.generation:
                if newest is not None and applied.first <= newest.last:
                    found.append((newest, applied))
                newest = applied
        return found

    def first_applied(self, moment):
        """When the crew took its first step since then; never: infinite."""
        return min((applied.at for applied in self.applied if applied.at >= moment), default=math.inf)

    def generation_of_steps(self):
        owner = {}
        for applied in self.applied:
            for step in range(applied.first, applied.last + 1):
                owner[step] = max(owner.get(step, applied.generation), applied.generation)
        return owner

    def lockstep_batches(self):
        """{step: [(epoch, example)…]} of the generation in which each step counts."""
        owner = self.generation_of_steps()
        batches = defaultdict(list)
        for generation, _, step, epoch, _, examples in self.shares:
            if owner.get(step) == generation:
                batches[step] += [(epoch, example) for example in examples]
        return batches

    def ticket_batches(self):
        """Likewise for tickets: what was computed at least once, for each may be computed again. How often it counted is
        check_counted's."""
        tickets = {}
        for _, _, step, epoch, position, examples in self.shares:
            if tickets.setdefault((step, position), (epoch, examples)) != (epoch, examples):
                raise ValueError(f"step {step}: two shares at position {position} have different examples")
        batches = defaultdict(list)
        for (step, _), (epoch, examples) in tickets.items():
            batches[step] += [(epoch, example) for example in examples]
        return batches


class Clocks:
    """The workers, whoever leads: whom the crew counts as live, what each has finished by its chief's word, what the present chief
    says it holds, and the highest clock at which anybody has begun what is done."""

    UNHEARD = 3  # tickets that one may have finished, and its chief has not heard of, when it comes back

    def __init__(self):
        self.clocks, self.held, self.joined, self.furthest, self.found = {}, defaultdict(list), set(), 0, []

    def succeed(self):
        """Another chief leads; it waits a while for those that were there."""
        self.held.clear()
        self.joined.clear()

    def join(self, worker, given, bound):
        """With the clock that it is `given`; -1: not told. A new process, or one that was counted as dead, has left before."""
        known = self.clocks.pop(worker, None)
        if known is not None and not known <= given <= known + self.UNHEARD:
            self.found.append(f"worker {worker} came back to clock {given}; it had finished {known}")
        if 0 <= given < self.furthest - bound:
            self.found.append(f"worker {worker} was let in at clock {given}: others, who were at {self.furthest}, wait for it")
        self.clocks[worker] = given if given >= 0 else min(self.clocks.values(), default=0)
        self.held[worker] = []
        self.joined.add(worker)

    def leave(self, worker):
        self.clocks.pop(worker, None)
        self.held.pop(worker, None)

    def learn(self, worker, clock):
        """It has finished more than its chief knew."""
        known = self.clocks.get(worker, clock)
        if not known < clock <= known + self.UNHEARD:
            self.found.append(f"worker {worker} says that it has finished {clock}; it had finished {known}")
        self.clocks[worker] = clock

    def take(self, worker, ticket, bound):
        self.clocks = {other: clock for other, clock in self.clocks.items() if other in self.joined}
        ahead = self.clocks[worker] + len(self.held[worker]) - min(self.clocks.values())
        if ahead > bound:
            self.found.append(f"worker {worker} was given ticket {ticket}, {ahead} ahead of the slowest; the bound is {bound}")
        self.hold(worker, ticket)

    def hold(self, worker, ticket):
        if any(ticket in self.held[other] for other in self.clocks):
            self.found.append(f"ticket {ticket} was given to worker {worker} while another held it")
        self.held[worker].append(ticket)

    def follow(self, fate, worker, ticket, bound):
        if fate == "join":
            self.join(worker, ticket, bound)
        elif fate == "leave":
            self.leave(worker)
        elif fate == "void":
            self.held.clear()
        elif fate == "hold":
            self.hold(worker, ticket)
        elif fate == "back":
            self.furthest = 0
        elif fate == "clock":
            self.learn(worker, ticket)
        elif fate in ("done", "again"):
            self.held[worker].remove(ticket)
            self.furthest = max(self.furthest, self.clocks[worker])
            self.clocks[worker] += 1
        elif fate == "take":
            self.take(worker, ticket, bound)


def check_staleness(tickets, bound):
    """Sentences about workers that were given a ticket although they were further ahead than the bound allows, or another had it,
    and about those that were let in so far behind that the others have to wait for them."""
    clocks, newest = Clocks(), (0, 0, 0)
    for generation, fate, worker, ticket in tickets:
        if generation < newest:  # a superseded chief's
            continue
        if generation > newest:
            clocks.succeed()
        newest = generation
        clocks.follow(fate, worker, ticket, bound)
    return clocks.found


def check_counted(tickets, total):
    """Sentences about tickets that counted twice by the chiefs' word, or not at all. What a `void` does not say to be finished, by
    the servers' tables, is taken back with whatever lost it, and counts again."""
    found, counted, low, newest = [], set(), 0, (0, 0, 0)
    for generation, fate, _, ticket in tickets:
        if generation < newest:  # a superseded chief's
            continue
        newest = generation
        if fate == "void":
            counted, low = set(), ticket
        elif fate in ("done", "late"):
            if ticket in counted or ticket < low:
                found.append(f"ticket {ticket} counted twice")
            counted.add(ticket)
        elif fate == "kept":
            counted.add(ticket)
    return found + [f"ticket {ticket} never counted" for ticket in range(max(low, 0), total) if ticket not in counted]


def seat(name):
    """"ps-0" of "ps-0-7"."""
    return name.rsplit("-", 1)[0]


def incarnation(name):
    """7 of "ps-0-7", and of a checkpoint's directory "step-00000040.attempt-1.incarnation-7"; and of ".saving-shards.1.7.3", in which the
    third save of a chief of attempt 1 to a bucket is gathered."""
    if name.startswith(".saving-shards.") and name.count(".") == 4:
        return int(name.split(".")[3])
    return int(name.rsplit("-", 1)[1])


class Contents:
    """Which updates are in the values of each server, followed line by line."""

    def __init__(self):
        self.values = {}  # by the server's name
        self.saved, self.committed = {}, {}
        self.found = []

    def add(self, values, name, number):
        if number in values.setdefault(name, set()):
            self.found.append(f"{name} applied update {number} twice")
        values[name].add(number)

    def take(self, name, fate, number, whose):
        if fate == "loaded":
            self.values[name] = self.loaded(name, whose)
        elif fate == "saved":
            self.saved.setdefault(whose, {})[seat(name)] = frozenset(self.values[name])
        elif fate == "committed":
            self.committed[number, incarnation(whose)] = dict(self.saved.get(whose, {}))
        elif fate == "applied":
            self.add(self.values, name, number)

    def loaded(self, name, checkpoint):
        if checkpoint == "-":
            return set()
        step = int(checkpoint.removeprefix("step-").split(".")[0])
        shards = self.committed.get((step, incarnation(checkpoint)), {})
        if seat(name) not in shards:
            self.found.append(f"{name} loaded {checkpoint}, which holds nothing of {seat(name)}")
        return set(shards.get(seat(name), ()))

    def in_the_end(self):
        """{"ps-0": updates}: what is in the newest of each that has values."""
        return {seat(name): self.values[name] for name in sorted(self.values, key=incarnation)}


def check_updates(servers, total):
    """Sentences about updates that a server has applied twice, or that nobody gave out; and how many of `total` are missing in the end,
    added over the servers."""
    contents = Contents()
    for line in servers:
        contents.take(*line)
    ends = contents.in_the_end()
    found = contents.found + [f"{name} has update {number} of {total}" for name, values in ends.items() for number in values
                              if not 0 <= number < total]
    return found, sum(total - len(values) for values in ends.values())


def check_held(peers):
    """Sentences about successors of peers that begin behind examples which no replica but their predecessor's has ever had; what has
    only been computed must be taken again. Who restores a checkpoint has what is counted in it, and what those had who are not heard
    of again is void."""
    found, held = [], defaultdict(Counter)  # by name and seat
    last = {name: line for line, (name, *_) in enumerate(peers)}
    for line, (name, fate, seat, examples) in enumerate(peers):
        if fate == "restored":
            held = defaultdict(Counter, {other: counts for other, counts in held.items() if last[other] > line})
        had = max((counts[seat] for counts in held.values()), default=0)
        if fate in ("restored", "has"):
            held[name][seat] = max(held[name][seat], examples)
        elif fate == "begins" and examples > had:
            found.append(f"{name} begins with {examples} examples finished, of which others have had {had}")
    return found


def check_epochs(batches, steps, batch, examples):
    """Sentences about whatever is not exactly once; none when all is well."""
    found, seen = [], Counter()
    for step in range(1, steps + 1):
        left = examples - (step - 1) % -(-examples // batch) * batch
        if len(batches.get(step, ())) != min(batch, left):
            found.append(f"step {step} took {len(batches.get(step, ()))} examples, not {min(batch, left)}")
        seen.update(batches.get(step, ()))
    found += [f"epoch {epoch}: example {example} was taken {count} times" for (epoch, example), count in seen.items()
              if count != 1]
    whole = steps // -(-examples // batch)
    found += [f"epoch {epoch} has {number} examples of {examples}" for epoch, number in
              Counter(epoch for epoch, _ in seen).items() if epoch < whole and number != examples]
    return found
