"""The task queue of an agent."""


def agent_queue(agent: str) -> str:
    """Return the name of the task queue that only this agent's process polls. Other processes get
    it from the agent (``AgentInfo.queue``)."""
    return f"agent/{agent}"
