#!/usr/bin/env bash
# Pins the Go modules of a further Kubernetes: writes kubernetes-MINOR.mod and .sum beside this script, from what the
# go.mod of that Kubernetes asks for. `npm run test:e2e -- --kubernetes MINOR` finds them.
#
#   pin.sh MINOR    such as 1.33
#
# It is always the release MINOR.0: the modules of later patches cannot all be had. Needs Go and the Go module proxy, and
# takes a minute. Safe to repeat.
set -euo pipefail

minor=${1:-}
if [[ ! $minor =~ ^1\.[0-9]+$ ]]; then
  echo "pin.sh: needs a minor version of Kubernetes, such as 1.33; got '$minor'" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
staging=v0.${minor#1.}.0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
upstream=$(GOFLAGS=-mod=mod go list -m -f '{{.GoMod}}' "k8s.io/kubernetes@v$minor.0")

# The version of a module that this Kubernetes requires.
required() {
  awk -v module="$1" '$1 == module { print $2; exit }' "$upstream"
}

cat >go.mod <<MOD
module control-plane

go $(required go)

require (
	github.com/spf13/cobra $(required github.com/spf13/cobra)
	go.etcd.io/etcd/server/v3 $(required go.etcd.io/etcd/client/v3)
	k8s.io/component-base $staging
	k8s.io/kubectl $staging
	k8s.io/kubernetes v$minor.0
)

replace (
$(awk -v version="$staging" '/=> \.\/staging\// { for (i = 1; $i != "=>"; i++) name = $i; print "\t" name " => " name " " version }' "$upstream")
)
MOD
cp "$here/main.go" .
go mod tidy
mv go.mod "$here/kubernetes-$minor.mod"
mv go.sum "$here/kubernetes-$minor.sum"
echo "kubernetes-$minor.mod"
