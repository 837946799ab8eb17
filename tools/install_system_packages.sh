#!/usr/bin/env bash
# PostgreSQL and Chromium, where this is Debian and we are root; never fails.
set -uo pipefail
packages=()
command -v initdb > /dev/null || compgen -G "/usr/lib/postgresql/*/bin/initdb" > /dev/null || packages+=(postgresql)
command -v chromium > /dev/null && command -v chromedriver > /dev/null || packages+=(chromium chromium-driver)
if [ ${#packages[@]} -eq 0 ]; then
  exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get > /dev/null; then
  echo "Not installed: ${packages[*]}. The tests that need them will be skipped."
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
install() { timeout 600 apt-get install --yes --quiet --no-install-recommends "$1" > /dev/null 2>&1; }
refreshed=
for package in "${packages[@]}"; do
  if ! install "$package"; then
    [ -n "$refreshed" ] || timeout 300 apt-get update --quiet > /dev/null 2>&1
    refreshed=yes
    install "$package" || echo "Could not install $package. The tests that need it will be skipped."
  fi
done
exit 0
