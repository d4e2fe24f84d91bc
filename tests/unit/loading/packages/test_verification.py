"""The verification of packages: every check finds what it is for, at its place, and nothing else.

The rows are those of the linters of the system whose packages these are, and what they leave out.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from builders.packages import OPERATOR, PARAMETERS, TEMPLATE, package_files
from repository import ROOT
from temporal_plans.domain.packages.checks import CHECKS
from temporal_plans.domain.packages.checks.style import STYLES
from temporal_plans.domain.packages.findings import Verification
from temporal_plans.domain.packages.plans import PackagePlan
from temporal_plans.loading.packages.reader import read_files, read_package
from temporal_plans.loading.packages.verification import verify

CORPUS = Path(os.environ.get("TEMPORAL_PLANS_CORPUS", ROOT / "../shared/corpus")) / "kudo"


def verified(
    operator: str = OPERATOR,
    parameters: str = PARAMETERS,
    templates: Mapping[str, str] | None = None,
    *,
    rendering: bool = False,
) -> Verification:
    read = read_files(package_files(operator, parameters, templates), "test")
    return verify(read, rendering=rendering)


def found(result: Verification) -> list[tuple[str, str]]:
    return [
        (one.severity.value, f"{one.file}:{one.line or ''}: {one.field}: {one.problem}")
        for one in (*result.errors, *result.warnings)
    ]


def only(result: Verification, severity: str, text: str, fix: str = "") -> None:
    """There is one finding, which has the text."""
    assert [(kind, text in line) for kind, line in found(result)] == [(severity, True)], found(
        result
    )
    assert fix in (*result.errors, *result.warnings)[0].fix


def with_task(task: str, step: str = "app, more") -> str:
    return OPERATOR.replace("plans:", f"{task}\nplans:").replace("tasks: [app]", f"tasks: [{step}]")


def more(kind: str, spec: str) -> str:
    return with_task(f"  - {{name: more, kind: {kind}, spec: {{{spec}}}}}")


def parameter(text: str) -> str:
    """A second parameter, which a template need not use."""
    return f"{PARAMETERS}  - {{trigger: deploy, {text}}}\n"


def test_nothing_is_found_in_a_good_package() -> None:
    assert found(verified(rendering=True)) == []
    assert verified().valid


# --- operator.yaml --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "severity", "text"),
    [
        ("name: web\n", "", "error", "name: is missing"),
        ("name: web\n", "name: We/b\n", "error", "operator.yaml:2: name: a name has"),
        ('"1.0.0"', '"1.0.0.0"', "error", "operatorVersion: is not a version"),
        ('operatorVersion: "1.0.0"\n', "", "error", "operatorVersion: is missing"),
        ('"1.25"', "x", "error", "kubernetesVersion: is not a version"),
        ('kubernetesVersion: "1.25"\n', "", "error", "kubernetesVersion: is missing"),
        ("name: web\n", "name: web\nappVersion: x\n", "error", "appVersion: is not a version"),
        ("name: web\n", "name: web\nkudoVersion: 1..2\n", "error", "kudoVersion: is not"),
        ("name: web\n", "name: web\nappVersion: 3.10\n", "warning", "appVersion: is read as 3.1"),
        ("name: web\n", "name: web\ndesription: x\n", "warning", "desription: unknown key"),
        ("v1beta1", "v1", "error", "apiVersion: is unknown"),
        ("  deploy:", "  other:", "error", "plans.deploy: is missing"),
        ("tasks: [app]", "tasks: [app, nope]", "error", "steps.app.tasks: names no task"),
        ("tasks: [app]", "tasks: [app]\n          - name: b", "warning", "steps.b.tasks: is empty"),
        ("[app.yaml]", "[app.yaml, b.yaml]", "error", "names a file that is not in templates/"),
        ("[app.yaml]", "app.yaml", "error", "tasks.app.spec.resources: must be a list"),
        ("strategy: serial\n    ph", "strategy: Serial\n    ph", "error", "plans.deploy.strategy"),
        ("serial\n    ph", "waves\n    ph", "error", "deploy.strategy.waves: the strategy waves"),
        (
            "serial\n    ph",
            "{name: serial, limt: 1}\n    ph",
            "warning",
            "strategy.limt: unknown key",
        ),
        ("serial\n    ph", "[serial]\n    ph", "error", "plans.deploy.strategy: must be a mapping"),
        ("serial\n    ph", "true\n    ph", "error", "plans.deploy.strategy: unknown strategy"),
        (
            "  deploy:",
            "  deploy:\n    conflicts-with: [x]",
            "error",
            "conflictsWith: names no plan",
        ),
        ("  deploy:", "  deploy:\n    onError: no", "error", "deploy.onError: must be 'continue'"),
        ("  deploy:", "  deploy:\n    on-error: x", "error", "deploy.on-error: must be 'continue'"),
        ("  deploy:", "  deploy:\n    reentrant: 1", "error", "reentrant: must be true or false"),
        ("name: main", "name: a/b", "error", "must not contain '/'"),
        ("  deploy:", "  deploy: {}\n  deploy:", "error", "plans.deploy: duplicate key"),
        ("name: web\n", "name: web\nname: web\n", "error", "operator.yaml:3: name: duplicate key"),
        ("name: web\n", "name: web\nnamespaceManifest: n.yaml\n", "error", "namespaceManifest: na"),
    ],
)
def test_operator(old: str, new: str, severity: str, text: str) -> None:
    assert old in OPERATOR
    only(verified(OPERATOR.replace(old, new, 1)), severity, text)


@pytest.mark.parametrize(
    "keys",
    [
        "strategy: canary",
        "strategy: {name: max-parallel, limit: 2}",
        "strategy: {name: waves, waves: [1, 25%]}",
        "strategy: {name: canary, proceeds: 1}",
        "reentrant: false",
        "conflictsWith: [deploy]",
        "conflicts-with: []",
        "conflictsWith: '*'",
        "on-error: continue",
        "onError: stop",
    ],
)
def test_keys_of_plans(keys: str) -> None:
    written = OPERATOR.replace("  deploy:\n    strategy: serial\n", f"  deploy:\n    {keys}\n")
    assert written != OPERATOR
    assert found(verified(written)) == []


@pytest.mark.parametrize(
    ("steps", "problems"),
    [
        ("- {name: ask, approval: is the dump complete?}", []),
        ("- {name: ask, approval: yes}", []),
        ("- {name: pause, sleep: 5m}", []),
        ("- {name: pause, sleep: 2}", []),
        ("- {name: late, tasks: [app], dependsOn: [app]}", []),
        ("- {name: late, tasks: [app], depends-on: app}", ["depends-on: must be a list"]),
        ("- {name: pause, sleep: soon}", ["pause.sleep: must be a duration"]),
        ("- {name: ask, approval: yes, tasks: [app]}", ["ask: has more than one of tasks"]),
        ("- {name: ask, approval: yes, sleep: 1s}", ["ask: has more than one of tasks"]),
        ("- {name: late, tasks: [app], dependsOn: [ap]}", ["names no element of the same parent"]),
        ("- {name: late, tasks: [app], dependsOn: [late]}", ["late.depends-on: depends on itself"]),
    ],
)
def test_steps_that_wait_and_dependencies(steps: str, problems: list[str]) -> None:
    texts = [str(one) for one in found(verified(f"{OPERATOR}          {steps}\n"))]
    assert len(texts) == len(problems), texts
    assert all(wanted in text for wanted, text in zip(problems, texts, strict=True)), texts


def test_a_strategy_that_keeps_no_dependencies() -> None:
    late = "- {name: late, tasks: [app], dependsOn: [app]}"
    written = f"{OPERATOR}          {late}\n".replace(
        "        strategy: serial\n        steps", "        strategy: random\n        steps"
    )
    only(verified(written), "error", "the strategy random does not keep this dependency")


def test_both_spellings_of_the_keys_of_plans_are_read() -> None:
    def read(keys: str) -> PackagePlan:
        written = OPERATOR.replace("  deploy:\n", f"  deploy:\n    {keys}\n")
        return read_files(package_files(written), "test").package.plan("deploy")

    for key, other in (("conflictsWith", "onError"), ("conflicts-with", "on-error")):
        assert read(f"{key}: [deploy]").conflicts_with == ("deploy",)
        assert read(f"{key}: '*'").conflicts_with is None
        assert read(f"{key}: []").conflicts_with == ()
        assert read(f"{other}: continue").on_error == "continue"
    plan = read("reentrant: false")
    assert (plan.reentrant, plan.on_error, plan.conflicts_with) == (False, "stop", None)


def test_an_absent_strategy_is_a_warning_where_it_matters() -> None:
    second = "        steps:\n          - name: two\n            tasks: [app]\n"
    written = OPERATOR.replace("        strategy: serial\n        steps:\n", second)
    only(verified(written), "warning", "phases.main.strategy: is missing, and taken for parallel")
    absent = OPERATOR.replace("        strategy: serial\n", "")
    assert found(verified(absent)) == []


def test_two_phases_and_two_steps_of_one_name() -> None:
    phase = OPERATOR.partition("    phases:\n")[2]
    step = "          - name: app\n            tasks: [app]\n"
    only(verified(OPERATOR + phase), "warning", "phases.main: has the name of another")
    only(verified(OPERATOR + step), "warning", "phases.main.steps.app: has the name of another")


@pytest.mark.parametrize(
    ("kind", "spec", "severity", "text"),
    [
        ("Apply", "", "error", "tasks.more.spec.resources: is missing or empty"),
        ("Delete", "resources: []", "error", "tasks.more.spec.resources: is missing or empty"),
        ("Toggle", "parameter: SIZE", "error", "tasks.more.spec.resources: is missing or empty"),
        ("Toggle", "resources: [app.yaml]", "error", "tasks.more.spec.parameter: is missing"),
        (
            "Toggle",
            "resources: [app.yaml], parameter: SIZ",
            "error",
            "tasks.more.spec.parameter: is not defined",
        ),
        ("Pipe", "pod: app.yaml", "error", "tasks.more.spec.pipe: is missing or empty"),
        ("KudoOperator", "", "error", "tasks.more.spec.package: is missing"),
        (
            "KudoOperator",
            "package: ./x, parameterFile: x.yaml",
            "error",
            "names a file that is not in templates/",
        ),
        ("Dummy", "", "warning", "a plan with this task runs until it is stopped"),
        ("Dummy", "done: 'yes'", "error", "tasks.more.spec.done: must be true or false"),
        ("Dummy", "done: true, wantErrr: true", "warning", "tasks.more.spec.wantErrr: unknown key"),
        ("Aply", "resources: [app.yaml]", "error", "tasks.more.kind: is unknown"),
    ],
)
def test_tasks(kind: str, spec: str, severity: str, text: str) -> None:
    only(verified(more(kind, spec)), severity, text)


@pytest.mark.parametrize(
    ("pipe", "text"),
    [
        ("kind: Secret, key: k", "pipe.0: has neither file nor envFile"),
        ("file: /a, envFile: /b, kind: Secret, key: k", "pipe.0: has both file and envFile"),
        ("file: /a, kind: Pod, key: k", "pipe.0.kind: is unknown"),
        ("file: /a, kind: Secret, key: a.b", "pipe.0.key: can't be a key"),
    ],
)
def test_files_of_pipes(pipe: str, text: str) -> None:
    result = verified(
        more("Pipe", f"pod: app.yaml, pipe: [{{{pipe}}}]"),
        templates={"app.yaml": TEMPLATE + "  pipes: '{{ range .Pipes }}{{ end }}'\n"},
    )
    only(result, "error", text)


def test_a_kind_that_developers_registered_is_known() -> None:
    read = read_files(package_files(more("Page", "who: ops")), "test")
    assert verify(read, task_kinds=["Page"], rendering=False).valid
    only(
        verify(read, task_kinds=["Pager"], rendering=False),
        "error",
        "tasks.more.kind",
        fix="did you mean Pager?",
    )


def test_tasks_without_use_and_of_one_name() -> None:
    dummy = "  - {name: more, kind: Dummy, spec: {done: true}}"
    only(verified(with_task(dummy, "app")), "warning", "tasks.more: is used in no plan")
    two = verified(with_task(f"{dummy}\n{dummy}"))
    only(two, "warning", "tasks.more: is defined twice")


def test_pipes() -> None:
    pipe = "pod: app.yaml, pipe: [{file: /a, kind: Secret, key: cert}]"
    unused = verified(more("Pipe", pipe))
    only(unused, "warning", "tasks.more.spec.pipe: is used in no template")
    using = {"app.yaml": TEMPLATE + "  cert: {{ .Pipes.cert }}\n"}
    assert found(verified(more("Pipe", pipe), templates=using)) == []
    second = f"  - {{name: more, kind: Pipe, spec: {{{pipe}}}}}\n"
    both = with_task(second + second.replace("more", "again"), "app, more, again")
    only(verified(both, templates=using), "error", "makes the artefact cert in two tasks")
    unknown = [text for kind, text in found(verified(templates=using)) if kind == "warning"]
    assert unknown == ["templates/app.yaml:7: .Pipes.cert: is made by no task"]


# --- params.yaml ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "severity", "problem"),
    [
        ("name: size", "error", "parameters.size.name: is the same name as SIZE"),
        ("name: 'A;B'", "error", "parameters.A;B.name: can't be a name"),
        ("name: 'A,B'", "error", "parameters.A,B.name: can't be a name"),
        ("default: 1", "error", "parameters.1.name: is missing"),
        ("name: A, type: text", "error", "parameters.A.type: is unknown"),
        ("name: A, type: integer, default: 1.5", "error", "parameters.A.default: must be a whole"),
        ("name: A, type: array, default: {a: 1}", "error", "parameters.A.default: must be a YAML"),
        ("name: A, default: [1]", "warning", "parameters.A.default: is read as the text [1]"),
        ("name: A, default: 010", "warning", "parameters.A.default: is read as 8"),
        ("name: A, default: yes", "warning", "parameters.A.default: is read as true"),
        ("name: A, default: b, enum: [a]", "error", "parameters.A.default: must be one of a"),
        ("name: A, enum: []", "error", "parameters.A.enum: is empty"),
        ("name: A, enum: [1, x], type: integer", "error", "parameters.A.enum.1: must be a whole"),
        ("name: A, immutable: true, required: false", "error", "parameters.A.immutable"),
        ("name: A, advanced: true", "error", "parameters.A.advanced: is required and has no"),
        ("name: A, group: g", "error", "parameters.A.group: is not defined"),
        ("name: A, group: a/b", "error", "parameters.A.group: has a slash"),
        ("name: A, trigger: deplo", "error", "parameters.A.trigger: "),
        ("name: A, requierd: false", "warning", "parameters.A.requierd: unknown key"),
        ("name: A, required: 'no'", "error", "parameters.A.required: must be true or false"),
    ],
)
def test_parameters(text: str, severity: str, problem: str) -> None:
    second = parameter(text)
    if "trigger: deplo" in text:
        second = second.replace("trigger: deploy, ", "")
        only(verified(parameters=second), severity, problem + "is not a plan", "did you mean dep")
    else:
        only(verified(parameters=second), severity, f"params.yaml:5: {problem}")


def test_groups() -> None:
    groups = "groups:\n  - name: a\n  - name: a\n  - name: b/c\n"
    assert [text for _, text in found(verified(parameters=groups + PARAMETERS))] == [
        "params.yaml:2: groups.a: is defined twice",
        "params.yaml:4: groups.b/c: has a slash",
    ]


def test_a_trigger_that_no_change_may_start() -> None:
    cleanup = f"{OPERATOR}  cleanup:\n    phases: []\n"
    second = f"{PARAMETERS}  - {{name: A, trigger: cleanup}}\n"
    only(verified(cleanup, second), "warning", "runs at the uninstall only")


def test_a_parameter_without_use() -> None:
    unused = f"{PARAMETERS}  - name: A\n"
    only(verified(parameters=unused), "warning", "params.yaml:5: parameters.A: is used in no temp")
    ranged = {"app.yaml": "{{ range $k, $v := .Params }}{{ end }}"}
    assert found(verified(parameters=unused, templates=ranged)) == []
    toggled = more("Toggle", "resources: [app.yaml], parameter: A")
    assert found(verified(toggled, unused)) == []


# --- templates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (TEMPLATE + "{{ .Params.SIZ }}", "app.yaml:7: .Params.SIZ: is not defined"),
        (TEMPLATE + "{{ .Nmae }}", "app.yaml:7: .Nmae: is unknown in templates"),
        (TEMPLATE + "{{ if }}", "app.yaml:7: : "),
        (TEMPLATE + "\n{{ upper 3 }}", "app.yaml:8: : can't be rendered with the defaults: "),
        (TEMPLATE + "\n{{ now }}", "with the defaults: the function 'now' is not available"),
        (TEMPLATE + "  data: [", "is not YAML"),
        (TEMPLATE + "---\n- a\n", "is no object: not a mapping (line 8 of the rendered text)"),
        (TEMPLATE + "---\nkind: Pod\n", "app.yaml:: apiVersion: is missing (line 8"),
        (TEMPLATE + "---\napiVersion: v1\nkind: Namespace\n", "kind: is a Namespace"),
    ],
)
def test_templates(template: str, text: str) -> None:
    only(verified(templates={"app.yaml": template}, rendering=True), "error", text)


def test_a_template_without_use() -> None:
    templates = {"app.yaml": TEMPLATE, "sub/other.yaml": TEMPLATE}
    only(
        verified(templates=templates), "warning", "templates/sub/other.yaml:: : is used in no task"
    )


def test_a_rendered_duplicate_is_a_warning() -> None:
    template = TEMPLATE + "  a: 1\n  a: 2\n"
    result = verified(templates={"app.yaml": template}, rendering=True)
    only(result, "warning", "data.a: duplicate key (line 8")


def test_a_removed_version_is_a_warning() -> None:
    budget = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n"
    result = verified(
        templates={"app.yaml": f"{TEMPLATE}---\n{budget}---\n{budget}"}, rendering=True
    )
    text = "templates/app.yaml:: apiVersion: was removed from Kubernetes; the PodDisruptionBudget"
    only(result, "warning", text)
    [warning] = result.warnings
    assert (warning.value, warning.fix) == ("policy/v1beta1", "write policy/v1")


def test_templates_that_give_nothing_are_fine() -> None:
    for template in ("{{ if eq .Params.SIZE `4` }}\nx: {{ end }}", "---\n# only\n---\n", ""):
        second, templates = parameter("name: A"), {"app.yaml": template}
        empty = verified(parameters=second, templates=templates, rendering=True)
        assert [text for kind, text in found(empty) if kind == "error"] == []


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: '{{ .Namespace }}'}\n", ""),
        ("", "namespaceManifest: gives nothing instead of one Namespace"),
        (TEMPLATE.replace("{{ .Params.SIZE }}", "x"), "gives ConfigMap instead of one Namespace"),
        ("apiVersion: v1\nkind: Namespace\n---\napiVersion: v1\nkind: Namespace\n", "Namespace, N"),
        ("a: [", "is not YAML"),
    ],
)
def test_the_manifest_of_the_namespace(manifest: str, text: str) -> None:
    named = OPERATOR.replace("name: web\n", "name: web\nnamespaceManifest: ns.yaml\n", 1)
    templates = {"app.yaml": TEMPLATE, "ns.yaml": manifest}
    result = verified(named, templates=templates, rendering=True)
    if text:
        only(result, "error", text)
    else:
        assert found(result) == []


def test_the_parameter_file_of_a_nested_package_need_not_be_an_object() -> None:
    nested = more("KudoOperator", "package: ./child, parameterFile: child.yaml")
    child = {"app.yaml": TEMPLATE, "child.yaml": "COUNT: {{ .Params.SIZE }}\n"}
    assert found(verified(nested, templates=child, rendering=True)) == []
    wrong = {**child, "child.yaml": "COUNT: {{ .PlanName }}\n"}
    result = verified(nested, templates=wrong, rendering=True)
    only(result, "error", "templates/child.yaml:1: : can't be rendered")


def test_lists_without_bounds_are_refused() -> None:
    many = "parameters:\n" + "".join(f"  - {{name: P{i}}}\n" for i in range(2001))
    result = verified(parameters=many)
    assert ("params.yaml", "parameters") in [(one.file, one.field) for one in result.errors]


# --- all of it ------------------------------------------------------------------------------------


def test_everything_is_found_at_once_and_in_order() -> None:
    operator = OPERATOR.replace('"1.25"', "x").replace("[app]", "[app, nope]")
    result = verified(operator, parameter("name: size"), {"app.yaml": TEMPLATE + "{{ .X }}"})
    assert [(one.file, one.line) for one in result.errors] == [
        ("operator.yaml", 4),
        ("operator.yaml", 18),
        ("params.yaml", 5),
        ("templates/app.yaml", 7),
    ]
    assert all(one.check and one.problem for one in (*result.errors, *result.warnings))


def test_checks_have_names_and_descriptions() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert [check.name for check in CHECKS if not check.find.__doc__] == []


@pytest.mark.parametrize(
    ("style", "text", "problems"),
    [
        ("display", "displayName: 'size:'", ["ends with a colon", "does not begin with a capital"]),
        ("display", "hint: x", ["is missing"]),
        ("description", "description: the size", ["does not end as a", "does not begin with a"]),
        ("hint", "hint: x", ["does not end with a period"]),
        ("type", "hint: x", ["type: is missing"]),
        ("has-group", "hint: x", ["group: is missing"]),
    ],
)
def test_styles(style: str, text: str, problems: list[str]) -> None:
    files = package_files(parameters=PARAMETERS + f"    {text}\n")
    result = verify(read_files(files, "test"), checks=[STYLES[style]], rendering=False)
    assert [kind for kind, _ in found(result)] == ["warning"] * len(problems)
    lines = [line for _, line in found(result)]
    assert all(problem in line for problem, line in zip(problems, lines, strict=True))


def test_styles_of_groups() -> None:
    files = package_files(parameters="groups:\n  - name: a\n" + PARAMETERS)
    result = verify(read_files(files, "test"), checks=[STYLES["groups"]], rendering=False)
    assert [one.field for one in result.warnings] == [
        "groups.a.displayName",
        "groups.a.description",
    ]


# --- packages of others ---------------------------------------------------------------------------

NEVER_DONE = "operator.yaml: tasks.not-allowed.spec.done: is not true"
REMOVED_BUDGET = "templates/pdb.yaml: apiVersion: was removed from Kubernetes"
EXPECTED = {
    "cowsay": [],
    "first-operator": [],
    "kafka": [REMOVED_BUDGET],
    "mysql": [],
    "rabbitmq": [
        NEVER_DONE,
        "templates/role.yaml: apiVersion: was removed from Kubernetes; the Role is applied as",
        "templates/rolebinding.yaml: apiVersion: was removed from Kubernetes; the RoleBinding is",
    ],
    "zookeeper": [NEVER_DONE, REMOVED_BUDGET],
}


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here (TEMPORAL_PLANS_CORPUS)")
@pytest.mark.parametrize("name", EXPECTED)
def test_packages_of_others(name: str) -> None:
    result = verify(read_package(CORPUS / name))
    lines = [f"{one.file}: {one.field}: {one.problem}" for one in result.warnings]
    assert result.errors == ()
    assert len(lines) == len(EXPECTED[name])
    for line, expected in zip(lines, EXPECTED[name], strict=True):
        assert line.startswith(expected)
