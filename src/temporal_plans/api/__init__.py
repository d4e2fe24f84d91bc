"""The HTTP API. So far: the codes and texts of the ``/v1/plans`` dialect."""
