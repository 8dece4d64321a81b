# The image of `gangctl`, and so of the gang scheduler: a static binary, no shell, no
# package manager, no root. CI gives the binary (goreleaser, TARGETPLATFORM below); for
# an image of your own tree:
#   CGO_ENABLED=0 GOOS=linux GOARCH=amd64 go build -o linux/amd64/gangctl ./cmd/gangctl
#   docker build --platform linux/amd64 -t gangctl .
# `make pin-base` writes the digest of the day here, and to what else names it.
FROM gcr.io/distroless/static-debian12:nonroot
ARG TARGETPLATFORM
COPY ${TARGETPLATFORM}/gangctl /usr/local/bin/gangctl
COPY LICENSE /usr/share/doc/gangctl/LICENSE
# nonroot, as a number: kubelets check runAsNonRoot by it.
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/gangctl"]
