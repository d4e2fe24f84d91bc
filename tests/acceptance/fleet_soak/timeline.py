"""What happened in a drill, and when."""

import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Timeline:
    """``counts`` are what happened by its kind."""

    began: float = field(default_factory=time.monotonic)
    lines: list[str] = field(default_factory=list[str])
    counts: Counter[str] = field(default_factory=Counter[str])

    def tell(self, text: str) -> None:
        line = f"{time.monotonic() - self.began:6.1f} s  {text}"
        self.lines.append(line)
        print(line, flush=True)
