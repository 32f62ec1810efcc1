# For the scripts that compile Go programs.

# Says how far `go` is, from the names of modules and packages that it prints; whatever else it prints passes.
#   show_progress TOTAL
show_progress() {
  local line state='' compiled=0 next=0 drawn=''
  while IFS= read -r line; do
    case $line in
      'go: downloading '*) state="downloading ${line#go: downloading }" ;;
      *[!A-Za-z0-9._~/+-]* | '') # no package: an error
        printf '%s%s\n' "$drawn" "$line"
        continue
        ;;
      *)
        compiled=$((compiled + 1))
        state="$compiled of at most $1 packages compiled"
        ;;
    esac
    if [[ -t 1 ]]; then
      drawn=$'\r\e[K'
      printf '%s%.79s' "$drawn" "$state, $SECONDS s"
    elif ((SECONDS >= next)); then
      next=$((SECONDS + 10))
      echo "$state, $SECONDS s"
    fi
  done
  printf '%s' "$drawn"
}
