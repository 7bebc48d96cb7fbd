#!/bin/sh
# Run small cases of every CUDA kernel under compute-sanitizer: memory that is not a kernel's own, and races in
# shared memory. Needs a GPU and the CUDA toolkit's compute-sanitizer. The logs are kept in the folder that is
# named, else in benchmarks/results/gpu. Usage: tools/sanitize_cuda.sh [FOLDER]    PYTHON=... names the interpreter.
set -u
cd "$(dirname "$0")/.."
folder=${1:-benchmarks/results/gpu}
python=${PYTHON:-python3}
mkdir -p "$folder"

# Of each kernel and each kind of it a few cases; what they compile is in the cache when the tests have run.
set -- \
    "tests/unit/test_simulator.py" \
    "tests/parity/test_cuda_chain.py::test_edge_cases[2-dp1]" \
    "tests/parity/test_cuda_chain.py::test_edge_cases[2-dp2-one-strand]" \
    "tests/parity/test_cuda_chain.py::test_edge_cases[2-dp2-two-strands]" \
    "tests/parity/test_cuda_chain.py::test_edge_cases[2-vj-dp2]" \
    "tests/parity/test_cuda_weighted.py::test_calls[vdj]" \
    "tests/parity/test_cuda_weighted.py::test_calls[vj]" \
    "tests/parity/test_cuda_weighted.py::test_many_contexts[vdj]" \
    "tests/parity/test_cuda_weighted.py::test_long_texts" \
    "tests/parity/test_cuda_enumeration.py::test_plain[positions-2bit]" \
    "tests/parity/test_cuda_enumeration.py::test_plain[positions-8bit]" \
    "tests/parity/test_cuda_enumeration.py::test_codes[8bit]" \
    "tests/parity/test_cuda_long.py::TestAsOnTheCpu::test_nucleotides[global-affine]" \
    "tests/parity/test_cuda_long.py::TestAsOnTheCpu::test_nucleotides[local-linear]" \
    "tests/parity/test_cuda_packed.py::TestScores::test_random" \
    "tests/parity/test_cuda_search.py::TestSmall::test_local" \
    "tests/parity/test_cuda_search.py::TestSmall::test_local_with_32_bits" \
    "tests/parity/test_cuda_search.py::TestSmall::test_other_modes"

# Errors of calls of the driver are left out: each becomes an exception, and a test fails. Those that do not are
# look-ups of functions that an older driver does not have, dozens of them when cuda-bindings starts.
worst=0
for tool in "memcheck --report-api-errors no" racecheck; do
    name=${tool%% *}
    log=$folder/sanitizer-$name.txt
    {
        echo "# $(date -u +%Y-%m-%d), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)"
        echo "# compute-sanitizer --tool $tool $python -m pytest -m gpu --require-gpu $*"
    } >"$log"
    # shellcheck disable=SC2086  # a tool with its options
    compute-sanitizer --tool $tool --error-exitcode 9 --print-limit 20 \
        "$python" -m pytest -q -m gpu --require-gpu -p no:cacheprovider "$@" >>"$log" 2>&1
    status=$?
    echo "# exit status $status" >>"$log"
    echo "$name: exit status $status, $(grep -c '^=========' "$log") lines of the sanitizer, see $log"
    [ "$status" -gt "$worst" ] && worst=$status
done
exit "$worst"
