# One image for every process of ours: `temporal-plan worker`, `temporal-plan agent`, and the
# commands for people.

FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim-bookworm
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-compile /wheels/*.whl \
    && useradd --create-home --uid 10001 plans \
    && install --directory --owner plans /var/lib/temporal-plans

# The worker and the commands need no rights. An agent that is to run tasks as other users has to be
# root: docker-compose.yml says so where it starts one.
USER plans
ENTRYPOINT ["temporal-plan"]
CMD ["worker"]
