"""Objects in Kubernetes clusters: applied, looked at and deleted. The only room that imports
``kubernetes_asyncio``, which is in the extra ``kubernetes``."""
