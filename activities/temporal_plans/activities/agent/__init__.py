"""The agent: the process on each machine that runs the tasks; nothing else runs commands.

It is a Temporal worker on the task queue ``agent/<id>`` (``main.run_agent``) and registers with the
workflow ``pool/<pool>``. Tasks are ordinary processes in sessions of their own, each under a small
supervisor (``shim``) that outlives the agent: stop the agent, kill it, upgrade it, and the tasks go
on. The next agent on the same work directory adopts them and reports what ended meanwhile, with its
true exit code.

On disk, everything is below the work directory (``AgentSettings.work_dir``)::

    agent.lock                    held by the one agent that uses this directory
    agent.json                    the directory's own name, by which the pool knows its agent
    supervisor.pyc                the supervisors' program (``shim``), compiled at the agent's start
    launches.log                  one line for every process started: time, task id
    tasks/<task id>/
        task.json                 what was asked for; never a secret's value
        prepared                  the sandbox is complete; from here on it is never made again
        lock                      held by the task's supervisor as long as it lives
        started.json              process number, start time and boot of the task
        kill.json                 somebody wants it dead; before the start: it will never start
        exit.json                 how it ended
        status.json               the newest status
        supervisor.log            empty, unless a supervisor broke
        sandbox/                  the task's working directory, as ``$MESOS_SANDBOX``
            stdout  stderr
            config-templates/     the templates of ``configs``, not rendered
            <volume path>  ->     volumes and host volumes are links
    volumes/<resource id>/        a ROOT volume; kept until its reservation is destroyed
    reservations/<id>.json        where a reservation's volumes are, and that it was destroyed
    forbidden/<task id>           killed before it was ever heard of: will never start

MOUNT volumes are ``<disk>/<resource id>``. The environment of a task, secrets included, is in no
file: its supervisor holds it in memory.

Sandboxes of ended tasks stay for reading: the newest ``keep_sandboxes`` of every task name, none
longer than ``sandbox_max_age``, and never before the last status was delivered.

Tasks survive the agent only if whatever starts the agent lets them: with systemd, set
``KillMode=process`` (and ``Delegate=yes`` for cgroup limits); in a container, they share its life.
Linux only: ``/proc``, ``memfd`` and ``pidfd`` are used.
"""
