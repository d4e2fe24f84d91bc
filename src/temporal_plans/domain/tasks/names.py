"""Names of tasks and ids of their launches."""


def task_instance_name(pod_type: str, index: int, task: str) -> str:
    """Return the name of a task instance: ``hello-0-server``."""
    return f"{pod_type}-{index}-{task}"


def task_id(service: str, instance_name: str, unique: str) -> str:
    """Return the id of one launch: ``<service with . for />__<task instance name>__<unique>``."""
    return f"{service.strip('/').replace('/', '.')}__{instance_name}__{unique}"


def instance_of(task_id: str) -> str:
    """Return the task instance name in a task id; an id of another form is returned whole."""
    return "__".join(task_id.split("__")[1:-1]) or task_id
