"""What activities on installed packages are given: their cluster, and the content of packages."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from temporal_plans.activities.kubernetes.cluster import Cluster
from temporal_plans.domain.packages.package import Package

UseCluster = Callable[[], AbstractAsyncContextManager[Cluster]]
"""Lends the cluster for one call. Raises ClusterError when it can't be reached."""

LoadPackage = Callable[[str], Awaitable[Package]]
"""Returns the package of a digest."""
