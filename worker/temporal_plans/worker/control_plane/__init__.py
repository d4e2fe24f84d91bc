"""A Kubernetes control plane on this machine, for ``temporal plan demo --package`` and for tests.

``make control-plane`` builds its programs. Nothing that containers would do is done: KWOK plays one
node and its pods.
"""
