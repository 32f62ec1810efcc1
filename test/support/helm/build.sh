#!/usr/bin/env bash
# Compiles the real Helm that the tests of deploy/charts run, from the Go module pinned in go.mod.
#
#   build.sh [3|4] [--built]
#
#   3, 4            the major version, 3 where none is given
#   --built         compile nothing: exit code 1 where it is missing
#
# Prints the path of the finished program on stdout, everything else on stderr. Returns at once when it is there.
# Otherwise it needs Go (see go.mod for the version) and, on two cores, about five minutes, or three if the
# other major version is compiled already.
#
#   HELM            a Helm of your own: nothing is compiled
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
major=3
built=''
for argument in "$@"; do
  case $argument in
    3 | 4) major=$argument ;;
    --built) built=only ;;
    *)
      echo 'usage: build.sh [3|4] [--built]' >&2
      exit 2
      ;;
  esac
done
module=helm.sh/helm/v$major
version=$(awk -v module="$module" '$1 == module { print substr($2, 2); exit }' go.mod)
target=${HELM:-${XDG_CACHE_HOME:-$HOME/.cache}/kube-bin/helm-$version/helm}

if [[ -x $target ]]; then
  echo "$target"
  exit 0
fi
[[ -z $built ]] || exit 1
if [[ -n ${HELM:-} ]]; then
  echo "build.sh: HELM=$HELM is no program" >&2
  exit 1
fi
if ! command -v go >/dev/null; then
  echo "build.sh: no go in PATH; install it, or point HELM at a Helm of version $version" >&2
  exit 1
fi

mkdir -p "$(dirname "$target")"
# Test files that run at the same time compile it once, where there is flock.
if command -v flock >/dev/null; then
  exec 9>"$(dirname "$target")/.lock"
  flock 9
  if [[ -x $target ]]; then
    echo "$target"
    exit 0
  fi
fi
echo "build.sh: compiling Helm $version, which takes minutes" >&2
unfinished=$(mktemp "$(dirname "$target")/.unfinished-XXXXXX")
trap 'rm -f "$unfinished"' EXIT
# Without a stamped version it reports the minor version alone, such as v3.22.
stamp="-X $module/internal/version.version=v$version"
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $stamp" -o "$unfinished" "$module/cmd/helm" >&2

# A rename is atomic: a second build at the same time never runs a half-written program.
chmod 755 "$unfinished"
mv -f "$unfinished" "$target"
trap - EXIT
echo "$target"
