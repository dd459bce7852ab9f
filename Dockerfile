# Two stages: one builds and fetches, the other holds only what runs.
FROM rust:1.95-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends python3-pip && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY models models
RUN REFRAIN_CACHE_DIR=/fetched models/fetch
COPY . .
RUN cargo build --release --locked --bin refrain

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates curl && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /nonexistent --shell /usr/sbin/nologin refrain \
    && install -d -o refrain -g refrain /data
COPY --from=build /src/target/release/refrain /usr/local/bin/refrain
# The links of models/ are followed, so that the image holds the files themselves.
COPY --from=build /fetched/models/ /models/
RUN ln -s /models/onnxruntime-* /models/lib
ENV ORT_DYLIB_PATH=/models/lib/libonnxruntime.so \
    REFRAIN__EMBEDDER__FOLDER=/models \
    REFRAIN__STORE__PATH=/data
USER refrain
VOLUME /data
EXPOSE 8080 8081
HEALTHCHECK --interval=10s --timeout=2s --start-period=10s CMD ["curl", "-fsS", "http://127.0.0.1:8080/healthz"]
ENTRYPOINT ["refrain"]
CMD ["serve"]
