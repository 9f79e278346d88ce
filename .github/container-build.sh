#!/bin/sh
# Builds and tests the addon inside a Node image of Debian or Alpine; started by the ci workflow.
set -eu

if command -v apk >/dev/null; then
  apk add --no-cache build-base git rustup
  rustup-init -y --profile minimal
else
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends build-essential ca-certificates curl git
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
fi
. "$HOME/.cargo/env"

node scripts/test.mjs build js
