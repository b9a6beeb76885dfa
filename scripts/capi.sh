#!/usr/bin/env bash
# capi.sh PREFIX [PROFILE]: builds the C library with cargo's PROFILE (release) and installs it below PREFIX, with its
# headers, what pkg-config asks for, and the server of soft GPUs.
set -eu
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
profile=${2:-release}
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Until 1.0 a minor version may break programs; capi/build.rs gives the library the same name.
minor=${version%.*}
soname=liblaxity.so.$minor

built=${CARGO_TARGET_DIR:-target}/$profile
if [ "$profile" = dev ]; then
    scripts/build.sh
    built=${CARGO_TARGET_DIR:-target}/debug
else
    cargo build --quiet -p laxity-capi -p laxity-softgpu --profile "$profile"
fi

install -d "$prefix/lib/pkgconfig" "$prefix/include/laxity" "$prefix/bin"
install -m 644 capi/include/laxity.h "$prefix/include/laxity.h"
install -m 644 capi/include/laxity/*.hpp capi/include/laxity/*.h "$prefix/include/laxity/"
install -m 644 "$built/liblaxity.a" "$prefix/lib/liblaxity.a"
install -m 755 "$built/liblaxity.so" "$prefix/lib/liblaxity.so.$version"
install -m 755 "$built/laxity-softgpu-server" "$prefix/bin/laxity-softgpu-server"
ln -sf "liblaxity.so.$version" "$prefix/lib/$soname"
ln -sf "$soname" "$prefix/lib/liblaxity.so"
cat >"$prefix/lib/pkgconfig/laxity.pc" <<END
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: laxity
Description: Live graphs, vision graphs, workload files, and GPUs that processes share
Version: $version
Libs: -L\${libdir} -llaxity
Libs.private: -lutil -lrt -lpthread -lm -ldl
Cflags: -I\${includedir}
END
# The package of CMake: find_package(laxity) and target_link_libraries(program laxity::laxity); laxity::code are the headers
# alone, for libraries that `laxity run` loads.
install -d "$prefix/lib/cmake/laxity"
cat >"$prefix/lib/cmake/laxity/laxityConfig.cmake" <<'END'
get_filename_component(laxity_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET laxity::code)
    add_library(laxity::code INTERFACE IMPORTED)
    set_target_properties(laxity::code PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${laxity_prefix}/include")
    add_library(laxity::laxity SHARED IMPORTED)
    set_target_properties(laxity::laxity PROPERTIES
        IMPORTED_LOCATION "${laxity_prefix}/lib/liblaxity.so"
        INTERFACE_INCLUDE_DIRECTORIES "${laxity_prefix}/include")
endif()
END
cat >"$prefix/lib/cmake/laxity/laxityConfigVersion.cmake" <<END
set(PACKAGE_VERSION "$version")
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION OR NOT PACKAGE_FIND_VERSION_MINOR EQUAL ${minor#*.}
        OR NOT PACKAGE_FIND_VERSION_MAJOR EQUAL ${minor%.*})
    set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
    if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
        set(PACKAGE_VERSION_EXACT TRUE)
    endif()
endif()
END
echo "installed laxity $version below $prefix"
