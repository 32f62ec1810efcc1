# The sidecar on an image without shell or package manager, and as a second target the sample driver of deploy/.
#
#   docker build --build-arg VERSION=v0.1.0 --build-arg REVISION=$(git rev-parse HEAD) -t csi-provisioner:v0.1.0 .
#   docker build --target nfs-provisioner -t nfs-provisioner:v0.1.0 .
#   docker build --target hostpath-driver -t csi-provisioner-hostpath-driver:v0.1.0 .
#
# A registry of your own: --secret id=npmrc,src=$HOME/.npmrc. For a release give both base images by digest.
ARG BUILD_IMAGE=node:24-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian12
ARG DEBIAN_IMAGE=node:24-bookworm-slim

FROM ${BUILD_IMAGE} AS build
WORKDIR /csi-provisioner
COPY package.json package-lock.json ./
# Packages' install scripts stay off: none is needed to build or to run.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc npm ci --ignore-scripts --no-audit --no-fund
COPY LICENSE tsconfig.json ./
COPY proto proto
COPY scripts scripts
COPY src src
COPY sandbox sandbox
RUN npm run build csi-provisioner && npm run sbom

FROM build AS driver-build
RUN npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM build AS nfs-build
COPY provisioners provisioners
RUN npm run build nfs-provisioner

# Debian, as it has ganesha: a server of its own beside our one file.
FROM ${DEBIAN_IMAGE} AS nfs-provisioner
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.title="nfs-provisioner" \
      org.opencontainers.image.description="NFS volumes from a directory, with an NFS-Ganesha of its own" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production
# Clients of before a restart are remembered on the disk of the volumes, also where an older configuration does not say so.
RUN apt-get update && \
    apt-get install --yes --no-install-recommends \
      ca-certificates nfs-ganesha nfs-ganesha-vfs nfs-common dbus-daemon rpcbind util-linux xfsprogs && \
    rm -rf /var/lib/apt/lists/* /var/lib/nfs/ganesha && \
    mkdir -p /export /var/run/dbus && \
    ln -s /export /var/lib/nfs/ganesha
COPY --from=nfs-build /csi-provisioner/LICENSE /csi-provisioner/dist/THIRD-PARTY-LICENSES.txt /licenses/
COPY --from=nfs-build /csi-provisioner/dist/nfs-provisioner.js /nfs-provisioner.mjs
EXPOSE 2049 20048 32803 662 875 111
ENTRYPOINT ["node", "--use-system-ca", "/nfs-provisioner.mjs"]

FROM ${RUNTIME_IMAGE} AS runtime
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production
WORKDIR /
# No USER: a driver that runs as root owns its socket, and only root may connect to it then. Manifests set the user.
# Health is the kubelet's to ask, over HTTP: see deploy/base/deployment.yaml.

FROM runtime AS hostpath-driver
LABEL org.opencontainers.image.title="csi-provisioner-hostpath-driver" \
      org.opencontainers.image.description="Sample CSI driver that makes directories in its own Pod"
COPY --from=driver-build /csi-provisioner/LICENSE /csi-provisioner/package.json /app/
COPY --from=driver-build /csi-provisioner/node_modules /app/node_modules
COPY --from=driver-build /csi-provisioner/proto /app/proto
COPY --from=driver-build /csi-provisioner/src/base /app/src/base
COPY --from=driver-build /csi-provisioner/sandbox /app/sandbox
ENTRYPOINT ["/nodejs/bin/node", "/app/sandbox/hostpath/main.ts"]

FROM runtime AS sidecar
LABEL org.opencontainers.image.title="csi-provisioner" \
      org.opencontainers.image.description="Dynamic volume provisioning for Kubernetes: the sidecar of a CSI driver"
COPY --from=build /csi-provisioner/LICENSE /csi-provisioner/dist/THIRD-PARTY-LICENSES.txt /licenses/
# Tells scanners which packages are in the one file.
COPY --from=build /csi-provisioner/dist/sbom.cdx.json /csi-provisioner.cdx.json
# By the name Node.js sees that it is an ES module, without package.json beside it.
COPY --from=build /csi-provisioner/dist/csi-provisioner.js /csi-provisioner.mjs
# The heap may take 70 % of the container's memory limit; by itself Node.js takes 259 MB at least, and in a smaller
# container is killed without a word. Authorities of the image's system store count, as they do for programs in Go.
# bench/bench-cluster.ts measures with the same flags.
ENTRYPOINT ["/nodejs/bin/node", "--max-old-space-size-percentage=70", "--use-system-ca", "--max-semi-space-size=2", "--heap-growing-percent=10", "--no-wasm-tier-up", "--no-wasm-dynamic-tiering", "/csi-provisioner.mjs"]
