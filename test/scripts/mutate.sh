#!/usr/bin/env bash
# mutate.sh [WORD…] breaks the rules of the project one by one (those that contain a WORD) and sees a test fail. The checkout
# stays as it is. It takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec go run ./test/mutate "$@"
