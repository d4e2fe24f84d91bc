"""The program that renders templates: a process of its own, because a template may loop without end
or ask for all memory, and nothing in the same process could stop it.

Its standard input is one ``RenderOrder`` as JSON; for each template, in order, it writes one line
with a ``RenderAnswer``. It imports nothing but the engine, to start quickly.
"""

import json
import math
import resource
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import cast

from temporal_plans.loading.packages.go_templates import TemplateFault, render_template
from temporal_plans.loading.packages.render_order import RenderAnswer, RenderOrder

_PROBLEM_LIMIT = 100_000
"""Characters of an error: a template may make its own with ``fail``."""


def main() -> None:
    order = cast(RenderOrder, json.loads(sys.stdin.buffer.read()))
    _limit(order)
    remaining = order["output_limit"]
    for name, source in order["templates"].items():
        answer = _answer(name, source, order)
        remaining -= len(answer.get("text", ""))
        if remaining < 0:
            answer = {"problem": f"the templates give more than {order['output_limit']} characters"}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
        if remaining < 0:
            return


class _OutOfTime(BaseException):
    """The template's time is over. Not an Exception, so that the engine lets it through."""


def _out_of_time(number: int, frame: FrameType | None) -> None:
    raise _OutOfTime


def _limit(order: RenderOrder) -> None:
    signal.signal(signal.SIGPROF, _out_of_time)
    _set_limit(resource.RLIMIT_AS, order["memory"])
    until_now = math.ceil(time.process_time())  # for what it has imported
    _set_limit(resource.RLIMIT_CPU, until_now + order["all_seconds"])
    _set_limit(resource.RLIMIT_CORE, 0)


def _set_limit(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(kind, (bound, bound))
    except (ValueError, OSError):
        return  # a system without this limit; time is limited in any case


def _answer(name: str, source: str, order: RenderOrder) -> RenderAnswer:
    seconds = order["seconds"]
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            text = render_template(name, source, order["data"])
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        text.encode()
    except TemplateFault as fault:
        return {
            "problem": fault.problem[:_PROBLEM_LIMIT],
            "line": fault.line,
            "column": fault.column,
            "fix": fault.fix,
            "missing": fault.missing,
        }
    except _OutOfTime:
        return {"problem": f"takes more than {seconds:g} s"}
    except MemoryError:
        return {"problem": f"takes more than {order['memory'] // 2**20} MB"}
    except RecursionError:
        return {"problem": "is nested too deeply"}
    except UnicodeEncodeError:
        return {"problem": "gives a text that is not Unicode"}
    except Exception as error:
        # without the error's text, in which a value of a secret parameter may stand
        return {"problem": f"can't be rendered: {type(error).__name__} in {_place_of(error)}"}
    return {"text": text}


def _place_of(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "the engine"
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
