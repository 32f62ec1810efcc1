ARG BI
ARG RI
FROM --platform=$BUILDPLATFORM ${BI} AS b
COPY f /g
FROM ${RI} AS r
COPY --from=b /g /h
