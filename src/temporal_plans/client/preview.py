"""What a first installation would be: there is no Service yet that could be asked.

What developers registered with their worker (validators, customizers of plans, strategies) is not
known here; the Service asks them when it is installed.
"""

from temporal_plans.domain.board import PlanBoard, PlanState
from temporal_plans.domain.comparison import pod_changes
from temporal_plans.domain.deployable import DEPLOY, plans_of, problems
from temporal_plans.domain.rollout import rolled_out
from temporal_plans.messages.plan import PlanView
from temporal_plans.messages.service import ChangeView, ServiceInput
from temporal_plans.workflows.views import PlanViewer


def first_installation(request: ServiceInput) -> ChangeView:
    """All of it is added; the deploy plan begins from nothing."""
    spec = request.spec
    changes = pod_changes(None, spec, {}, {})
    found = problems(None, spec, request.plans, request.rollout, deployed_once=False)
    if found:
        return ChangeView(pods=changes, problems=found)
    return ChangeView(pods=changes, deploy=_deploy(request))


def _deploy(request: ServiceInput) -> PlanView:
    spec = request.spec
    plan = plans_of(spec, request.plans, deployed_once=False)[DEPLOY]
    board = PlanBoard(rolled_out(plan, request.rollout), PlanState())
    viewer = PlanViewer(f"{spec.name.strip('/')}/{DEPLOY}")
    return viewer.plan(board, service=spec.name, arguments={}, started=None)
