#!/bin/sh
# Every kernel at three shapes under the four tools of compute-sanitizer, all at once: sanitize.sh FOLDER [LOGS]
# FOLDER holds the test programs. Ends with 1 when a tool finds something. Needs a GPU; about a minute.
folder=$1
logs=${2:-$(mktemp -d)}
mkdir -p "$logs"
ops='Ops/ThreeShapes*cuda_bf16_1*:Ops/ThreeShapes.*:Ops/MixExperts.*cuda_bf16_1:Ops/MixExpertsOfFormat.*bf16_1_mxfp4'
ops="$ops:Ops/AddNorm.*bf16_1:Ops/RotateAndStore.*bf16_1:Ops/Embed.*bf16_1_*:Ops/AddPositions.*bf16_1_bf16:Ops/TakeRows.*bf16_1"
ops="$ops:Ops/Tiles.HoldEvery*:Ops/Activate.*bf16_1:Ops/Sample.DoesNotDependOnTheOtherRows/cuda_bf16_1:Ops/Sample.ReportsTheModels*/cuda_bf16_1"
other_formats='*iq*:*q2_k:*q3_k:*q4_1:*q5_0:*q5_1:*tq*:*f8*:*i8:*i16:*i32:*i64:*f64:*cuda_f32_1*'
steps='Families/Parity.Replayed*/gpt_oss:Families/Parity.Replayed*/llama:Families/Parity.Strangers*/gpt_oss'

run() {  # run TOOL PROGRAM FILTER [SHARDS SHARD]
  log="$logs/$1-$2${5:+-$5}.log"
  GTEST_TOTAL_SHARDS=${4:-1} GTEST_SHARD_INDEX=${5:-0} timeout 300 compute-sanitizer --tool "$1" --error-exitcode 9 \
    --print-limit 5 "$folder/$2" --gtest_filter="$3" --gtest_brief=1 >"$log" 2>&1
  echo "$1 $2${5:+ part $5}: exit $?, $(grep -o '[0-9]* tests from' "$log" | head -n 1) ..., $(tail -n 1 "$log")"
}

for tool in ${SANITIZERS:-memcheck racecheck initcheck synccheck}; do
  if [ $tool = racecheck ]; then  # many times slower than the others: every kernel, but not every format of the generic one
    for shard in 0 1 2 3 4 5 6 7; do run $tool ops_cuda_test "$ops-$other_formats" 8 $shard & done
  else
    run $tool ops_cuda_test "$ops" &
  fi
  run $tool parity_cuda_test "$steps" &
done >"$logs/summary"
wait
sort "$logs/summary"
! grep -vq 'exit 0,' "$logs/summary"
