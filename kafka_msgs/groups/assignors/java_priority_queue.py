"""The heap of ``java.util.PriorityQueue``, whose arrangement determines the order of equal items.

A heap is a list of numbers that identify processes or members. ``ranks`` has the rank of each item; the smallest rank
comes first. Equal ranks come out in an order that follows from the heap's history. Python's ``heapq`` moves its items
differently, so it cannot replace this heap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

Ranks: TypeAlias = Mapping[int, float] | Sequence[float]
"""The rank of each item."""

__all__ = ["add", "distribute", "new_heap", "poll"]


def new_heap(items: Iterable[int], ranks: Ranks) -> list[int]:
    """Return a heap built by adding the items in order."""
    heap: list[int] = []
    for item in items:
        add(heap, item, ranks)
    return heap


def add(heap: list[int], item: int, ranks: Ranks) -> None:
    """Add an item: it moves up past each parent that is greater."""
    place = len(heap)
    heap.append(item)
    rank = ranks[item]
    while place:
        parent = (place - 1) >> 1
        above = heap[parent]
        if rank >= ranks[above]:
            break
        heap[place] = above
        place = parent
    heap[place] = item


def poll(heap: list[int], ranks: Ranks) -> int:
    """Remove and return the first item of a heap that is not empty: the last item takes its position and moves down."""
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    rank = ranks[last]
    place, size = 0, len(heap)
    while (child := 2 * place + 1) < size:
        below = heap[child]
        if child + 1 < size and ranks[below] > ranks[heap[child + 1]]:
            child += 1
            below = heap[child]
        if rank <= ranks[below]:
            break
        heap[place] = below
        place = child
    heap[place] = last
    return first


def distribute(heap: list[int], counts: list[int], sizes: Sequence[int], times: int) -> list[int]:
    """Give ``times`` units, each to the item with the smallest load, and return the receiving items, in order.

    The load of an item is its count divided by its size. ``counts`` and the heap are updated.

    If all sizes are equal and all counts are equal, giving one unit to each item rearranges the heap in a way that
    depends only on its length. Such rounds are cached, so most units need no comparison.
    """
    even = len({sizes[item] for item in heap}) == 1
    loads = {item: counts[item] / sizes[item] for item in heap}
    level = max(counts[item] for item in heap)
    missing = sum(level - counts[item] for item in heap)
    given: list[int] = []
    while len(given) < times:
        rounds = 0 if missing or not even else (times - len(given)) // len(heap)
        if rounds:
            given += _play_rounds(heap, rounds)
            level += rounds
            for item in heap:
                counts[item] = level
                loads[item] = level / sizes[item]
            continue
        item = poll(heap, loads)
        given.append(item)
        counts[item] += 1
        loads[item] = counts[item] / sizes[item]
        add(heap, item, loads)
        missing -= 1
        if counts[item] > level:
            level += 1
            missing += len(heap)
    return given


def _play_rounds(heap: list[int], rounds: int) -> list[int]:
    """Give each item of a heap of equal items one unit, ``rounds`` times."""
    taken, after = _round(len(heap))
    given: list[int] = []
    for _ in range(rounds):
        given += [heap[place] for place in taken]
        heap[:] = [heap[place] for place in after]
    return given


@lru_cache(maxsize=256)
def _round(size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the positions of the items that a round takes from a heap, and the positions that form the new heap."""
    heap = list(range(size))
    ranks = dict.fromkeys(heap, 0)
    taken = []
    for _ in range(size):
        item = poll(heap, ranks)
        taken.append(item)
        ranks[item] = 1
        add(heap, item, ranks)
    return tuple(taken), tuple(heap)
