#!/usr/bin/env bash
# Compiles the Go sidecar that this one is compared with, external-provisioner, from the Go module pinned in go.mod.
#
#   build.sh [--built]
#
#   --built       compile nothing: exit code 1 where it is missing
#
# Prints the path of the finished program on stdout, everything else on stderr, as the control plane's build.sh does. Returns at
# once when it is there, in ${XDG_CACHE_HOME:-~/.cache}/go-sidecar/<version>. Otherwise it needs Go (see go.mod for the version)
# and four minutes of CPU.
#
#   GO_SIDECAR    a Go sidecar of your own: nothing is compiled
set -euo pipefail

if [[ -n ${GO_SIDECAR:-} ]]; then
  if [[ -f $GO_SIDECAR && -x $GO_SIDECAR ]]; then
    echo "$GO_SIDECAR"
    exit 0
  fi
  echo "build.sh: GO_SIDECAR=$GO_SIDECAR is no program" >&2
  exit 1
fi
cd "$(dirname "${BASH_SOURCE[0]}")"
source ../go-progress.sh
module=github.com/kubernetes-csi/external-provisioner/v6
version=$(awk -v module="$module" '$2 == module { print $3; exit }' go.mod)
target=${XDG_CACHE_HOME:-$HOME/.cache}/go-sidecar/$version/csi-provisioner
if [[ -x $target ]]; then
  echo "$target"
  exit 0
fi
[[ ${1:-} != --built ]] || exit 1

if ! command -v go >/dev/null; then
  echo "build.sh: no go in PATH; install it, or let GO_SIDECAR name an external-provisioner $version" >&2
  exit 1
fi
echo "build.sh: compiling external-provisioner $version into $target" >&2
mkdir -p "$(dirname "$target")"
unfinished=$(mktemp "$target.XXXXXX")
packages=$(mktemp)
trap 'rm -f "$unfinished" "$packages"' EXIT

# In the folder of the module, with its own go.mod and go.sum: Go ignores the replace directives of a module that another one requires.
# They pin what is in the released image, and our go.sum pins the module with them.
export CGO_ENABLED=0 GOWORK=off
go mod download "$module"
cd "$(go list -m -f '{{.Dir}}' "$module")"
program=./cmd/csi-provisioner
go list -deps "$program" 2>&1 >"$packages" | show_progress '?' >&2
go build -v -buildvcs=false -trimpath -ldflags "-X main.version=$version" -o "$unfinished" "$program" 2>&1 |
  show_progress "$(wc -l <"$packages")" >&2

# A rename is atomic: a second build at the same time never runs a half-written program.
chmod 755 "$unfinished"
mv -f "$unfinished" "$target"
trap - EXIT
rm -f "$packages"
echo "$target"
