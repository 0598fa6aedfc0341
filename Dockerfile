# The gateway in a container: `docker build -t thoughtline .`, then
# docker run -p 7337:7337 -v thoughtline:/data -e THOUGHTLINE_ACCESS__CLIENTS__ME__KEY=… thoughtline
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir --prefix=/install ".[zstd]"

FROM python:3.13-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --create-home --uid 10001 thoughtline \
 && mkdir /data && chown thoughtline /data
COPY --from=build /install /usr/local
USER thoughtline
WORKDIR /data
VOLUME /data
ENV THOUGHTLINE_HOST=0.0.0.0 \
    THOUGHTLINE_STORE__URL=sqlite:////data/thoughtline.db
EXPOSE 7337
HEALTHCHECK --interval=30s --timeout=3s \
  CMD python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:7337/health', timeout=2)"
ENTRYPOINT ["thoughtline"]
CMD ["serve"]
