# syntax=docker/dockerfile:1
# The program alone, for linux/amd64 and linux/arm64, as user 65532:
#   docker build --tag reprise .
#   docker run --rm --publish 127.0.0.1:9324:9324 reprise serve --memory --addr 0.0.0.0:9324 --allow-remote
# A release replaces the stage build by the programs that it has made, with
#   --build-context build=dist/image

FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY . .
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags='-s -w' -o "/out/$TARGETOS/$TARGETARCH/reprise" ./cmd/reprise

FROM gcr.io/distroless/static-debian12:nonroot
ARG TARGETOS TARGETARCH
LABEL org.opencontainers.image.title="Reprise" \
      org.opencontainers.image.description="Consume Amazon SQS queues with sound retries, and a local SQS server" \
      org.opencontainers.image.source="https://github.com/reprise-sqs/reprise" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/$TARGETOS/$TARGETARCH/reprise /usr/bin/reprise
USER 65532:65532
# serve and up keep messages below this directory, which is the user's home: mount a
# volume here. Docker gives a new volume the owner of the directory.
WORKDIR /home/nonroot
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/reprise"]
# Nothing listens beyond the container unasked.
CMD ["--help"]
