#!/bin/sh
# Every kernel at three shapes or more under the four tools of compute-sanitizer, all at once: sanitize.sh FOLDER [LOGS]
# FOLDER holds the test programs (a build, or what pack.py has packed). FOLDER/racecheck, or the folder of that name next to FOLDER,
# holds those of the preset `racecheck`, in which every lane arrives at a barrier itself: racecheck tracks no other order. Exits with
# 1 if a tool finds something, takes longer than SECONDS_EACH (180), or no test has a requested name. SANITIZERS selects tools,
# PARTS what they check: ops, sample, joined, steps. Needs a GPU; two to three minutes.
folder=${1%/}
logs=${2:-$(mktemp -d)}
mkdir -p "$logs"
rm -f "$logs"/*.log "$logs/summary"

# Operations one by one: products, attention over prompts, experts, and the small ones.
ops='Ops/ThreeShapes*cuda_bf16_1*:Ops/ThreeShapes.*:Ops/MixExperts.*cuda_bf16_1:Ops/MixExpertsOfFormat.*bf16_1_mxfp4:Ops/PromptExperts.*/cuda_bf16_1'
ops="$ops:Ops/AddNorm.*bf16_1:Ops/RotateAndStore.*bf16_1:Ops/Embed.*bf16_1_*:Ops/AddPositions.*bf16_1_bf16:Ops/TakeRows.*bf16_1"
ops="$ops:Ops/Tiles.HoldEvery*:Ops/Activate.*bf16_1:Ops/LinearOperation.AgreesForParts*/cuda_bf16_1_bf16"
other_formats='*iq*:*q2_k:*q3_k:*q4_1:*q5_0:*q5_1:*tq*:*f8*:*i8:*i16:*i32:*i64:*f64:*cuda_f32_1*'
large='*LargerModels*:*OfMxfp4Agree/*:*SeveralTiles*:Ops/PromptExperts.AreRouted*'  # for the same kernels
# Drawing a token: a row of every setting, in three sizes. racecheck watches its many visits very slowly.
sample='Ops/Sample.AgreesAtThree*/cuda_bf16_1'
# Operations that are joined for a single token: the streaming kernels in each of their formats, one that they do not take, and
# attention that rotates and stores on its way. AfterLinear and ManyExperts add the shapes of real models.
joined='Backends/AfterLinear.*/cuda_bf16_1:Backends/ManyExperts.*/cuda_bf16_1:Backends/RotateAndAttend.*/cuda_bf16_1'
for format in bf16 f16 mxfp4 q8_0 q4_k q6_k f32; do
  joined="$joined:Formats/LinearAddNorm.*/cuda_bf16_1_$format:Formats/MixExpertsAddNorm.*/cuda_bf16_1_$format"
done
steps='Families/Parity.Replayed*/gpt_oss:Families/Parity.Replayed*/llama:Families/Parity.Strangers*/gpt_oss'

# Readers wait for a copy that another thread has started.
indirect=$(compute-sanitizer --help 2>/dev/null | grep -o -m 1 -e '--racecheck-indirect-barrier-dependency')

racecheck_folder=$folder/racecheck
if [ ! -d "$racecheck_folder" ]; then racecheck_folder=$(dirname "$folder")/racecheck; fi

program_in() {  # program_in FOLDER NAME
  find "$1" -path "$1/racecheck" -prune -o -name "$2" -type f -perm -100 -print 2>/dev/null | head -n 1
}

require() {  # require PROGRAM FILTER: every part of the filter names a test
  for pattern in $(echo "$2" | tr ':' ' '); do
    if [ "$("$(program_in "$folder" "$1")" --gtest_list_tests --gtest_filter="$pattern" | grep -c '^  ')" = 0 ]; then
      echo "$1 has no test like $pattern: exit 1, sanitize.sh asks for it"
    fi
  done
}

require_same() {  # require_same PROGRAM: racecheck's has the same tests
  if [ "$("$(program_in "$folder" "$1")" --gtest_list_tests)" != "$("$(program_in "$racecheck_folder" "$1")" --gtest_list_tests)" ]; then
    echo "$1 of $racecheck_folder has other tests than that of $folder: exit 1, build both anew"
  fi
}

run() {  # run TOOL PROGRAM PART FILTER [SHARDS SHARD]
  log="$logs/$1-$3${6:+-$6}.log"
  begin=$(date +%s)
  option=
  programs=$folder
  if [ "$1" = racecheck ]; then
    option=$indirect
    programs=$racecheck_folder
  fi
  program=$(program_in "$programs" "$2")
  if [ -z "$program" ]; then
    echo "$1 $3${6:+ part $6}: exit 1, there is no $2 in $programs"
    return
  fi
  GTEST_TOTAL_SHARDS=${5:-1} GTEST_SHARD_INDEX=${6:-0} timeout "${SECONDS_EACH:-180}" compute-sanitizer --tool "$1" $option \
    --error-exitcode 9 --print-limit 100 "$program" --gtest_filter="$4" >"$log" 2>&1
  code=$?
  echo "$1 $3${6:+ part $6}: exit $code, $(($(date +%s) - begin)) s, $(grep -o '^\[==========\] [0-9]* tests* from' "$log" | tail -n 1 | tr -dc '0-9') tests, $(tail -n 1 "$log")"
}

shards() {  # shards TOOL PROGRAM PART FILTER COUNT
  shard=0
  while [ $shard -lt "$5" ]; do
    run "$1" "$2" "$3" "$4" "$5" $shard &
    shard=$((shard + 1))
  done
}

parts=" ${PARTS:-ops sample joined steps} "
{
  set -f
  case $parts in *' ops '*) require ops_cuda_test "$ops" ;; esac
  case $parts in *' sample '*) require ops_cuda_test "$sample" ;; esac
  case $parts in *' joined '*) require ops_cuda_test "$joined" ;; esac
  case $parts in *' steps '*) require parity_cuda_test "$steps" ;; esac
  set +f
  case " ${SANITIZERS:-racecheck} " in *' racecheck '*) for program in ops_cuda_test parity_cuda_test; do require_same $program; done ;; esac
  for tool in ${SANITIZERS:-racecheck memcheck initcheck synccheck}; do
    case $parts in *' ops '*)
      if [ $tool = racecheck ]; then  # many times slower than the others: every kernel, but not every format of the generic one
        shards $tool ops_cuda_test ops "$ops-$other_formats:$large" 8
      else
        run $tool ops_cuda_test ops "$ops" &
      fi ;;
    esac
    case $parts in *' sample '*) run $tool ops_cuda_test sample "$sample" & ;; esac
    case $parts in *' joined '*)
      if [ $tool = racecheck ]; then shards $tool ops_cuda_test joined "$joined-$large" 10; else run $tool ops_cuda_test joined "$joined-$large" & fi ;;
    esac
    case $parts in *' steps '*) run $tool parity_cuda_test steps "$steps" & ;; esac
  done
  wait
} >"$logs/summary"
sort "$logs/summary"
[ -s "$logs/summary" ] && ! grep -qv 'exit 0,' "$logs/summary"
