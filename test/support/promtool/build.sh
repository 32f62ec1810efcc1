#!/usr/bin/env bash
# Compiles promtool, which checks the alert rules, from the Go module of Prometheus that go.mod pins.
#
#   build.sh [--built]
#
#   --built    compile nothing: exit code 1 where it is missing
#
# Prints the path of the program. Returns at once when it is there, in ${XDG_CACHE_HOME:-~/.cache}/promtool, or where PROMTOOL names
# one. Otherwise it needs Go (see go.mod for the version) and, on two cores, about five minutes.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
module=github.com/prometheus/prometheus
version=$(awk -v module="$module" '$1 == module { print $2; exit }' go.mod)
target=${PROMTOOL:-${XDG_CACHE_HOME:-$HOME/.cache}/promtool/$version/promtool}
if [[ -x $target ]]; then
  echo "$target"
  exit 0
fi
[[ ${1:-} != --built ]] || exit 1

if ! command -v go >/dev/null; then
  echo 'build.sh: no go in PATH; install it, or let PROMTOOL name a promtool' >&2
  exit 1
fi
echo "build.sh: compiling promtool $version, which takes some minutes" >&2
mkdir -p "$(dirname "$target")"
unfinished=$(mktemp "$target.XXXXXX")
trap 'rm -f "$unfinished"' EXIT
# Without what finds the targets of a server in clouds.
CGO_ENABLED=0 go build -tags remove_all_sd -trimpath -ldflags '-s -w' -o "$unfinished" "$module/cmd/promtool"

# A rename is atomic: a second build at the same time never runs a half-written program.
chmod 755 "$unfinished"
mv -f "$unfinished" "$target"
trap - EXIT
echo "$target"
