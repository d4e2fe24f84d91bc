"""The preview of a first installation, made without a Service, which does not exist yet.

The validators, plan customizers and strategies that developers register with their worker are not
known here; the Service applies them when it is installed.
"""

from temporal_plans.domain.owners.rollout import rolled_out
from temporal_plans.domain.plans.board import PlanBoard, PlanState
from temporal_plans.domain.services.comparison import pod_changes
from temporal_plans.domain.services.deployable import option_problems, plans_of, problems
from temporal_plans.domain.services.plan_names import DEPLOY
from temporal_plans.messages.plan_views import PlanView, PlanViewer
from temporal_plans.messages.services import ChangeView, ServiceInput


def first_installation(request: ServiceInput) -> ChangeView:
    """Return the preview of a first installation: every pod is added."""
    spec = request.spec
    changes = pod_changes(None, spec, {}, {})
    found = problems(None, spec, request.plans, deployed_once=False) or option_problems(
        spec, request.plans, request.rollout, deployed_once=False
    )
    if found:
        return ChangeView(pods=changes, problems=found)
    return ChangeView(pods=changes, deploy=_deploy(request))


def _deploy(request: ServiceInput) -> PlanView:
    spec = request.spec
    plan = plans_of(spec, request.plans, deployed_once=False)[DEPLOY]
    board = PlanBoard(rolled_out(plan, request.rollout), PlanState())
    viewer = PlanViewer(f"{spec.name.strip('/')}/{DEPLOY}")
    return viewer.plan(board, service=spec.name, arguments={}, started=None)
