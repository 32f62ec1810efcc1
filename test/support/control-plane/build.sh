#!/usr/bin/env bash
# Compiles the real control plane that the end-to-end tests run against: etcd, kube-apiserver,
# kube-controller-manager, kube-scheduler and kubectl, from the Go modules pinned in a .mod file.
#
#   build.sh [--built] [MOD-FILE]
#
#   MOD-FILE        go.mod, the default, or the kubernetes-MINOR.mod of an older Kubernetes
#   --built         compile nothing: exit code 1 where programs are missing
#
# Prints the folder of the finished programs on stdout, everything else on stderr: on a terminal one line of progress
# that is drawn again and again, elsewhere a plain line every ten seconds. Returns at once when they are there. Otherwise it needs Go (see the .mod file for the version), 5 GB of disk for Go's caches and, on two cores,
# about ten minutes.
#
#   KUBE_BIN_DIR    where the programs go; default ${XDG_CACHE_HOME:-~/.cache}/kube-bin/<Kubernetes version>
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
source ../go-progress.sh
compile=yes
if [[ ${1:-} == --built ]]; then
  compile=no
  shift
fi
mod_file=${1:-go.mod}
programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl)
version=$(awk '$1 == "k8s.io/kubernetes" { print substr($2, 2); exit }' "$mod_file")
target=${KUBE_BIN_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/kube-bin/$version}

complete=yes
for program in "${programs[@]}"; do
  [[ -x $target/$program ]] || complete=no
done
if [[ $complete == yes ]]; then
  echo "$target"
  exit 0
fi
[[ $compile == yes ]] || exit 1

if ! command -v go >/dev/null; then
  echo "build.sh: no go in PATH; install it, or point KUBE_BIN_DIR at a folder with ${programs[*]}" >&2
  exit 1
fi

echo "build.sh: compiling Kubernetes $version into $target" >&2
mkdir -p "$target"
unfinished=$(mktemp "$target/.unfinished-XXXXXX")
trap 'rm -f "$unfinished"' EXIT

# Without a stamped version the API server reports v0.0.0, which clients and feature gates take at its word.
stamp=()
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  stamp+=(-X "$package.gitVersion=v$version" -X "$package.gitMajor=${version%%.*}")
  stamp+=(-X "$package.gitMinor=$(cut -d. -f2 <<<"$version")" -X "$package.gitTreeState=archive")
done
packages=$(mktemp)
trap 'rm -f "$unfinished" "$packages"' EXIT
export CGO_ENABLED=0
go list -modfile="$mod_file" -deps . 2>&1 >"$packages" | show_progress '?' >&2
go build -v -modfile="$mod_file" -trimpath -ldflags "-s -w ${stamp[*]}" -o "$unfinished" . 2>&1 |
  show_progress "$(wc -l <"$packages")" >&2
rm -f "$packages"

# A rename is atomic: a second build at the same time never runs a half-written program.
chmod 755 "$unfinished"
mv -f "$unfinished" "$target/control-plane"
trap - EXIT
for program in "${programs[@]}"; do
  ln -sfn control-plane "$target/$program"
done
echo "$target"
