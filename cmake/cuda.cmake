# Enables the CUDA language if INFERNO_CUDA is set and nvcc is available. Sets INFERNO_HAS_CUDA.
# inferno_cuda_backend(inferno_backend) then adds the sources of src/backend/cuda to a target.
set(INFERNO_HAS_CUDA OFF)
# The properties of the CUDA backend in this build, for src/cli/version.h and `doctor`; empty without one.
set(INFERNO_CUDA_TOOLKIT 0)
set(INFERNO_CUDA_BUILT_FOR "")
set(cuda_folder ${CMAKE_SOURCE_DIR}/src/backend/cuda)

if(INFERNO_CUDA)
  find_program(NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  if(NVCC)
    # "90a" alone would also embed PTX; "-real" asks for -gencode=arch=compute_90a,code=sm_90a, machine code only.
    list(TRANSFORM INFERNO_CUDA_ARCHITECTURES APPEND "-real" OUTPUT_VARIABLE CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_COMPILER ${NVCC})
    # CUDA::cudart_static is linked by name below: CMake's target also links cudadevrt, which is not used here.
    set(CMAKE_CUDA_RUNTIME_LIBRARY None)
    if(CCACHE)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
    endif()
    enable_language(CUDA)
    # CMake 3.25 does not know that nvcc speaks C++20.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    find_package(CUDAToolkit REQUIRED)
    # The block formats of src/tensor are constexpr functions, compiled for host and device alike.
    list(JOIN warnings "," host_warnings)
    set(nvcc_options --expt-relaxed-constexpr -Werror=all-warnings -Xcompiler=${host_warnings})
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${nvcc_options}>")
    set(INFERNO_HAS_CUDA ON)
    if(EXISTS ${cuda_folder}/cuda_backend.cpp)
      math(EXPR INFERNO_CUDA_TOOLKIT "${CUDAToolkit_VERSION_MAJOR} * 1000 + ${CUDAToolkit_VERSION_MINOR} * 10")
      set(INFERNO_CUDA_BUILT_FOR ${INFERNO_CUDA_ARCHITECTURES})
    endif()
    message(NOTICE "-- CUDA ${CUDAToolkit_VERSION} for sm_${INFERNO_CUDA_ARCHITECTURES} (${NVCC})")
  else()
    message(NOTICE "-- CUDA: nvcc is neither in PATH nor in /usr/local/cuda/bin, so this build is for the CPU only")
  endif()
endif()

# Kernels and the backend if CUDA is on; otherwise no_cuda.cpp, whose factory says so when it is asked.
# probe.cpp, which looks for GPUs through the driver alone, and the tables that choose kernels are in both.
function(inferno_cuda_backend target)
  file(GLOB sources CONFIGURE_DEPENDS ${cuda_folder}/dispatch/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(APPEND sources ${cuda_folder}/probe.cpp ${cuda_folder}/weight_view.cpp)
  if(INFERNO_HAS_CUDA)
    file(GLOB found CONFIGURE_DEPENDS ${cuda_folder}/*.cpp ${cuda_folder}/kernels/*/*.cu)
    list(FILTER found EXCLUDE REGEX "(_test|/no_cuda|/probe|/weight_view)\\.cpp$")
    list(APPEND sources ${found})
    target_link_libraries(${target} PRIVATE CUDA::cudart_static)
    if(INFERNO_RACECHECK)
      target_include_directories(${target} BEFORE PRIVATE ${PROJECT_SOURCE_DIR}/tests/gpu/racecheck)
    endif()
    list(JOIN INFERNO_CUDA_ARCHITECTURES " " built_for)
    set_source_files_properties(${cuda_folder}/cuda_backend.cpp PROPERTIES
                                COMPILE_DEFINITIONS "INFERNO_CUDA_BUILT_FOR=\"${built_for}\"")
  endif()
  if(NOT ${cuda_folder}/cuda_backend.cpp IN_LIST sources)
    list(APPEND sources ${cuda_folder}/no_cuda.cpp)
  endif()
  target_sources(${target} PRIVATE ${sources})
  target_link_libraries(${target} PUBLIC ${CMAKE_DL_LIBS})
endfunction()
