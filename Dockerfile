# The gateway in a container: see docs/howto/container.md.
FROM python:3.13-slim AS build
RUN python -m venv /opt/thoughtline
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src ./src
RUN /opt/thoughtline/bin/pip install --no-cache-dir --disable-pip-version-check ".[zstd,otel,postgres]"

FROM python:3.13-slim
RUN useradd --create-home --uid 10001 thoughtline \
 && install --directory --owner=thoughtline --mode=0700 /data
COPY --from=build /opt/thoughtline /opt/thoughtline
USER thoughtline
WORKDIR /data
VOLUME /data
ENV PATH=/opt/thoughtline/bin:$PATH \
    THOUGHTLINE_HOST=0.0.0.0 \
    THOUGHTLINE_STORE__URL=sqlite:////data/thoughtline.db
EXPOSE 7337
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \
  CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ.get('THOUGHTLINE_PORT', '7337') + '/health', timeout=2)"]
ENTRYPOINT ["thoughtline"]
CMD ["serve"]
