#!/bin/sh
# Builds and tests the addon inside a full Node image of Debian or Alpine; started by the ci workflow.
set -eu

if command -v apk >/dev/null; then
  apk add --no-cache build-base git rustup
  rustup-init -y --profile minimal
else
  # The image of Debian brings a C compiler, curl and git.
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
fi
. "$HOME/.cargo/env"

node scripts/test.mjs build js
