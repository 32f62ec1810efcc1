# The sidecar on an image without shell or package manager; as further targets the sample driver of deploy/ and the
# provisioners of provisioners/ that are shipped.
#
#   docker build --build-arg VERSION=v0.1.0 --build-arg REVISION=$(git rev-parse HEAD) -t csi-provisioner:v0.1.0 .
#   docker build --target nfs-provisioner -t nfs-provisioner:v0.1.0 .
#   docker build --target hostpath-driver -t csi-provisioner-hostpath-driver:v0.1.0 .
#   docker build --target nfs-subdir -t csi-provisioner-nfs-subdir:v0.1.0 .
#
# A registry of your own: --secret id=npmrc,src=$HOME/.npmrc. `npm run release` names the base images by digest, and gives
# SOURCE_DATE_EPOCH; then two builds have the same layers. What is for every architecture is built once, on the builder's own;
# the other stages name theirs because buildah 1.28 takes the first one for all.
ARG BUILD_IMAGE=node:24-bookworm-slim
ARG RUNTIME_IMAGE=gcr.io/distroless/nodejs24-debian12
ARG DEBIAN_IMAGE=node:24-bookworm-slim

FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
WORKDIR /csi-provisioner
COPY package.json package-lock.json ./
# Packages' install scripts stay off: none is needed to build or to run.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc npm ci --ignore-scripts --no-audit --no-fund
COPY LICENSE tsconfig.json ./
COPY proto proto
COPY scripts scripts
COPY src src
COPY sandbox sandbox
RUN npm run build csi-provisioner

FROM build AS nfs-subdir-build
COPY provisioners provisioners
RUN npm run build nfs-subdir-external-provisioner

FROM build AS driver-build
RUN npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM build AS nfs-build
COPY provisioners provisioners
RUN npm run build nfs-provisioner

# Debian, as it has ganesha: a server of its own beside our one file. Its packages are as of the day of the build, and listed with
# their versions in the bill of materials. Logs and caches of the installation, which no two builds share, are removed,
# and a random machine id, which no two Pods should share.
FROM --platform=$TARGETPLATFORM ${DEBIAN_IMAGE} AS nfs-system
# Clients of before a restart are remembered on the disk of the volumes, also where an older configuration does not say so.
# Ganesha looks for file systems in /etc/mtab, which not every container runtime adds; without it no export succeeds.
RUN apt-get update && \
    apt-get install --yes --no-install-recommends \
      ca-certificates nfs-ganesha nfs-ganesha-vfs nfs-common dbus-daemon rpcbind util-linux xfsprogs && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/ldconfig/aux-cache /var/cache/debconf/*-old \
      /var/lib/dpkg/*-old /var/log/apt /var/log/*.log /etc/*- /var/lib/dbus/machine-id /var/lib/nfs/ganesha && \
    mkdir -p /export /var/run/dbus && \
    ln -s /export /var/lib/nfs/ganesha && \
    ln -sf /proc/mounts /etc/mtab

# Each bill of materials is made where its image runs: by its Node.js, among its Debian packages.
FROM nfs-system AS nfs-sbom
ARG VERSION=unknown
ARG SOURCE_DATE_EPOCH
COPY --from=nfs-build /csi-provisioner /csi-provisioner
RUN node /csi-provisioner/scripts/sbom.ts nfs-provisioner

FROM nfs-system AS nfs-provisioner
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.title="nfs-provisioner" \
      org.opencontainers.image.description="NFS volumes from a directory, with an NFS-Ganesha of its own" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production
COPY --from=nfs-build /csi-provisioner/LICENSE /csi-provisioner/dist/THIRD-PARTY-LICENSES.txt /licenses/
COPY --from=nfs-sbom /csi-provisioner/dist/nfs-provisioner.cdx.json /nfs-provisioner.cdx.json
COPY --from=nfs-build /csi-provisioner/dist/nfs-provisioner.js /nfs-provisioner.mjs
EXPOSE 2049 20048 32803 662 875 111
ENTRYPOINT ["node", "--disable-sigusr1", "--use-system-ca", "/nfs-provisioner.mjs"]

FROM --platform=$TARGETPLATFORM ${RUNTIME_IMAGE} AS runtime
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production
WORKDIR /
# No USER: a driver that runs as root owns its socket, and only root may connect to it then. Manifests set the user.
# Health is the kubelet's to ask, over HTTP: see deploy/base/deployment.yaml.

# By the very Node.js that will read it: any other one compiles the program at each start instead.
FROM --platform=$TARGETPLATFORM ${RUNTIME_IMAGE} AS code-cache
WORKDIR /csi-provisioner
COPY --from=build /csi-provisioner /csi-provisioner
RUN ["/nodejs/bin/node", "scripts/code-cache.ts"]

FROM --platform=$TARGETPLATFORM ${RUNTIME_IMAGE} AS sidecar-sbom
ARG VERSION=unknown
ARG SOURCE_DATE_EPOCH
COPY --from=build /csi-provisioner /csi-provisioner
RUN ["/nodejs/bin/node", "/csi-provisioner/scripts/sbom.ts", "csi-provisioner"]

FROM --platform=$TARGETPLATFORM ${RUNTIME_IMAGE} AS nfs-subdir-sbom
ARG VERSION=unknown
ARG SOURCE_DATE_EPOCH
COPY --from=nfs-subdir-build /csi-provisioner /csi-provisioner
RUN ["/nodejs/bin/node", "/csi-provisioner/scripts/sbom.ts", "nfs-subdir-external-provisioner"]

FROM --platform=$TARGETPLATFORM ${RUNTIME_IMAGE} AS driver-sbom
ARG VERSION=unknown
ARG SOURCE_DATE_EPOCH
COPY --from=driver-build /csi-provisioner /csi-provisioner
RUN ["/nodejs/bin/node", "/csi-provisioner/scripts/sbom.ts", "hostpath-driver", "--installed", "/csi-provisioner"]

FROM runtime AS hostpath-driver
LABEL org.opencontainers.image.title="csi-provisioner-hostpath-driver" \
      org.opencontainers.image.description="Sample CSI driver that makes directories in its own Pod"
COPY --from=driver-build /csi-provisioner/LICENSE /csi-provisioner/package.json /app/
COPY --from=driver-build /csi-provisioner/node_modules /app/node_modules
COPY --from=driver-build /csi-provisioner/proto /app/proto
COPY --from=driver-build /csi-provisioner/src/base /app/src/base
COPY --from=driver-build /csi-provisioner/sandbox /app/sandbox
COPY --from=driver-sbom /csi-provisioner/dist/hostpath-driver.cdx.json /hostpath-driver.cdx.json
ENTRYPOINT ["/nodejs/bin/node", "--disable-sigusr1", "/app/sandbox/hostpath/main.ts"]

FROM runtime AS nfs-subdir
LABEL org.opencontainers.image.title="nfs-subdir-external-provisioner" \
      org.opencontainers.image.description="Dynamic volume provisioning for Kubernetes: directories of an NFS export"
COPY --from=nfs-subdir-build /csi-provisioner/LICENSE /csi-provisioner/dist/THIRD-PARTY-LICENSES.txt /licenses/
COPY --from=nfs-subdir-sbom /csi-provisioner/dist/nfs-subdir-external-provisioner.cdx.json /nfs-subdir-external-provisioner.cdx.json
COPY --from=nfs-subdir-build /csi-provisioner/dist/nfs-subdir-external-provisioner.js /nfs-subdir-external-provisioner.mjs
# Each volume that is worked on waits for the NFS server in a thread; eight of them must not hold up all others.
ENV UV_THREADPOOL_SIZE=16
ENTRYPOINT ["/nodejs/bin/node", "--disable-sigusr1", "--max-old-space-size-percentage=70", "--use-system-ca", "--max-semi-space-size=4", "/nfs-subdir-external-provisioner.mjs"]

FROM runtime AS sidecar
LABEL org.opencontainers.image.title="csi-provisioner" \
      org.opencontainers.image.description="Dynamic volume provisioning for Kubernetes: the sidecar of a CSI driver"
COPY --from=build /csi-provisioner/LICENSE /csi-provisioner/dist/THIRD-PARTY-LICENSES.txt /licenses/
# Tells scanners which packages are in the bundle.
COPY --from=sidecar-sbom /csi-provisioner/dist/csi-provisioner.cdx.json /csi-provisioner.cdx.json
# By the name Node.js sees that it is an ES module, without package.json beside it.
COPY --from=build /csi-provisioner/dist/csi-provisioner.js /csi-provisioner.mjs
COPY --from=code-cache /csi-provisioner/dist/csi-provisioner.bundle.cjs /csi-provisioner/dist/csi-provisioner.bundle.cjs.cache /
# Loaded only to trace claims.
COPY --from=build /csi-provisioner/dist/csi-provisioner-traces.mjs /csi-provisioner-traces.mjs
# The heap may take 70 % of the container's memory limit; by itself Node.js takes 259 MB at least, and in a smaller
# container is killed without a word. The program reads the image's certificate store itself, and only where it needs it:
# with --use-system-ca Node.js would always do so, which takes 5 MB.
# src/bundle-main.ts sets further ones, which may not stand here: V8 would refuse the compiled code. What the heap costs is in
# docs/development.md, "The heap". bench/bench-cluster.ts measures with the same flags.
ENTRYPOINT ["/nodejs/bin/node", "--disable-sigusr1", "--max-old-space-size-percentage=70", "--max-semi-space-size=4", "/csi-provisioner.mjs"]
