"""The agent: the process on each machine that runs the tasks; nothing else runs commands.

It is a Temporal worker on the task queue ``agent/<id>`` (``main.run_agent``) and registers with the
workflow ``pool/<pool>``. Tasks are ordinary processes in sessions of their own, each under a small
supervisor (``shim``) that outlives the agent: stop, kill or upgrade the agent, and the tasks keep
running. The next agent on the same work directory adopts them and reports the tasks that ended
meanwhile, with their true exit codes.

On disk, everything is below the work directory (``AgentSettings.work_dir``)::

    agent.lock                    held by the one agent that uses this directory
    agent.json                    the id of the directory, by which the pool recognizes its agent
    supervisor.pyc                the supervisors' program (``shim``), compiled at the agent's start
    launches.log                  one line for every process started: time, task id
    tasks/<task id>/
        task.json                 the launch order; never a secret's value
        prepared                  the sandbox is complete and is never created again
        lock                      held by the task's supervisor as long as it lives
        started.json              process id, start time and boot of the task; a copy of task.json
        kill.json                 a kill was requested; before the start: the task never starts
        exit.json                 how the task ended
        status.json               the newest status
        supervisor.log            empty, unless a supervisor failed
        sandbox/                  the task's working directory, as ``$MESOS_SANDBOX``
            stdout  stderr
            config-templates/     the templates of ``configs``, not rendered
            <volume path>  ->     volumes and host volumes are links
    volumes/<resource id>/        a ROOT volume; kept until its reservation is destroyed
    reservations/<id>.json        paths of a reservation's volumes, and whether it was destroyed
    forbidden/<task id>           killed before its launch order came: the task never starts

Records are closed to other users, and volumes to all but the task's user. What a task can write is
opened below descriptors only (``sandbox.beneath``), and fetched as its user (``sandbox.fetch``).

MOUNT volumes are ``<disk>/<resource id>``. The environment of a task, secrets included, is written
to no file: its supervisor holds it in memory.

Sandboxes of ended tasks are kept for reading: the newest ``keep_sandboxes`` of every task name, for
``sandbox_max_age`` at most. None is deleted before the task's last status was delivered.

A record that can't be read is not absent: as long as the lock is held or a process lives, the task
is kept, and restored as far as possible (``adoption``). Processes that a task left without its
supervisor are found by their environment (``strays``).

Tasks survive the agent only if the program that starts the agent allows it: with systemd, set
``KillMode=process`` (and ``Delegate=yes`` for cgroup limits); in a container, they end with it.
Linux only: ``/proc``, ``memfd`` and ``pidfd`` are used.
"""
