# transduce review in a container, for Linux. The server listens on 127.0.0.1 only, so the container shares the host's
# network; decisions are written beside your file, as you.
#   docker build -t transduce .
#   docker run --rm -it --network host --user "$(id -u):$(id -g)" -v "$PWD:/data" transduce review tickets.csv --no-browser
FROM python:3.13-slim
ENV NUMBA_CACHE_DIR=/var/cache/numba HOME=/tmp PYTHONUNBUFFERED=1
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
# numba uses stored code only where it could write, whoever runs the container
RUN pip install --no-cache-dir ".[review]" && rm -rf /src/* \
 && mkdir -p "$NUMBA_CACHE_DIR" && cd / && python -m transduce.warm && chmod -R a+rwX "$NUMBA_CACHE_DIR"
WORKDIR /data
ENTRYPOINT ["transduce"]
CMD ["--help"]
