"""Ids of the workflows of fleets."""


def environment_id(environment: str) -> str:
    """Return the workflow id of an environment."""
    return f"environment/{environment}"


def product_id(product: str) -> str:
    """Return the workflow id of a product, ``group:name``."""
    return f"product/{product}"


def fleet_plan_id(environment: str, entity: str, number: int) -> str:
    """Return the workflow id of a plan of an entity."""
    return f"{environment_id(environment)}/{fleet_plan_name(entity, number)}"


def fleet_plan_name(entity: str, number: int) -> str:
    """Return the name of a plan of an entity, once in its environment."""
    return f"{entity}.{number}"
