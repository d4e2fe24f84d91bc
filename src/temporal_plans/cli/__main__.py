"""``python -m temporal_plans.cli``: the command ``temporal-plan``."""

from temporal_plans.cli.main import main

if __name__ == "__main__":
    main()
