# One image for servers and agents: `docker run streamhouse serve`, `docker run streamhouse agent`.
FROM python:3.11-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
RUN python -m venv /opt/streamhouse \
    && /opt/streamhouse/bin/pip install --no-cache-dir .

FROM python:3.11-slim-bookworm
# A number, so that Kubernetes can see that it is not root.
RUN useradd --uid 10001 --create-home streamhouse \
    && install --directory --mode=0700 --owner=streamhouse --group=streamhouse /var/lib/streamhouse
COPY --from=build /opt/streamhouse /opt/streamhouse
ENV PATH=/opt/streamhouse/bin:$PATH
# What a container needs and a program on a desk does not: every interface, and data where the volume is.
ENV STREAMHOUSE_HOST=0.0.0.0
ENV STREAMHOUSE_DATA_DIR=/var/lib/streamhouse
USER 10001
VOLUME /var/lib/streamhouse
# Kafka, HTTP (REST, console, metrics), gRPC, Flume
EXPOSE 9092 8080 50051 9094
# The drain: it hands over every partition, uploads what is not uploaded, and ends with 0.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=8s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health/ready')"]
ENTRYPOINT ["streamhouse"]
CMD ["serve"]
