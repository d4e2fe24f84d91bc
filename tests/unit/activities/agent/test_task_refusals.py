"""The refusal of a task by its agent: each reason has its field."""

import pytest

from builders.services import pod, task
from temporal_plans.activities.agent.host.preparation import task_of
from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.domain.services.backend_support import unsupported_in_pod, unsupported_in_task
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.refusal import Code, Reason


def test_every_unsupported_field_is_a_reason() -> None:
    wanted = task(ipc_mode="PRIVATE")
    web = pod("web", 1, wanted, image="busybox")
    with pytest.raises(TaskRefused) as refused:
        task_of(web, "server")
    assert refused.value.reasons == (*unsupported_in_pod(web), *unsupported_in_task(web, wanted))
    assert len(refused.value.reasons) > 1
    assert refused.value.refusal.code == Code.INVALID


def test_a_task_that_the_pod_has_not() -> None:
    with pytest.raises(TaskRefused, match=r"^pods\.web: no task or resource set") as refused:
        task_of(pod("web", 1), "srever")
    assert [reason.field for reason in refused.value.reasons] == ["pods.web"]


def test_redaction_reaches_every_text_of_a_reason() -> None:
    reason = Reason(field="x.hush", problem="no hush here", value="a/hush", fix="drop hush")
    refused = TaskRefused(reason, state=TaskState.FAILED).redacted(
        lambda text: text.replace("hush", "***")
    )
    assert "hush" not in f"{refused} {refused.refusal!r}"
    assert [one.field for one in refused.reasons] == ["x.***"]
    assert refused.state is TaskState.FAILED
