"""Names of environments, entities and products on the command line."""

from typing import NamedTuple

import typer
from pydantic import TypeAdapter, ValidationError

from temporal_plans.domain.fleets.names import EntityName, EnvironmentName, ProductName

_ENVIRONMENT: TypeAdapter[str] = TypeAdapter(EnvironmentName)
_ENTITY: TypeAdapter[str] = TypeAdapter(EntityName)
_PRODUCT: TypeAdapter[str] = TypeAdapter(ProductName)


class Place(NamedTuple):
    """An environment, or one entity of it."""

    environment: str
    entity: str | None


def place_of(text: str, *, entity: bool | None = None) -> Place:
    """Return the place of ``ENV`` or ``ENV/ENTITY``. ``entity``: whether an entity must be, or must
    not be, named. Raises typer.BadParameter."""
    environment, slash, name = text.partition("/")
    _check(_ENVIRONMENT, environment, "environment", "small letters, digits and hyphens")
    if slash:
        _check(_ENTITY, name, "entity", "letters, digits, and - _ . in between")
    if entity and not slash:
        raise typer.BadParameter(f"name an entity, as ENV/ENTITY (found {text!r})")
    if entity is False and slash:
        raise typer.BadParameter(f"name an environment alone (found {text!r})")
    return Place(environment, name if slash else None)


def release_of(text: str) -> tuple[str, str]:
    """Return product and version of ``group:name/1.2.3``. Raises typer.BadParameter."""
    product, slash, version = text.partition("/")
    if not slash or not version:
        raise typer.BadParameter(f"name a release, as group:name/1.2.3 (found {text!r})")
    return product_of(product), version


def product_of(text: str) -> str:
    """Return the name of a product, ``group:name``. Raises typer.BadParameter."""
    _check(_PRODUCT, text, "product", "group:name")
    return text


def _check(kind: TypeAdapter[str], text: str, noun: str, form: str) -> None:
    try:
        kind.validate_python(text)
    except ValidationError:
        raise typer.BadParameter(f"{text!r} is no name of {noun}; write {form}") from None
