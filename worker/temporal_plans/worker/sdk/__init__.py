"""Everything that touches the inside of Temporal's Python SDK.

``runner`` puts the patches of this room between the SDK's worker and the SDK's workflow instances;
each other file is one patch, or what several patches share. ``make newest`` tells what a new
version of the SDK breaks here.
"""
