# syntax=docker/dockerfile:1
# The sidecar, and with another entry point the sample driver, on an image without shell or package manager.
#
#   docker build --build-arg VERSION=v0.1.0 --build-arg REVISION=$(git rev-parse HEAD) -t csi-provisioner:v0.1.0 .
#
# For a release give both images by digest.
ARG BUILD_IMAGE=node:24-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Packages' install scripts stay off: none of those needed at run time has one.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund
COPY proto proto
COPY src src

FROM ${RUNTIME_IMAGE}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="csi-provisioner" \
      org.opencontainers.image.description="Dynamic volume provisioning for Kubernetes: the sidecar of a CSI driver" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /app /app
WORKDIR /app
ENV NODE_ENV=production
USER 65532:65532
# Health is the kubelet's to ask, over HTTP: see deploy/base/deployment.yaml.
ENTRYPOINT ["/nodejs/bin/node", "/app/src/main.ts"]
