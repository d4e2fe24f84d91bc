"""Operator packages as files."""

from collections.abc import Mapping
from pathlib import Path

OPERATOR = """\
apiVersion: kudo.dev/v1beta1
name: web
operatorVersion: "1.0.0"
kubernetesVersion: "1.25"
tasks:
  - name: app
    kind: Apply
    spec:
      resources: [app.yaml]
plans:
  deploy:
    strategy: serial
    phases:
      - name: main
        strategy: serial
        steps:
          - name: app
            tasks: [app]
"""

PARAMETERS = """\
apiVersion: kudo.dev/v1beta1
parameters:
  - name: SIZE
    default: 3
"""

TEMPLATE = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Name }}
data:
  size: "{{ .Params.SIZE }}"
"""


def package_files(
    operator: str = OPERATOR,
    parameters: str = PARAMETERS,
    templates: Mapping[str, str] | None = None,
) -> dict[str, bytes]:
    """The files of a package that has nothing to find fault with."""
    texts = {"app.yaml": TEMPLATE} if templates is None else templates
    files = {"operator.yaml": operator, "params.yaml": parameters}
    files |= {f"templates/{key}": text for key, text in texts.items()}
    return {path: text.encode() for path, text in files.items()}


def write_package(folder: Path, files: Mapping[str, bytes] | None = None) -> Path:
    """Write the files of a package below a folder."""
    for path, content in (package_files() if files is None else files).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder
