"""Names in documents of a fleet, with their limits."""

from typing import Annotated

from pydantic import StringConstraints

EnvironmentName = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", max_length=63, min_length=1)
]
EntityName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=100)
]
ProductName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+:[A-Za-z0-9._-]+$", max_length=200)
]
"""``group:name``."""
ShortName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$", max_length=100)
]
"""The name of a channel, a window, a group or a label."""
Text = Annotated[str, StringConstraints(max_length=1000)]
"""A text for people."""
Revision = Annotated[str, StringConstraints(max_length=100)]
"""A digest, or another text that changes with what it stands for."""
ClusterName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
]
"""The name of a Kubernetes cluster, as its workers serve it."""
