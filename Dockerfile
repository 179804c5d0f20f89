# syntax=docker/dockerfile:1

# Stage 1: a virtual environment at the pinned versions.
FROM python:3.11.14-slim-bookworm AS build
WORKDIR /src
RUN python -m venv /opt/shardplan
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY cost_models/ cost_models/
COPY planner/ planner/
COPY api/ api/
# Such as otel: docker build --build-arg EXTRAS=otel .
ARG EXTRAS=""
RUN /opt/shardplan/bin/python -m pip install --no-cache-dir --constraint constraints.txt ".${EXTRAS:+[$EXTRAS]}"
# The search in machine code, ahead of the first plan. It is for any CPU of this architecture, and the
# same two settings at run time find it.
RUN cd / && NUMBA_CACHE_DIR=/opt/compiled NUMBA_CPU_NAME=generic /opt/shardplan/bin/python -m planner.solver.partitioners.kernels.warm_up

# Stage 2: that environment and nothing else, run by a user without rights.
FROM python:3.11.14-slim-bookworm
RUN useradd --system --uid 10001 --user-group --home-dir /var/lib/shardplan --create-home shardplan
COPY --from=build /opt/shardplan /opt/shardplan
# numba uses only folders that it may write to.
COPY --from=build --chown=shardplan:shardplan /opt/compiled /opt/compiled
COPY examples/ /usr/share/shardplan/examples/
ENV PATH=/opt/shardplan/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/opt/compiled \
    NUMBA_CPU_NAME=generic \
    SHARDPLAN_HOST=0.0.0.0 \
    SHARDPLAN_AUTH=keys \
    SHARDPLAN_PORT=8080 \
    SHARDPLAN_DATA_DIR=/var/lib/shardplan
USER 10001
WORKDIR /var/lib/shardplan
VOLUME ["/var/lib/shardplan"]
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["shardplan"]
CMD ["serve"]
