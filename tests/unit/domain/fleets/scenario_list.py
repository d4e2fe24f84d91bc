"""The scenarios that fleets must follow, by their ids, and where each is shown.

A scenario is a row of a table or a test (``test_scenarios``). One that is about a decision is also
a file among the examples, with what it expects, which ``temporal plan fleet decide`` checks: people
try their rules in the same way. ``NO_FILE`` has the others, each with its reason.
"""

from collections.abc import Mapping

_LIST = """
T001 an entity goes to the newest release of its channel
T002 it has the newest release already, and that is said
T004 what is declared and not there is installed
T005 no block of configuration covers the next major version
T007 version and block of configuration change in one plan
T008 a block that is not in force may be edited without a plan
T010 the environment's configuration changed: all entities that use it
T011 the channel has only older releases
T013 a block does not cover the candidate of its version
T014 secrets that wait go with the upgrade
T016 a secret is edited while the key of the agent is not known
T017 an entity without settings is shown, and never planned for
T020 with a window of the product, the environment's for changes without downtime does not count
T021 outside the product's window
T023 with downtime: inside both windows
T024 with downtime: inside that of the environment only
T026 the environment ignores the windows of products
T027 no window of the product: the environment's counts
T029 what needs downtime does not use the other window
T030 an entity with one window of its own has the environment's other one
T032 an override opens the windows for one entity; one for downtime admits both classes
T033 a person's stop is stronger than an override
T035 an interval over the weekend, in its time zone
T036 the clock jumps: a minute that does not exist is in no window, an hour that is repeated twice
T038 a closed window of the product holds promotions by the pipeline back, and none by hand
T040 an entity leaves a recalled release
T042 a recall without an end covers later releases, too
T043 the same recall, after it was given an end
T045 going back is allowed, but a newer release can be used
T046 nothing newer, and only a release below the minimum
T048 frozen up to a time, and not longer
T049 only the environments that a recall names roll off
T051 a version in the range is excepted
T052 candidates in the range are recalled
T054 one of two recalls was reverted: the other one counts
T055 a reverted recall moves no entity back
T057 the environment wants windows for leaving a recalled release, too
T058 leaving it with downtime needs the window
T060 a person's stop of the environment
T061 after a failure, leaving a recalled release waits
T063 nothing else is on the channel
T064 one plan at once: leaving a recalled release goes first
T066 both releases are recalled for vulnerabilities, the newer one has less risk
T067 the same risk
T069 its scan is too old
T070 a release without vulnerabilities is better
T072 a release of a module is recalled
T080 each waits for the other, and both say why
T082 the newest release that the dependent bears
T083 a dependency that the entity ignores
T085 the installation of what is required failed
T086 three products that require each other in a circle
T088 an optional dependency that is installed must be in range
T089 an optional dependency that is not installed does not count
T091 what is only optional may be uninstalled
T092 its uninstall waits for a dependent, and its upgrade does not
T094 what is required is in another dependency group
T095 the entity looks for it in that group
T097 what is incompatible is in another group
T098 a snapshot is newer than its release, and out of range
T100 a plan of the neighbour runs: both its versions count
T101 a change that leaves fewer broken relations is allowed
T103 an uninstall from a version on: upgrades come first
T104 an entity keeps its product while anything of it is installed
T111 a failed upgrade left another version: it is rolled back
T112 a failed upgrade left everything as it was: nothing to roll back
T114 the stop of the environment after failures lets rollbacks pass
T115 a failed rollback is not tried again
T117 the environment stops above the threshold, and goes on below it, not at it
T118 suppressions by promotions do not count
T118c what failed too often is held until there is another target
T119 a stop has a beginning and an end
T121 the stop was removed
T122 a stop lets the running plan go on, unless it says otherwise
T124 a plan that is being cancelled stays until its agent has agreed
T125 a cancelled plan may be issued again
T127 no connection is expected any more
T128 a stop holds configuration back, too
T130 past a stop, a window, an error and a recall
T131 a command waits for the running plan
T133 one command at a time
T134 after a command planning goes on, and may undo it
T136 a command carries the secrets that wait
T137 an uninstall that a dependent holds back
T139 a command needs a reason
T140 past a ramp
T151 a newer release replaces the plan that waits
T152 its release is recalled: the next one
T154 a plan that is blocked for four hours is computed again: it takes the release before
T155 with the same target it goes on waiting, and the four hours begin again
T157 its configuration was edited meanwhile
T160 an image is missing
T162 an image that can't be looked for holds nothing back
T163 the image came
T165 a ramp over three hours: one of twelve every quarter of an hour
T166 a ramp holds upgrades back only: all other plans go on
T168 a ramp under way keeps its length when the product's is edited
T169 a ramp stands still while the product's window is closed
T171 a version without an order is not published
T172 a channel that releases come to by themselves is no target of a stage
T174 a release that lost its label stays on the channel
T175 weekends do not count as soak
T177 four minutes of an hour in error are too many
T178 a canary without a health endpoint never fails
T180 there must be more canaries than the minimum
T181 entities under test keep their version
T183 without canaries a promotion pauses, and goes on when there are some
T184 a canary fails: the release is recalled, and left everywhere
T186 no canary gets the release for a week: cancelled
T187 a label is missing for thirty days: cancelled
T189 a release came to the channel by hand: who has it, has nothing to do
T190 a disabled pipeline promotes nothing, and takes nothing back
T192 entities of a relayed environment may be canaries
T200 the order of versions
T202 numbers of versions have a limit
T203 bounds of ranges that are valid, and those that are not
T205 a change that needs no approval is made at once; its plan still waits for every constraint
T206 an approved change that is held is not made
T208 everything that holds a plan back is named
T209 a suppression is named before a window
T211 an environment without entities is fine, an unknown window is not
"""

SCENARIOS: Mapping[str, str] = {
    line.partition(" ")[0]: line.partition(" ")[2] for line in _LIST.strip().splitlines()
}
"""The scenarios in few words."""

DEFAULTS = frozenset(
    {
        "T011",
        "T013",
        "T036",
        "T061",
        "T100",
        "T101",
        "T114",
        "T115",
        "T118",
        "T118c",
        "T155",
        "T211",
    }
)
"""Those that are a choice of ours, where the followed documentation is silent."""

NOT_HERE: Mapping[str, str] = {
    "T016": "keys of agents are out of scope",
    "T072": "modules are out of scope",
}
"""Scenarios that are shown nowhere, and why; docs/fleets.md says so, too."""

NO_FILE: Mapping[str, str] = {
    **NOT_HERE,
    "T104": "a request that is refused: edits of an entity",
    "T133": "a request that is refused: commands",
    "T139": "a request that is refused: commands",
    "T171": "a document that is refused",
    "T172": "a document that is refused",
    "T200": "versions are compared, and nothing is decided",
    "T202": "a text that is no version",
    "T203": "texts that are bounds of versions, and texts that are not",
    "T205": "when a change of settings is made, not what is decided afterwards",
    "T206": "when a change of settings is made, not what is decided afterwards",
    "T211": "a document that is refused",
}
"""Scenarios without a file among the examples, and why."""
